// What tests/bench/compile compiles: KWT-1 (Berg et al., "Keyword Transformer", 2021; the mean of all tokens
// instead of a class token), its training and an inference.
#include <attune/attune.hpp>

namespace {

constexpr int kTokens = 98;
constexpr int kFeatures = 40;
constexpr int kWidth = 64;
constexpr attune::EncoderLayerShape kEncoder{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 1},
    .d_ff = 256,
    .activation = attune::Activation::kGelu};

using Model = attune::Sequential<attune::Linear<attune::LinearShape{kTokens, kFeatures, kWidth}>,
                                 attune::LearnedPositions<attune::PositionShape{kTokens, kWidth}>,
                                 attune::Repeat<12, attune::EncoderLayer<kEncoder>>,
                                 attune::Pooling<attune::PoolingShape{kTokens, kWidth}>,
                                 attune::Linear<attune::LinearShape{1, kWidth, 35}>>;
using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, 32>;

Trainer trainer;
Trainer::BatchInput x;
Trainer::BatchTarget labels;
Model::Input sequence;
Model::Output logits;

}  // namespace

int main() {
  attune::Rng rng(1);
  trainer.initialize(attune::XavierUniform{}, rng);
  const auto result = trainer.step(x, labels, {.learning_rate = 1e-3f});
  const attune::Status predicted = trainer.predict(sequence, logits);
  return result.ok() && predicted == attune::Status::kOk && logits(0, 0) < 1e9f ? 0 : 1;
}
