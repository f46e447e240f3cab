#include <Eigen/Core>

#include <attune/core/parameters.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 2, .d_model = 4, .num_heads = 2}>;
using WithoutBias = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 2, .d_model = 4, .num_heads = 2, .bias = false}>;

constinit Layer::Parameters constant{};
static_assert(std::is_trivially_copyable_v<Layer::Parameters> && std::is_trivially_copyable_v<Layer::Tape>);
static_assert(attune::count_scalars(Layer::Parameters{}) == 4 * (4 * 4 + 4));
static_assert(attune::count_scalars(WithoutBias::Parameters{}) == 4 * 4 * 4);
static_assert(sizeof(Layer::Parameters) == 4 * (4 * 4 + 4) * sizeof(float));

constexpr const char* kNames[][2] = {{"query", "weight"},  {"query", "bias"},   {"key", "weight"},
                                     {"key", "bias"},      {"value", "weight"}, {"value", "bias"},
                                     {"output", "weight"}, {"output", "bias"}};

}  // namespace

TEST(Parameters, are_visited_by_name_in_order) {
  int index = 0;
  attune::for_each_tensor(
      [&index](const attune::TensorPath& path, const auto&) {
        ASSERT_TRUE(index < 8 && path.parent != nullptr);
        EXPECT_STREQ(path.parent->name, kNames[index][0]);
        EXPECT_STREQ(path.name, kNames[index][1]);
        EXPECT_TRUE(path.parent->parent == nullptr);
        ++index;
      },
      constant);
  EXPECT_EQ(index, 8);
}

TEST(Parameters, without_bias_have_four_tensors) {
  const WithoutBias::Parameters parameters{};
  int count = 0;
  attune::for_each_tensor(
      [&count](const attune::TensorPath& path, const auto&) {
        ++count;
        EXPECT_STREQ(path.name, "weight");
      },
      parameters);
  EXPECT_EQ(count, 4);
}

TEST(Parameters, several_sets_are_visited_together) {
  Layer::Parameters a{}, b{};
  a.key.bias(0, 2) = 3;
  attune::for_each_tensor(
      [](const attune::TensorPath&, const auto& from, auto& to) { to.matrix() = 2 * from.matrix(); }, a, b);
  EXPECT_EQ(b.key.bias(0, 2), 6.0f);
}

TEST(Parameters, set_zero_reaches_every_tensor) {
  Layer::Parameters parameters;
  attune::Rng rng(1);
  check::fill_set(parameters, rng, 1, 2);
  attune::set_zero(parameters);
  EXPECT_TRUE(check::same_bits(parameters, Layer::Parameters{}));
}

TEST(Parameters, hash_is_fnv_of_the_bits) {
  attune::LinearParameters<float, 1, 1, false> one{};
  one.weight(0, 0) = 1.0f;  // 00 00 80 3F
  std::uint32_t state = 2166136261u;
  for (const std::uint32_t byte : {0x00u, 0x00u, 0x80u, 0x3Fu}) state = (state ^ byte) * 16777619u;
  EXPECT_EQ(attune::hash_bits(one), state);
  attune::LinearParameters<double, 1, 1, false> wide{};
  wide.weight(0, 0) = 1.0;  // 00 00 00 00 00 00 F0 3F
  state = 2166136261u;
  for (const std::uint32_t byte : {0u, 0u, 0u, 0u, 0u, 0u, 0xF0u, 0x3Fu}) state = (state ^ byte) * 16777619u;
  EXPECT_EQ(attune::hash_bits(wide), state);
}

TEST(Parameters, hash_depends_on_values_and_not_on_addresses) {
  Layer::Parameters parameters;
  attune::Rng rng(2);
  check::fill_set(parameters, rng);
  Layer::ParametersOf<attune::TransposedTensor, attune::Tensor> transposed;
  Layer::ParametersOf<attune::TransposedReference, attune::Reference> elsewhere;
  attune::for_each_tensor(
      [](const attune::TensorPath&, const auto& from, auto& to, auto& reference) {
        for (int row = 0; row < from.rows; ++row) {
          for (int col = 0; col < from.cols; ++col) to(row, col) = from(row, col);
        }
        reference.first = to.values;
      },
      parameters, transposed, elsewhere);
  EXPECT_EQ(attune::hash_bits(transposed), attune::hash_bits(parameters));
  EXPECT_EQ(attune::hash_bits(elsewhere), attune::hash_bits(parameters));
  transposed.query.weight(1, 0) += 1;
  EXPECT_NE(attune::hash_bits(elsewhere), attune::hash_bits(parameters));
}

TEST(Parameters, hash_notices_every_bit) {
  Layer::Parameters parameters{};
  const std::uint32_t before = attune::hash_bits(parameters);
  parameters.output.bias(0, 3) = -0.0f;
  EXPECT_NE(attune::hash_bits(parameters), before);
}

TEST(Parameters, hash_of_a_matrix_is_that_of_a_set_of_it_alone) {
  attune::LinearParameters<float, 3, 4, false> set;
  attune::Rng rng(3);
  check::fill_set(set, rng);
  const std::uint32_t hash = attune::hash_bits(set);
  EXPECT_EQ(attune::hash_bits(set.weight), hash);
  EXPECT_EQ(attune::hash_bits(attune::view(set.weight)), hash);
  float array[3][4];
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) array[i][j] = set.weight(i, j);
  }
  EXPECT_EQ(attune::hash_bits(array), hash);
  EXPECT_EQ(attune::hash_bits(set.weight, hash), attune::hash_bits(set, hash));
  array[2][3] += 1;
  EXPECT_NE(attune::hash_bits(array), hash);
}
