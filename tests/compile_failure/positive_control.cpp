// The other cases differ from this by their mistake alone.
#include <Eigen/Core>

#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2>;

void use(const Layer::Parameters& parameters, Trainer& trainer) {
  Eigen::Matrix<float, 4, 8, Eigen::RowMajor> x, y;
  Layer::InferenceScratch scratch;
  attune::KeyPaddingMask<4> mask;
  attune::infer<Layer>(parameters, x, y, scratch, attune::CausalMask{} && mask);
  Trainer::BatchInput inputs;
  Trainer::BatchTarget targets;
  const float loss = trainer.step(inputs, targets, {.learning_rate = 1e-3f}, attune::NoClipping{}, mask).loss;
  (void)loss;
}
