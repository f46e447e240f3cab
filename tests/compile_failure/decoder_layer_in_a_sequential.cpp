// expect: one with a second input, as DecoderLayer, stands in a struct
// errors: 9  the constraint is told, too, and every use of a type that is none
#include <attune/attune.hpp>

using Decoder = attune::DecoderLayer<attune::DecoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}>;
using Model = attune::Sequential<attune::Linear<attune::LinearShape{4, 8, 8}>, Decoder>;
attune::Trainer<Model> trainer;

void train(const Model::Input& x, const Model::Output& target) { (void)trainer.step(x, target, {}); }
