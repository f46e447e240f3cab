// Weights that are multiplied in integers: what stands in a set. quantized_weights_test.cpp has what layers
// compute of them, kernels/int8_gemm_test.cpp their products.
#include <attune/weights/packed_weights.hpp>

#include <attune/execution/pass.hpp>
#include <attune/layers/linear.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using attune::Int8Weights, attune::PackedInt8Weights, attune::Tensor;
using Layer = attune::Linear<attune::LinearShape{2, 3, 2}>;

template <template <class, int, int> class Weights>
constexpr auto quantized() {
  Layer::Parameters parameters{};
  for (int i = 0; i < parameters.weight.size; ++i) {
    parameters.weight.values[i] = static_cast<float>(i * i - 7);
    parameters.bias.values[i % 2] = static_cast<float>(i);
  }
  Layer::ParametersOf<Weights, Tensor> set{};
  static_cast<void>(attune::quantize(parameters, set));
  return set;
}

static_assert(std::is_trivially_copyable_v<PackedInt8Weights<float, 3, 4>>);
static_assert(sizeof(PackedInt8Weights<float, 64, 32>) == 64 * 32 + 32 * sizeof(float));

}  // namespace

TEST(PackedWeights, keep_integers_and_scales_at_compile_time) {
  constexpr auto kInt8 = quantized<Int8Weights>();
  constexpr auto kPacked = [&] {
    std::remove_cvref_t<decltype(quantized<PackedInt8Weights>())> packed{};
    static_cast<void>(attune::pack(kInt8, packed));
    return packed;
  }();
  static_assert(kPacked.weight.stored.scales[0] == kInt8.weight.stored.scales[0]);
  for (int row = 0; row < kInt8.weight.rows; ++row) {
    for (int col = 0; col < kInt8.weight.cols; ++col) {
      EXPECT_EQ(kPacked.weight(row, col), kInt8.weight(row, col));
      EXPECT_EQ(quantized<PackedInt8Weights>().weight(row, col), kInt8.weight(row, col));
    }
  }
}

TEST(PackedWeights, refuse_sums_that_overflow_two_columns_in_a_register) {
  auto int8 = quantized<Int8Weights>();
  auto packed = quantized<PackedInt8Weights>();
  const float before = packed.weight(0, 0);
  int8.weight.stored.elements[0].value = 5;
  int8.weight.stored.elements[1].value = -128;
  EXPECT_EQ(attune::pack(int8, packed), attune::Status::kOverflow);
  EXPECT_EQ(packed.weight(0, 0), before);
}

TEST(PackedWeights, a_feature_of_7500_hides_features_below_29_5_in_its_row) {
  using One = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 1, .bias = false}>;
  One::Parameters parameters{};  // the large feature has no weight
  parameters.weight.values[1] = parameters.weight.values[2] = 1;
  One::ParametersOf<PackedInt8Weights, Tensor> packed{};
  ASSERT_EQ(attune::quantize(parameters, packed), attune::Status::kOk);
  const One::Input x{{7500, 29.5f, 29.5f, 7500, 29.6f, 29.6f}};
  One::Output y;
  One::InferenceScratch scratch;
  (void)attune::infer<One>(packed, x, y, scratch);
  EXPECT_EQ(y.values[0], 0.0f);
  EXPECT_GT(y.values[1], 100.0f);  // one of 127 steps each
}
