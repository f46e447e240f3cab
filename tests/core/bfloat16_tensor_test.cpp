#include <attune/core/bfloat16_tensor.hpp>

#include <limits>

#include <attune/core/initialize.hpp>
#include <attune/weights/weights.hpp>

#include "check.hpp"

namespace {

using attune::Bfloat16Tensor, attune::Tensor;

static_assert(std::is_trivially_copyable_v<Bfloat16Tensor<float, 3, 5>>);
static_assert(sizeof(Bfloat16Tensor<float, 3, 4>) == 24 && alignof(Bfloat16Tensor<float, 3, 4>) == 4);
static_assert(sizeof(Bfloat16Tensor<float, 3, 5>) == 32);  // whole floats: sets have no gaps
constinit Bfloat16Tensor<float, 2, 3> zeroed{};

}  // namespace

TEST(Bfloat16Tensor, rounds_to_nearest_on_write) {
  auto& tensor = zeroed;
  tensor(0, 1) = 1.0f + 0x1p-8f;             // halfway: to even
  tensor(0, 2) = 1.0f + 0x1p-8f + 0x1p-20f;  // above
  tensor(1, 0) = -3;
  EXPECT_EQ(tensor(0, 0), 0.0f);
  EXPECT_EQ(tensor(0, 1), 1.0f);
  EXPECT_EQ(tensor(0, 2), 1.0078125f);
  EXPECT_EQ(tensor(1, 0), -3.0f);
  tensor(1, 1) = std::numeric_limits<float>::quiet_NaN();
  tensor(1, 2) = -std::numeric_limits<float>::infinity();
  EXPECT_NE(float(tensor(1, 1)), float(tensor(1, 1)));
  EXPECT_EQ(tensor(1, 2), -std::numeric_limits<float>::infinity());
  tensor.set_zero();
  EXPECT_EQ(tensor(1, 2), 0.0f);
}

TEST(Bfloat16Tensor, starts_as_the_rounded_numbers_of_a_tensor) {
  Tensor<float, 5, 7> floats;
  Bfloat16Tensor<float, 5, 7> drawn, copied;
  attune::Rng of_floats(1), of_halves(1);
  attune::XavierUniform{}.weight(floats, of_floats);
  attune::XavierUniform{}.weight(drawn, of_halves);
  attune::detail::copy_elements(floats, copied);
  for (int i = 0; i < 35; ++i) {
    EXPECT_EQ(drawn.values[i].bits, attune::round_to_bf16(floats.values[i]).bits);
    EXPECT_EQ(copied.values[i].bits, drawn.values[i].bits);
  }
  EXPECT_EQ(of_floats.next(), of_halves.next());
}

TEST(Bfloat16Tensor, multiplies_as_a_tensor_of_its_numbers) {
  Tensor<float, 5, 200> x, dy;
  Bfloat16Tensor<float, 200, 200> weight;
  Tensor<float, 200, 200> floats;
  attune::Rng rng(1);
  check::fill(x, rng);
  check::fill(dy, rng);
  attune::detail::fill_uniform(weight, 1.0f, rng);
  attune::detail::copy_elements(weight, floats);
  Tensor<float, 5, 200> y, expected;
  const auto expect_same = [&] { EXPECT_TRUE(check::same_bits(y, expected)); };
  attune::multiply(attune::view(x), weight, attune::view(y));
  attune::multiply(attune::view(x), floats, attune::view(expected));
  expect_same();
  attune::multiply_transposed(attune::view(dy), weight, attune::view(y));
  attune::multiply_transposed(attune::view(dy), floats, attune::view(expected));
  expect_same();
  const auto some = attune::view(y).columns<8>(16), expected_some = attune::view(expected).columns<8>(16);
  attune::multiply_transposed_rows(attune::view(dy), weight, 16, some);
  attune::multiply_transposed_rows(attune::view(dy), floats, 16, expected_some);
  expect_same();
  attune::look_up(weight, 7, y.data());
  attune::look_up(floats, 7, expected.data());
  expect_same();
  attune::add_table(weight, floats.data());
  EXPECT_EQ(floats(3, 3), 2 * float(weight(3, 3)));
}
