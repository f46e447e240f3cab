// Products with a narrow B against a plain loop in the documented arithmetic, bit for bit: every element,
// rests of every size, sums of several blocks, all epilogues. Also: widening in packets is that of scalars.
#include <attune/kernels/simd/dequantize.hpp>

#include <attune/core/tensor.hpp>

#include "kernels/gemm_check.hpp"
#include "kernels/sizes.hpp"

namespace {

namespace kernels = attune::kernels;
using attune::Bfloat16, attune::Float16, attune::Int8;
using kernels::ScalesOf;

template <class Element>
Element random_element(attune::Rng& rng) {
  const float value = rng.uniform(-1.0f, 1.0f);
  if constexpr (std::is_same_v<Element, Int8>) {
    return attune::quantize_int8(value, 1.0f / 128);
  } else if constexpr (std::is_same_v<Element, Bfloat16>) {
    return attune::round_to_bf16(value);
  } else {
    return attune::round_to_f16(value);
  }
}

template <class Element>
Element quantized_operand[check::kLargestOperand];
inline constexpr int kMaxScales = 400;
template <class Scalar>
Scalar scales[kMaxScales];

// All operands of a product, in the order of their numbers.
template <class Element, class Scalar>
[[gnu::noinline]] void fill_operands(int m, int n, int depth) {
  attune::Rng rng(static_cast<std::uint64_t>(m * 10007 + n * 101 + depth));
  for (int i = 0; i < n * depth; ++i) quantized_operand<Element>[i] = random_element<Element>(rng);
  for (int i = 0; i < kMaxScales; ++i) scales<Scalar>[i] = rng.uniform(Scalar(0.1), Scalar(1));
  Scalar *const a = check::operands<Scalar>[0], *const c = check::operands<Scalar>[2];
  for (int i = 0; i < m * depth; ++i) a[i] = rng.uniform(Scalar(-1), Scalar(1));
  for (int i = 0; i < m * n; ++i) c[i] = check::operands<Scalar>[3][i] = rng.uniform(Scalar(-1), Scalar(1));
}

// C is what the documented arithmetic has.
template <class Element, class Scalar, bool kForward, class Epilogue>
[[gnu::noinline]] void expect_product(int m, int n, int depth, const Epilogue& epilogue) {
  const Scalar *const a = check::operands<Scalar>[0], *const scale = scales<Scalar>;
  Scalar *const b = check::operands<Scalar>[1], *const expected = check::operands<Scalar>[3];
  constexpr bool kScaled = Element::kScaled;
  const int row_stride = kForward ? 1 : n, col_stride = kForward ? depth : 1;
  for (int i = 0; i < n * depth; ++i) {
    b[i] = static_cast<Scalar>(attune::dequantize(quantized_operand<Element>[i]));
    if (kScaled && !kForward) b[i] = scale[i / n] * b[i];
  }
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      Scalar total = 0;
      for (int from = 0; from < depth; from += kernels::kDepthBlock) {
        Scalar block = 0;
        for (int k = from; k < depth && k < from + kernels::kDepthBlock; ++k) {
          block = kernels::multiply_add<Scalar>(a[i * depth + k], b[k * row_stride + j * col_stride], block);
        }
        if (kScaled && kForward) block = scale[j] * block;
        if (std::is_same_v<Epilogue, kernels::Accumulate>) expected[i * n + j] += block;
        total = from == 0 ? block : total + block;
      }
      if (!std::is_same_v<Epilogue, kernels::Accumulate>) {
        expected[i * n + j] = epilogue(total, static_cast<const Scalar*>(expected), j);
      }
    }
  }
  EXPECT_TRUE(std::memcmp(check::operands<Scalar>[2], expected,
                          sizeof(Scalar) * static_cast<std::size_t>(m * n)) == 0)
      << m << n << depth << kForward;
}

