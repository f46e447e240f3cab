#include <attune/layers/per_sequence.hpp>

#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using attune::Status;
using Lanes = attune::kernels::Lanes<float>;
constexpr int kLanes = attune::kernels::kSequencesIn<Lanes>;
template <class Layer>
using PerSequence = attune::detail::PerSequence<Layer, Lanes>;

using Linear = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
// It inherits what Linear says of itself, which is not said of it.
struct Own : Linear {};
static_assert(std::is_same_v<attune::detail::WithScalarOf<Own, Lanes>::type, PerSequence<Own>>);
static_assert(std::is_same_v<attune::detail::WithScalarOf<Linear, Lanes>::type, Linear::WithScalar<Lanes>>);
static_assert(std::is_same_v<attune::detail::WithScalarOf<Own, float>::type, Own>);
using ManyRows =
    attune::Linear<attune::LinearShape{.rows = attune::kernels::kDepthBlock + 1, .d_in = 3, .d_out = 4}>;
static_assert(std::is_same_v<attune::detail::WithScalarOf<ManyRows, Lanes>::type, PerSequence<ManyRows>>);

// Lane `lane` of a matrix.
template <int rows, int cols>
attune::Tensor<float, rows, cols> sequence(const attune::Tensor<Lanes, rows, cols>& lanes, int lane) {
  attune::Tensor<float, rows, cols> one;
  attune::kernels::take_lane(one.size, lanes.data(), lane, one.data());
  return one;
}

}  // namespace

TEST(PerSequence, runs_each_sequence_as_the_layer_does) {
  static Linear::Parameters parameters, gradients{}, expected{};
  static PerSequence<Linear>::Input x, dx;
  static PerSequence<Linear>::Output y, dy;
  static PerSequence<Linear>::Tape tape;
  static PerSequence<Linear>::Scratch scratch;
  static PerSequence<Linear>::InferenceScratch inference_scratch;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  for (int lane = 0; lane < kLanes; ++lane) {
    Linear::Input of_x;
    Linear::Output of_dy;
    check::fill(of_x, rng);
    check::fill(of_dy, rng);
    attune::kernels::put_lane(of_x.size, of_x.data(), lane, x.data());
    attune::kernels::put_lane(of_dy.size, of_dy.data(), lane, dy.data());
  }
  PerSequence<Linear>::forward(parameters, x, y, inference_scratch);
  const PerSequence<Linear>::Output inferred = y;
  PerSequence<Linear>::forward(parameters, x, y, tape, scratch);
  EXPECT_TRUE(check::same_bits(inferred, y));
  PerSequence<Linear>::backward(parameters, x, tape, dy, attune::View<PerSequence<Linear>::Input>(dx),
                                gradients, scratch);
  for (int lane = 0; lane < kLanes; ++lane) {
    Linear::Tape of_tape;
    Linear::Scratch of_scratch;
    Linear::Output of_y;
    Linear::Input of_dx;
    Linear::forward(parameters, sequence(x, lane), of_y, of_tape, of_scratch);
    EXPECT_TRUE(check::same_bits(of_y, sequence(y, lane)));
    Linear::backward(parameters, sequence(x, lane), of_tape, sequence(dy, lane),
                     attune::View<Linear::Input>(of_dx), expected, of_scratch);
    EXPECT_TRUE(check::same_bits(of_dx, sequence(dx, lane)));
  }
  EXPECT_TRUE(check::same_bits(gradients, expected));  // added in the order of the sequences
}

TEST(PerSequence, refuses_the_ids_that_the_layer_refuses) {
  using Tokens = attune::Embedding<attune::EmbeddingShape{.seq_len = 2, .vocabulary = 5, .d_model = 3}>;
  static Tokens::Parameters parameters;
  static PerSequence<Tokens>::Input ids{};
  static PerSequence<Tokens>::Output y;
  static PerSequence<Tokens>::Tape tape;
  static PerSequence<Tokens>::Scratch scratch;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  ids[2 * kLanes - 1] = 4;  // of the last sequence
  EXPECT_EQ(PerSequence<Tokens>::forward(parameters, ids, y, tape, scratch), Status::kOk);
  EXPECT_EQ(sequence(y, kLanes - 1)(1, 2), parameters.weight(4, 2));
  EXPECT_EQ(sequence(y, kLanes - 1)(0, 2), parameters.weight(0, 2));
  ids[2 * kLanes - 1] = 5;
  EXPECT_EQ(PerSequence<Tokens>::forward(parameters, ids, y, tape, scratch), Status::kInvalidToken);
}
