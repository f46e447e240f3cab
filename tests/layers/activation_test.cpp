#include <attune/layers/activation.hpp>

#include "check.hpp"

namespace {

using attune::Activation;
constexpr int kRows = 7, kCols = 11;  // no multiple of any packet

template <Activation kind, class Scalar = float>
using Layer = attune::ActivationLayer<kind, kRows, kCols, Scalar>;

template <class Scalar>
attune::Tensor<Scalar, kRows, kCols> random_input(std::uint64_t seed) {
  attune::Rng rng(seed);
  attune::Tensor<Scalar, kRows, kCols> x;
  check::fill(x, rng, -6, 6);
  return x;
}

template <int kind>
constexpr char kNumber[] = {'0' + kind / 10, '0' + kind % 10, 0};
// visit.operator()<kind>(its number as text), for every function.
template <class Visit>
void for_each_activation(const Visit& visit) {
  [&]<int... kinds>(std::integer_sequence<int, kinds...>) {
    (visit.template operator()<Activation{kinds}>(kNumber<kinds>), ...);
  }
  (std::make_integer_sequence<int, attune::kActivationCount>());
}
// Those that are x or nothing far from zero.
template <class Visit>
void for_each_rectifier(const Visit& visit) {
  for_each_activation([&]<Activation kind>(const char* number) {
    if constexpr (kind != Activation::kTanh && kind != Activation::kSigmoid &&
                  kind != Activation::kSquaredRelu && kind != Activation::kElu)
      visit.template operator()<kind>(number);
  });
}

}  // namespace

// Gradients: transformer_gradients_test.cpp; the functions underneath: kernels/sigmoids_test.cpp.

// Where vectors and blocks end, and for every kind of number, each element is that of a single scalar.
TEST(Activation, relu_has_one_arithmetic) {
  const float subnormal = attune::kFlushesSubnormals ? 0 : 1e-40f, least = 1.17549435e-38f,
              largest = 3.4028235e38f;
  const float values[] = {0,
                          -0.0f,
                          subnormal,
                          -subnormal,
                          least,
                          -least,
                          largest,
                          -largest,
                          1,
                          -1,
                          check::kInfinity<float>,
                          -check::kInfinity<float>,
                          check::kNan<float>,
                          -check::kNan<float>};
  constexpr int kCount = 14;
  for (int size = 0; size <= kCount; ++size) {
    for (int start = 0; start < kCount; ++start) {
      attune::Tensor<float, 1, kCount> x, dy, y{}, dx{};
      for (int i = 0; i < kCount; ++i) {
        x.data()[i] = values[(i + start) % kCount];
        dy.data()[i] = values[(3 * i + start + 1) % kCount];
      }
      attune::kernels::activate<Activation::kRelu>(size, x.data(), y.data());
      attune::kernels::activate_backward<Activation::kRelu>(size, x.data(), dy.data(), dx.data());
      for (int i = 0; i < kCount; ++i) {
        const float below = x.data()[i] < 0 ? 0 : x.data()[i], passed = x.data()[i] > 0 ? dy.data()[i] : 0;
        EXPECT_TRUE(check::same_bits(y.data()[i], i < size ? below : 0.0f)) << size << start << i;
        EXPECT_TRUE(check::same_bits(dx.data()[i], i < size ? passed : 0.0f)) << size << start << i;
      }
    }
  }
}

TEST(Activation, relu_passes_nothing_at_zero_and_below) {
  const attune::Tensor<float, 1, 3> x{{-1, 0, 2}}, dy{{5, 6, 7}};
  attune::Tensor<float, 1, 3> dx;
  attune::Relu<1, 3>::backward(x, dy, dx);
  const attune::Tensor<float, 1, 3> expected{{0, 0, 7}};
  EXPECT_TRUE(check::same_bits(dx, expected));
}

TEST(Activation, far_from_zero_is_the_identity_or_nothing) {
  for_each_rectifier([]<Activation kind>(const char* number) {
    SCOPED_TRACE(number);
    for (const float x : {20.0f, 1e10f}) {
      EXPECT_EQ(attune::kernels::activate<kind>(x), x);
      EXPECT_NEAR(attune::kernels::activate<kind>(-x), 0.0f, 5e-8f);
      EXPECT_EQ(attune::kernels::activate_backward<kind>(x, 3.0f), 3.0f);
      EXPECT_NEAR(attune::kernels::activate_backward<kind>(-x, 3.0f), 0.0f, 2e-7f);
    }
    EXPECT_EQ(attune::kernels::activate<kind>(0.0f), 0.0f);
    EXPECT_TRUE(check::is_nan(attune::kernels::activate<kind>(check::kNan<float>)));
  });
}

