#include <Eigen/Core>

#include <attune/attention/multi_head_attention.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "problem.hpp"

namespace {

using attune::AttentionShape;
using attune::MultiHeadAttention;
using attune::Scaling;
using attune::Tensor;
using check::kInfinity;
using check::kNan;

constexpr AttentionShape kSelf{.seq_len = 5, .d_model = 6, .num_heads = 3};
constexpr AttentionShape kCross = check::kAllSizesDiffer;

template <AttentionShape shape, class Scalar = float>
struct Problem : check::AttentionProblem<shape, Scalar> {
  explicit Problem(std::uint64_t seed) { this->draw(seed); }
};

template <class X, class Projection>
double project(const X& x, const Projection& projection, int row, int col) {
  double sum = 0;
  if constexpr (requires { projection.bias(0, 0); }) sum = static_cast<double>(projection.bias(0, col));
  for (int k = 0; k < X::cols; ++k)
    sum += static_cast<double>(x(row, k)) * static_cast<double>(projection.weight(k, col));
  return sum;
}

// The definition, element by element in double: y(i, o) for `may_attend(head, i, j)`. Vectors of PyTorch have
// fewer widths and scalings.
template <AttentionShape shape, class MayAttend>
double expected_output(const Problem<shape, double>& a, double scale, int i, int o,
                       const MayAttend& may_attend) {
  const auto& output = a.parameters.output;
  double y = 0;
  if constexpr (shape.output_bias) y = static_cast<double>(output.bias(0, o));
  for (int head = 0; head < shape.num_heads; ++head) {
    double e[shape.kv_len], total = 0;
    for (int j = 0; j < shape.kv_len; ++j) {
      double score = 0;
      for (int d = 0; d < shape.d_k; ++d) {
        score += project(a.query, a.parameters.query, i, head * shape.d_k + d) *
                 project(a.key, a.parameters.key, j, shape.kv_head_of(head) * shape.d_k + d);
      }
      e[j] = may_attend(head, i, j) ? attune::kernels::exponential(scale * score) : 0;
      total += e[j];
    }
    for (int d = 0; d < shape.d_v; ++d) {
      double context = 0;
      for (int j = 0; j < shape.kv_len && total > 0; ++j)
        context +=
            e[j] / total * project(a.value, a.parameters.value, j, shape.kv_head_of(head) * shape.d_v + d);
      y += context * static_cast<double>(output.weight(head * shape.d_v + d, o));
    }
  }
  return y;
}

template <AttentionShape shape, class Mask, class MayAttend>
void expect_definition(double scale, const Mask& mask, const MayAttend& may_attend) {
  static Problem<shape, double> a(1);
  a.forward(mask);
  for (int i = 0; i < shape.seq_len; ++i) {
    for (int o = 0; o < shape.d_out; ++o)
      EXPECT_NEAR(a.y(i, o), expected_output(a, scale, i, o, may_attend), 1e-13);
  }
}

constexpr AttentionShape with(AttentionShape shape, bool bias, Scaling scaling) {
  shape.bias = shape.output_bias = bias;
  shape.scaling = scaling;
  return shape;
}
constexpr auto kAll = [](int, int, int) { return true; };

template <class Set>
void expect_all_zero(const Set& set) {
  attune::for_each_tensor(
      [](const attune::TensorPath& path, const auto& tensor) {
        SCOPED_TRACE(path.name);
        for (const auto value : tensor.values) EXPECT_TRUE(value == 0);
      },
      set);
}

}  // namespace

// Gradients: layer_gradients_test.cpp.

TEST(MultiHeadAttention, is_its_definition) {
  const double inverse_root_6 = attune::inverse_square_root<double>(6);
  expect_definition<kCross>(inverse_root_6, attune::NoMask{}, kAll);
  expect_definition<with(kCross, false, Scaling::kInverseSqrtDk)>(inverse_root_6, attune::NoMask{}, kAll);
}

TEST(MultiHeadAttention, every_scaling_is_its_definition) {
  expect_definition<with(kCross, true, Scaling::kInverseSqrtDModel)>(0.5, attune::NoMask{}, kAll);
  expect_definition<with(kCross, true, Scaling::kInverseFourthRootDkEach)>(
      attune::inverse_square_root<double>(6), attune::NoMask{}, kAll);
}

