// Gradients: layer_gradients_test.cpp.
#include <attune/attention/query_key_norm.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

constexpr attune::AttentionShape kPlain{
    .seq_len = 3, .d_model = 8, .num_heads = 4, .num_kv_heads = 2, .kv_len = 5};
constexpr attune::AttentionShape with(attune::QueryKeyNorm norm) {
  attune::AttentionShape shape = kPlain;
  shape.query_key_norm = norm;
  shape.query_key_epsilon = 1e-6;
  return shape;
}

template <attune::AttentionShape shape>
struct Run {
  using Layer = attune::MultiHeadAttention<shape>;
  typename Layer::Parameters parameters;
  typename Layer::Input query;
  typename Layer::KeyInput key;
  typename Layer::Output y, inferred;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  Run() {
    attune::Rng rng(3);
    check::fill(query, rng);
    check::fill(key, rng);
    check::fill_set(parameters, rng);
    Layer::forward(parameters, query, key, key, y, tape, scratch);
    Layer::forward(parameters, query, key, key, inferred, inference);
  }
};

// Each head's rows of a tape are `Norm` of those without.
template <attune::QueryKeyNorm norm, template <attune::NormShape, class> class Norm>
void expect_normalized() {
  static const Run<with(norm)> normalized;
  static const Run<kPlain> plain;
  EXPECT_TRUE(check::same_bits(normalized.y, normalized.inferred));
  const auto expect = [](const auto& parameters, const auto& from, const auto& to) {
    using Rows = std::remove_cvref_t<decltype(from)>;
    using OfHeads = Norm<attune::NormShape{.rows = Rows::size / 2, .d_model = 2, .epsilon = 1e-6}, float>;
    typename OfHeads::Parameters of_norm{};
    for (int i = 0; i < 2; ++i) of_norm.weight.values[i] = parameters.weight.values[i];
    if constexpr (requires { of_norm.bias.values; }) of_norm.bias = parameters.bias;
    typename OfHeads::InferenceScratch none;
    Rows expected;
    OfHeads::forward(of_norm, attune::ConstView<typename OfHeads::Input>(from.data()),
                     attune::View<typename OfHeads::Input>(expected.data()), none);
    EXPECT_TRUE(check::same_bits(expected, to));
  };
  expect(normalized.parameters.norms.query_norm, plain.tape.query, normalized.tape.query);
  expect(normalized.parameters.norms.key_norm, plain.tape.key, normalized.tape.key);
}

}  // namespace

TEST(QueryKeyNorm, normalizes_each_head_of_queries_and_keys) {
  expect_normalized<attune::QueryKeyNorm::kRootMeanSquare, attune::RmsNorm>();
  expect_normalized<attune::QueryKeyNorm::kLayerNorm, attune::LayerNorm>();
}

TEST(QueryKeyNorm, has_parameters_with_names_that_start_at_one) {
  using Layer = attune::MultiHeadAttention<with(attune::QueryKeyNorm::kRootMeanSquare)>;
  Layer::Parameters parameters{};
  attune::Rng rng(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  int found = 0;
  attune::for_each_tensor(
      [&](const attune::TensorPath& path, const auto& tensor) {
        if (path.kind != attune::TensorKind::kNorm) return;
        const std::string_view module = path.parent->name;
        EXPECT_TRUE(module == "query_norm" || module == "key_norm");
        ++found;
        for (const float weight : tensor.values) EXPECT_EQ(weight, 1.0f);
      },
      parameters);
  EXPECT_EQ(found, 2);
}