TEST(Activation, of_tanh_sigmoid_and_squared_relu_have_limits) {
  using attune::kernels::activate;
  for (const float x : {20.0f, 1e10f, check::kInfinity<float>}) {
    EXPECT_EQ(activate<Activation::kTanh>(x), 1.0f);
    EXPECT_EQ(activate<Activation::kTanh>(-x), -1.0f);
    EXPECT_EQ(activate<Activation::kSigmoid>(x), 1.0f);
    EXPECT_NEAR(activate<Activation::kSigmoid>(-x), 0.0f, 3e-9f);
    EXPECT_EQ(activate<Activation::kSquaredRelu>(-x), 0.0f);
    EXPECT_EQ(activate<Activation::kElu>(x), x);
    EXPECT_EQ(activate<Activation::kElu>(-x), -1.0f);
    EXPECT_NEAR(attune::kernels::activate_backward<Activation::kTanh>(x, 3.0f), 0.0f, 1e-12f);
    EXPECT_EQ(attune::kernels::activate_backward<Activation::kSquaredRelu>(-x, 3.0f), 0.0f);
  }
}

TEST(Activation, exact_gelu_of_infinity_is_infinity_or_nothing) {
  constexpr float kInf = check::kInfinity<float>;
  auto x = random_input<float>(8);
  x.values[2] = kInf, x.values[9] = -kInf, x.values[76] = -kInf;
  Layer<Activation::kGelu>::Output y;
  Layer<Activation::kGelu>::forward(x, y);
  EXPECT_EQ(y.values[2], kInf);
  EXPECT_EQ(y.values[9], 0.0f);
  EXPECT_EQ(y.values[76], 0.0f);
  EXPECT_EQ(attune::kernels::activate<Activation::kGelu>(-static_cast<double>(kInf)), 0.0);
}

TEST(Activation, works_in_place) {
  for_each_activation([]<Activation kind>(const char* number) {
    SCOPED_TRACE(number);
    const auto x = random_input<float>(1), dy = random_input<float>(2);
    typename Layer<kind>::Output y, in_place = x, dx, over_dy = dy, over_x = x;
    Layer<kind>::forward(x, y);
    Layer<kind>::forward(in_place, in_place);
    EXPECT_TRUE(check::same_bits(y, in_place));
    Layer<kind>::backward(x, dy, dx);
    Layer<kind>::backward(x, over_dy, over_dy);
    Layer<kind>::backward(over_x, dy, over_x);
    EXPECT_TRUE(check::same_bits(dx, over_dy));
    EXPECT_TRUE(check::same_bits(dx, over_x));
  });
}

TEST(Activation, of_packets_has_the_bits_of_scalars) {
  for_each_activation([]<Activation kind>(const char* number) {
    SCOPED_TRACE(number);
    auto x = random_input<float>(3);
    int changed = 0;
    for (const float far :
         {0.0f, -0.0f, -100.0f, 100.0f, -87.5f, 87.5f, 8.7f, -8.7f, -43.0f, 1e10f, -1e38f, 1e-30f}) {
      x.values[changed] = far;
      changed += 5;
    }
    const auto dy = random_input<float>(4);
    typename Layer<kind>::Output y, dx;
    Layer<kind>::forward(x, y);
    Layer<kind>::backward(x, dy, dx);
    for (int i = 0; i < x.size; ++i) {
      ASSERT_TRUE(check::same_bits(y.values[i], attune::kernels::activate<kind>(x.values[i])));
      ASSERT_TRUE(check::same_bits(dx.values[i],
                                   attune::kernels::activate_backward<kind>(x.values[i], dy.values[i])));
    }
  });
}

TEST(Activation, keeps_a_nan_where_it_stands) {
  for_each_activation([]<Activation kind>(const char* number) {
    SCOPED_TRACE(number);
    auto x = random_input<float>(7);
    for (const int i : {3, 40, 76}) x.values[i] = i == 40 ? -check::kNan<float> : check::kNan<float>;
    typename Layer<kind>::Output y;
    Layer<kind>::forward(x, y);
    for (int i = 0; i < x.size; ++i) {
      EXPECT_EQ(check::is_nan(y.values[i]), i == 3 || i == 40 || i == 76);
    }
  });
}

TEST(Activation, has_the_same_bits_everywhere) {
  check::BitHash hash;
  for_each_activation([&]<Activation kind>(const char*) {
    typename Layer<kind>::Output y, dx;
    Layer<kind>::forward(random_input<float>(5), y);
    Layer<kind>::backward(random_input<float>(5), random_input<float>(6), dx);
    for (const float value : y.values) hash.add(value);
    for (const float value : dx.values) hash.add(value);
  });
  EXPECT_EQ(hash.value(), check::by_policy(0x85CAB9C3u, 0x7A63A7E0u));
}