TEST(MultiHeadAttention, every_mask_is_its_definition) {
  const double scale = attune::inverse_square_root<double>(6);
  expect_definition<kCross>(scale, attune::CausalMask{.offset = 1},
                            [](int, int i, int j) { return j <= i + 1; });
  attune::KeyPaddingMask<5> keys;
  keys.set_valid({true, false, true, true, false});
  expect_definition<kCross>(scale, keys, [](int, int, int j) { return j == 0 || j == 2 || j == 3; });
  attune::QueryPaddingMask<3> queries;
  queries.set_valid({true, false, true});
  expect_definition<kCross>(scale, queries && keys,
                            [](int, int i, int j) { return i != 1 && (j == 0 || j == 2 || j == 3); });
  Tensor<double, 6, 5> per_head{};
  per_head(1, 4) = per_head(5, 0) = -kInfinity<double>;
  per_head(3, 2) = kInfinity<double>;
  expect_definition<kCross>(scale, attune::additive_mask_per_head<2>(per_head), [](int head, int i, int j) {
    if (head == 0) return !(i == 1 && j == 4);
    return i == 0 ? j == 2 : !(i == 2 && j == 0);
  });
}

TEST(MultiHeadAttention, inference_has_the_bits_of_training) {
  static Problem<kCross> a(3);
  a.forward();
  const Problem<kCross>::Layer::Output training = a.y;
  Problem<kCross>::Layer::forward(a.parameters, a.query, a.key, a.value, a.y, a.inference);
  EXPECT_TRUE(check::same_bits(a.y, training));
  const attune::CausalMask mask{.offset = 1};
  a.forward(mask);
  const Problem<kCross>::Layer::Output masked = a.y;
  attune::infer<Problem<kCross>::Layer>(a.parameters, a.query, a.key, a.value, a.y, a.inference, mask);
  EXPECT_TRUE(check::same_bits(a.y, masked));
  EXPECT_FALSE(check::same_bits(masked, training));
}

TEST(MultiHeadAttention, self_attention_is_cross_attention_of_one_input) {
  static Problem<kSelf> a(4);
  using Layer = Problem<kSelf>::Layer;
  static_assert(Layer::kSelfAttention && !MultiHeadAttention<kCross>::kSelfAttention);
  Layer::forward(a.parameters, a.query, a.y, a.tape, a.scratch);
  const Layer::Output one = a.y;
  Layer::forward(a.parameters, a.query, a.query, a.query, a.y, a.tape, a.scratch);
  EXPECT_TRUE(check::same_bits(a.y, one));
  Layer::forward(a.parameters, a.query, a.y, a.inference);
  EXPECT_TRUE(check::same_bits(a.y, one));
}

TEST(MultiHeadAttention, takes_eigen_matrices_and_writes_into_them) {
  static Problem<kSelf> a(5);
  using Layer = Problem<kSelf>::Layer;
  Eigen::Matrix<float, 5, 6, Eigen::RowMajor> x = a.query.matrix(), y;
  Layer::forward(a.parameters, x, y, a.inference);
  Layer::forward(a.parameters, a.query, a.y, a.inference);
  EXPECT_EQ(check::max_difference(attune::view(y), a.y), 0.0);
  float storage[30];
  Eigen::Map<Eigen::Matrix<float, 5, 6, Eigen::RowMajor>> map(storage);
  Layer::forward(a.parameters, x, map, a.inference);
  EXPECT_EQ(std::memcmp(storage, a.y.data(), sizeof storage), 0);
}

TEST(MultiHeadAttention, weights_of_a_head_are_on_the_tape) {
  static Problem<kCross> a(6);
  a.forward(attune::CausalMask{.offset = 1});
  Tensor<float, kCross.seq_len, kCross.kv_len> mean;
  a.tape.average_weights(mean);
  for (int i = 0; i < kCross.seq_len; ++i) {
    for (int head = 0; head < kCross.num_heads; ++head) {
      float sum = 0;
      for (int j = 0; j < kCross.kv_len; ++j) {
        const float weight = a.tape.head_weights(head)(i, j);
        sum += weight;
        EXPECT_EQ(weight > 0, j <= i + 1);
      }
      EXPECT_NEAR(sum, 1.0f, 5 * 0x1p-23f);
    }
    for (int j = 0; j < kCross.kv_len; ++j) {
      EXPECT_EQ(mean(i, j), (a.tape.head_weights(0)(i, j) + a.tape.head_weights(1)(i, j)) / 2);
    }
  }
}