// B[depth, n] of a matrix that is stored as its transpose, as weights are: forward and, with kRows, dx.
template <class Element, class Scalar, int m, int n, int depth, bool kForward, class Epilogue>
void check_product(const Epilogue& epilogue) {
  static_assert(n * depth <= check::kLargestOperand && m * n <= check::kLargestOperand &&
                m * depth <= check::kLargestOperand && n <= kMaxScales && depth <= kMaxScales);
  fill_operands<Element, Scalar>(m, n, depth);

  constexpr bool kScaled = Element::kScaled;
  constexpr ScalesOf kScalesOf = !kScaled   ? ScalesOf::kNothing
                                 : kForward ? ScalesOf::kColumns
                                            : ScalesOf::kRows;
  constexpr int kRowStride = kForward ? 1 : n, kColStride = kForward ? depth : 1;
  using View = kernels::QuantizedView<Element, Scalar, depth, n, kRowStride, kColStride, kScalesOf>;
  const Scalar* const a = check::operands<Scalar>[0];
  Scalar* const c = check::operands<Scalar>[2];
  kernels::gemm(attune::MatrixView<const Scalar, m, depth>(a),
                View{quantized_operand<Element>, kScaled ? scales<Scalar> : nullptr},
                attune::MatrixView<Scalar, m, n>(c), epilogue);
  expect_product<Element, Scalar, kForward>(m, n, depth, epilogue);
}

template <int m, int n, int depth, class Epilogue = kernels::Assign>
void check_elements(const Epilogue& epilogue = {}) {
  check_product<Int8, float, m, n, depth, true>(epilogue);
  check_product<Int8, float, m, n, depth, false>(epilogue);
  check_product<Bfloat16, float, m, n, depth, true>(epilogue);
  check_product<Bfloat16, float, m, n, depth, false>(epilogue);
  check_product<Float16, float, m, n, depth, true>(epilogue);
  check_product<Float16, float, m, n, depth, false>(epilogue);
}

// Rests of rows and of depth are those of the tile, whatever the elements are; each is read in both
// directions.
template <const auto& table>
void check_sizes() {
  check::for_each_size<table>([]<int m, int n, int depth> {
    check_product<Int8, float, m, n, depth, true>(kernels::Assign{});
    check_product<Int8, float, m, n, depth, false>(kernels::Assign{});
    check_product<Bfloat16, float, m, n, depth, true>(kernels::Assign{});
    check_product<Float16, float, m, n, depth, false>(kernels::Assign{});
  });
}
template <const auto& table>
void check_columns() {
  check::for_each_size<table>([]<int m, int n, int depth> { check_elements<m, n, depth>(); });
}

template <class P, class Element, class Make>
void expect_widened(const Make& make) {
  constexpr int kWidth = kernels::kLanes<P>;
  using Scalar = kernels::ScalarOf<P>;
  for (int first = 0; first < 0x10000; first += kWidth) {
    Element elements[std::size_t{kWidth}];
    Scalar lanes[std::size_t{kWidth}];
    for (int i = 0; i < kWidth; ++i) elements[i] = make(first + i);
    kernels::store(lanes, kernels::detail::load_of_b<P>(elements));
    for (int i = 0; i < kWidth; ++i) {
      const auto expected = static_cast<Scalar>(attune::dequantize(elements[i]));
      if (check::is_nan(expected)) {
        ASSERT_TRUE(check::is_nan(lanes[i]));
      } else {
        ASSERT_TRUE(check::same_bits(lanes[i], expected)) << first + i;
      }
    }
  }
}
template <class P>
void expect_all_widened() {
  expect_widened<P, Int8>([](int i) { return Int8{static_cast<std::int8_t>(i)}; });
  expect_widened<P, Bfloat16>([](int i) { return Bfloat16{static_cast<std::uint16_t>(i)}; });
  expect_widened<P, Float16>([](int i) { return Float16{static_cast<std::uint16_t>(i)}; });
}

}  // namespace

