// The table on the page about memory of what a training takes: each of its rows as the compiler has it.
#include <fstream>
#include <sstream>
#include <string>

#include <attune/attune.hpp>

#include "check.hpp"

namespace {

using attune::MomentPrecision;
using Rounded = attune::Adam<attune::AdamVariant{.moments = MomentPrecision::kBfloat16}>;

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
std::string row(const std::string& name) {
  using attune::Streaming, attune::UpdateInBackward;
  std::string text = "| " + name + " | ";
  text += with_commas(attune::detail::kBytes<typename Model::Parameters> / sizeof(float)) + " |";
  text += cell<Model, attune::AdamW, Streaming>() + cell<Model, Rounded, Streaming>();
  if constexpr (attune::detail::kHasSets<Model>) {
    text += cell<Model, attune::AdamW, UpdateInBackward>() + cell<Model, Rounded, UpdateInBackward>() +
            cell<Model, attune::Sgd<>, UpdateInBackward>();
  } else {
    text += " – | – | – |";
  }
  return text;
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
using OfTokens = attune::Sequential<
    attune::Embedding<attune::EmbeddingShape{.seq_len = 16, .vocabulary = 256, .d_model = 32}>, Positions,
    attune::Repeat<2, Encoder>, Pool, Head>;

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

}  // namespace

TEST(MemoryTable, has_what_the_compiler_says) {
  const std::string path = __FILE__;
  std::ifstream file(path.substr(0, path.rfind("tests/")) + "examples/guide/memory.md");
  ASSERT_TRUE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  for (const std::string& expected :
       {row<Attention>("attention 16 × 32 × 4, all of it"),
        row<Classifier>("2 encoder layers 16 × 32 × 4, d_ff 64, and a head of 10 classes, all of it"),
        row<attune::BiasesAndNorms<Classifier, kClassifier>>("its biases and norms (`BiasesAndNorms`)"),
        row<attune::Sequential<attune::Frozen<Body, kBody>, Head>>("its head (`Frozen` body)"),
        row<OfTokens>("the same behind a table of 256 tokens, all of it"),
        row<Llama>("2 of Llama's blocks 16 × 32 × 4 and a table of 256 tokens that is also the head "
                   "(`Tied`), all of it")}) {
    EXPECT_NE(page.find(expected + "\n"), std::string::npos) << "memory.md should have\n" << expected;
  }
}