TEST(MultiHeadAttention, fully_masked_queries_get_the_output_bias_and_no_score_gradient) {
  static Problem<kCross> a(7);
  attune::KeyPaddingMask<5> nothing;
  nothing.set_valid({false, false, false, false, false});
  a.forward(nothing);
  expect_all_zero(attune::LinearParameters<float, 6, 5, false>{a.tape.weights});
  expect_all_zero(attune::LinearParameters<float, 3, 14, false>{a.tape.outputs});
  for (int i = 0; i < 3; ++i) {
    for (int o = 0; o < 10; ++o) EXPECT_EQ(a.y(i, o), a.parameters.output.bias(0, o));
  }
  a.backward();
  expect_all_zero(a.gradients.query);
  expect_all_zero(a.gradients.key);
  expect_all_zero(a.gradients.value);
  for (const float d : a.gradients.output.weight.values) EXPECT_EQ(d, 0.0f);
  for (int o = 0; o < 10; ++o)
    EXPECT_EQ(a.gradients.output.bias(0, o), (a.dy(0, o) + a.dy(1, o)) + a.dy(2, o));
  for (const float d : a.d_query.values) EXPECT_EQ(d, 0.0f);
  for (const float d : a.d_key.values) EXPECT_EQ(d, 0.0f);
  for (const float d : a.d_value.values) EXPECT_EQ(d, 0.0f);
}

TEST(MultiHeadAttention, one_fully_masked_query_leaves_the_others_alone) {
  static Problem<kSelf> a(8);
  a.forward();
  const Problem<kSelf>::Layer::Output without = a.y;
  attune::QueryPaddingMask<5> queries;
  queries.set_valid({true, true, false, true, true});
  a.forward(queries);
  for (int i = 0; i < 5; ++i) {
    for (int o = 0; o < 6; ++o) EXPECT_EQ(a.y(i, o), i == 2 ? a.parameters.output.bias(0, o) : without(i, o));
  }
}

TEST(CausalMask, hides_later_tokens_of_self_attention) {
  static Problem<kSelf> a(9);
  using Layer = Problem<kSelf>::Layer;
  attune::forward<Layer>(a.parameters, a.query, a.y, a.tape, a.scratch, attune::CausalMask{});
  const Layer::Output before = a.y;
  for (int j = 0; j < 6; ++j) a.query(3, j) += 1.0f;
  attune::forward<Layer>(a.parameters, a.query, a.y, a.tape, a.scratch, attune::CausalMask{});
  for (int i = 0; i < 5; ++i) {
    bool same = true;
    for (int o = 0; o < 6; ++o) same = same && a.y(i, o) == before(i, o);
    EXPECT_EQ(same, i < 3);
  }
}

TEST(MultiHeadAttention, a_nan_in_the_input_is_not_hidden) {
  static Problem<kSelf> a(10);
  using Layer = Problem<kSelf>::Layer;
  a.query(4, 2) = kNan<float>;
  Layer::forward(a.parameters, a.query, a.y, a.tape, a.scratch);
  for (const float y : a.y.values) EXPECT_TRUE(check::is_nan(y));
  Layer::backward(a.parameters, a.query, a.tape, a.dy, a.d_query, a.gradients, a.scratch);
  for (const float d : a.gradients.query.weight.values) EXPECT_TRUE(check::is_nan(d));
}

TEST(MultiHeadAttention, a_nan_in_a_parameter_is_not_hidden) {
  static Problem<kSelf> a(11);
  using Layer = Problem<kSelf>::Layer;
  a.parameters.key.weight(0, 0) = kNan<float>;
  Layer::forward(a.parameters, a.query, a.y, a.tape, a.scratch);
  for (const float y : a.y.values) EXPECT_TRUE(check::is_nan(y));
}

TEST(MultiHeadAttention, gradient_of_self_attention_may_replace_its_input) {
  using Layer = MultiHeadAttention<kSelf>;
  static Problem<kSelf> a(21), over_x(21);
  Layer::forward(a.parameters, a.query, a.y, a.tape, a.scratch);
  over_x.tape = a.tape;
  Layer::backward(a.parameters, a.query, a.tape, a.dy, a.d_query, a.gradients, a.scratch);
  Layer::backward(over_x.parameters, over_x.query, over_x.tape, over_x.dy, over_x.query, over_x.gradients,
                  over_x.scratch);
  EXPECT_TRUE(check::same_bits(a.d_query, over_x.query));
  EXPECT_TRUE(check::same_bits(a.gradients, over_x.gradients));
}

TEST(MultiHeadAttention, gradient_of_the_query_may_replace_the_query) {
  static Problem<kCross> a(22), over_query(22);
  a.forward();
  over_query.forward();
  a.backward();
  using Layer = MultiHeadAttention<kCross>;
  Problem<kCross>& b = over_query;
  Layer::backward(b.parameters, b.query, b.key, b.value, b.tape, b.dy, b.query, b.d_key, b.d_value,
                  b.gradients, b.scratch);
  EXPECT_TRUE(check::same_bits(a.d_query, b.query));
  EXPECT_TRUE(check::same_bits(a.d_key, b.d_key));
  EXPECT_TRUE(check::same_bits(a.gradients, b.gradients));
}
