// expect: attune::Workspace: updates in backward need one more matrix of tokens than the largest model; use
// kilobytes: 15  the way from the call to the layer
#include <attune/attune.hpp>

using Encoder = attune::Repeat<2, attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}>>;
attune::Workspace<Encoder> workspace;
attune::Trainer<Encoder, attune::MeanSquaredError, attune::AdamW, 1,
                attune::InWorkspace<workspace, attune::UpdateInBackward>>
    trainer;

attune::Status train(const Encoder::Input& x, const Encoder::Output& y) { return trainer.step(x, y, {}).status; }
