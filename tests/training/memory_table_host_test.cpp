// Bytes of trainings as the compiler has them: the rows of the table on the page about memory, and of larger
// models.
#include <fstream>
#include <sstream>
#include <string>

#include <attune/attune.hpp>

#include "check.hpp"

namespace {

using attune::MomentPrecision;
using Rounded = attune::Adam<attune::AdamVariant{.moments = MomentPrecision::kBfloat16}>;
using Int8 = attune::Adam<attune::AdamVariant{.moments = MomentPrecision::kInt8}>;

std::string with_commas(std::size_t bytes) {
  std::string digits = std::to_string(bytes);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), ",");
  return digits;
}

template <class Model, class Optimizer, class Plan>
std::string cell() {
  using Trainer = attune::Trainer<Model, attune::MeanSquaredError, Optimizer, 1, Plan>;
  static_assert(Trainer::memory().object() == sizeof(Trainer));
  return " " + with_commas(sizeof(Trainer)) + " |";
}

template <class Model>
std::string row() {
  using attune::BySequence, attune::UpdateInBackward;
  return cell<Model, attune::AdamW, BySequence>() + cell<Model, attune::AdamW, UpdateInBackward>() +
         cell<Model, Int8, UpdateInBackward>() +
         cell<Model, attune::StochasticBfloat16<attune::Adafactor<>>, UpdateInBackward>() +
         cell<Model, attune::Sgd<>, UpdateInBackward>();
}

using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 16, .d_model = 32, .num_heads = 4}>;
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 16, .d_model = 32, .num_heads = 4}, .d_ff = 64}>;
using Positions = attune::LearnedPositions<attune::PositionShape{.seq_len = 16, .d_model = 32}>;
using Pool = attune::Pooling<attune::PoolingShape{.seq_len = 16, .d_model = 32}>;
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 32, .d_out = 10}>;
using Body = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 16, .d_in = 8, .d_out = 32}>,
                                Positions, attune::Repeat<2, Encoder>, Pool>;
constexpr Body::Parameters kBody{};
using Classifier = attune::Sequential<Body, Head>;
constexpr Classifier::Parameters kClassifier{};

constexpr attune::NormShape kNorm{.rows = 16, .d_model = 32};
using Llama = attune::Tied<
    attune::Embedding<attune::EmbeddingShape{.seq_len = 16, .vocabulary = 256, .d_model = 32}>,
    attune::Sequential<attune::Repeat<2, attune::EncoderLayerOf<
                                             attune::MultiHeadAttention<attune::AttentionShape{
                                                 .seq_len = 16,
                                                 .d_model = 32,
                                                 .num_heads = 4,
                                                 .num_kv_heads = 2,
                                                 .bias = false,
                                                 .rotary_dim = 8}>,
                                             attune::SwiGlu<attune::FeedForwardShape{
                                                 .rows = 16, .d_model = 32, .d_ff = 64, .bias = false}>,
                                             attune::RmsNorm<kNorm>,
                                             attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>>,
                       attune::RmsNorm<kNorm>>>;

std::string page_about_memory() {
  const std::string path = __FILE__;
  std::ifstream file(path.substr(0, path.rfind("tests/")) + "examples/guide/memory.md");
  EXPECT_TRUE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// README's first program without gradients: the last loss.
template <class Layer, class Optimizer>
float loss_of_first_program(float learning_rate) {
  using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, Optimizer, 1, attune::UpdateInBackward>;
  static Trainer trainer;
  static Attention::Input x;
  static Attention::Output target;
  attune::Rng rng(42);
  trainer.initialize(attune::XavierUniform{}, rng);
  for (float& feature : x.values) feature = rng.uniform(-1, 1);
  for (int i = 0; i < target.rows; ++i) {
    for (int j = 0; j < target.cols; ++j) target(i, j) = x(3, j);
  }
  float loss = 0;
  for (int step = 0; step < 300; ++step) {
    const auto result = trainer.step(x, target, {.learning_rate = learning_rate});
    EXPECT_TRUE(result.ok());
    loss = result.loss;
  }
  return loss;
}

// The page has its bytes under every plan, with weights in floats and in bf16, and a learning rate
// that solves it with both.
template <class Optimizer, class Layer = Attention>
void expect_solved(const std::string& name, const std::string& learning_rate) {
  using Masters = attune::StochasticBfloat16<Optimizer>;
  EXPECT_LT((loss_of_first_program<Layer, Optimizer>(std::stof(learning_rate))), 1e-3f) << name;
  EXPECT_LT((loss_of_first_program<Layer, Masters>(std::stof(learning_rate))), 1e-3f) << name;
  const auto cells = []<class Plan>(std::type_identity<Plan>) {
    return cell<Layer, Optimizer, Plan>() + cell<Layer, Masters, Plan>();
  };
  const std::string expected = "| " + name + " | " + learning_rate + " |" +
                               cells(std::type_identity<attune::BySequence>{}) +
                               cells(std::type_identity<attune::UpdateInBackward>{});
  EXPECT_NE(page_about_memory().find(expected + "\n"), std::string::npos) << "memory.md should have\n"
                                                                          << expected;
}

}  // namespace

TEST(MemoryTable, every_optimizer_solves_the_first_training) {
  expect_solved<attune::AdamW>("`AdamW`", "3e-3");
  expect_solved<Rounded>("`Adam`, moments in 16 bits", "3e-3");
  expect_solved<Int8>("`Adam`, moments in 8 bits", "3e-3");
  expect_solved<attune::Adam<attune::AdamVariant{.moments = MomentPrecision::kInt8,
                                                 .first_moment = attune::FirstMoment::kNone}>>(
      "`Adam`, one moment in 8 bits", "1e-3");
  expect_solved<attune::Sgd<attune::Momentum::kClassic, float, MomentPrecision::kInt8>>(
      "`Sgd`, momentum in 8 bits", "0.3");
  expect_solved<attune::Adafactor<>>("`Adafactor<>`", "1e-3");
  expect_solved<attune::Sgd<>>("`Sgd<>`", "3");
  using WithoutWeights = attune::MultiHeadAttention<attune::AttentionShape{
      .seq_len = 16, .d_model = 32, .num_heads = 4, .keep_weights = false}>;
  expect_solved<attune::Sgd<>, WithoutWeights>("`Sgd<>`, `keep_weights = false`", "3");
}

// With AdamW and gradients, AdamW, moments in 8 bits, Adafactor in bf16, and Sgd.
TEST(MemoryTable, larger_models_take_their_bytes) {
  EXPECT_EQ(row<Classifier>(), " 345,480 | 278,880 | 171,936 | 111,424 | 133,120 |");
  EXPECT_EQ((row<attune::BiasesAndNorms<Classifier, kClassifier>>()),
            " 60,808 | 58,336 | 54,408 | 55,608 | 52,864 |");
  EXPECT_EQ((row<attune::Sequential<attune::Frozen<Body, kBody>, Head>>()),
            " 16,760 | 15,760 | 14,792 | 13,648 | 13,104 |");
  EXPECT_EQ(row<Llama>(), " 504,816 | 399,728 | 242,392 | 168,816 | 185,440 |");
}