TEST(Dequantize, in_packets_as_in_scalars) {
  expect_all_widened<kernels::Packet<float>>();
  expect_all_widened<kernels::Packet<float, 8>>();
  expect_all_widened<kernels::Packet<float, 4>>();
  expect_all_widened<float>();
  expect_all_widened<kernels::Packet<double>>();
  expect_all_widened<double>();
}

TEST(Dequantize, products_of_every_rest_of_rows) {
  static constexpr check::Sizes kSizes[] = {{1, 8, 6}, {8, 8, 6}, {9, 8, 8}, {4, 8, 2}, {12, 9, 7}};
  static constexpr check::Sizes kOnHost[] = {{2, 8, 6}, {7, 8, 5}, {15, 4, 3}, {16, 4, 4}, {4, 4, 1}};
  check_sizes<kSizes>();
  if constexpr (check::kDepth >= check::kFullHost) check_sizes<kOnHost>();
}

TEST(Dequantize, products_of_one_row) {
  check_elements<1, 64, 17>();
  check_elements<1, 69, 16>();
  check_elements<1, 11, 194>(kernels::Accumulate{});
  attune::Tensor<float, 1, 67> bias;
  attune::Rng rng(5);
  check::fill(bias, rng);
  check_elements<1, 67, 19>(kernels::AddBias<float>{bias.data()});
}

TEST(Dequantize, products_of_every_rest_of_columns) {
  static constexpr check::Sizes kSizes[] = {{8, 3, 5}, {5, 7, 5}, {8, 13, 9}, {4, 37, 11}};
  static constexpr check::Sizes kOnHost[] = {{8, 1, 6}, {8, 2, 6}};
  check_columns<kSizes>();
  if constexpr (check::kDepth >= check::kFullHost) check_columns<kOnHost>();
}

TEST(Dequantize, products_of_every_depth) {
  static constexpr check::Sizes kSizes[] = {{8, 4, 3}, {16, 6, 4}, {8, 4, 7}, {8, 4, 33}};
  static constexpr check::Sizes kOnHost[] = {{8, 4, 1}, {8, 4, 2}};
  check_sizes<kSizes>();
  if constexpr (check::kDepth >= check::kFullHost) check_sizes<kOnHost>();
}

TEST(Dequantize, products_of_large_matrices) {
  check_elements<40, 48, 64>();
  check_elements<35, 260, 36>();
}

TEST(Dequantize, sums_of_several_blocks) {
  check_elements<9, 5, 192>();
  check_elements<9, 5, 193>();
  check_elements<8, 6, 400>();
  check_elements<8, 6, 400>(kernels::Accumulate{});
  attune::Tensor<float, 1, 6> bias{{1, 2, 3, 4, 5, 6}};
  check_elements<8, 6, 400>(kernels::AddBias<float>{bias.data()});
}

TEST(Dequantize, every_epilogue) {
  attune::Tensor<float, 1, 14> bias;
  attune::Rng rng(4);
  check::fill(bias, rng);
  check_elements<11, 13, 10>(kernels::Accumulate{});
  if constexpr (check::kDepth >= check::kFullHost) {
    check_elements<11, 13, 10>(kernels::Scale<float>{0.3f});
    check_elements<11, 13, 10>(kernels::AddBias<float>{bias.data()});
    check_elements<12, 13, 9>(kernels::Accumulate{});
    check_elements<12, 13, 9>(kernels::AddBias<float>{bias.data()});
  }
  check_elements<16, 14, 8>(kernels::Accumulate{});
  check_elements<16, 14, 8>(kernels::AddBias<float>{bias.data()});
}

TEST(Dequantize, products_in_double) {
  check_product<Int8, double, 9, 13, 10, true>(kernels::Assign{});
  check_product<Int8, double, 9, 13, 10, false>(kernels::Assign{});
  check_product<Bfloat16, double, 9, 13, 10, true>(kernels::Accumulate{});
  check_product<Float16, double, 9, 13, 10, false>(kernels::Assign{});
}
