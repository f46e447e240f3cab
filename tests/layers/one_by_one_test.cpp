#include <attune/layers/one_by_one.hpp>

#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using attune::Status;
using Lanes = attune::kernels::Lanes<float>;
constexpr int kLanes = attune::kernels::kSequencesIn<Lanes>;
template <class Layer>
using OneByOne = attune::detail::OneByOne<Layer, Lanes>;

using Linear = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
// It inherits what Linear says of itself, which is not said of it.
struct Own : Linear {};
static_assert(std::is_same_v<attune::detail::WithScalarOf<Own, Lanes>::type, OneByOne<Own>>);
static_assert(std::is_same_v<attune::detail::WithScalarOf<Linear, Lanes>::type, Linear::WithScalar<Lanes>>);
static_assert(std::is_same_v<attune::detail::WithScalarOf<Own, float>::type, Own>);
using ManyRows =
    attune::Linear<attune::LinearShape{.rows = attune::kernels::kDepthBlock + 1, .d_in = 3, .d_out = 4}>;
static_assert(std::is_same_v<attune::detail::WithScalarOf<ManyRows, Lanes>::type, OneByOne<ManyRows>>);

// Lane `lane` of a matrix.
template <int rows, int cols>
attune::Tensor<float, rows, cols> sequence(const attune::Tensor<Lanes, rows, cols>& lanes, int lane) {
  attune::Tensor<float, rows, cols> one;
  attune::kernels::take_lane(one.size, lanes.data(), lane, one.data());
  return one;
}

}  // namespace

TEST(OneByOne, runs_each_sequence_as_the_layer_does) {
  static Linear::Parameters parameters, gradients{}, expected{};
  static OneByOne<Linear>::Input x, dx;
  static OneByOne<Linear>::Output y, dy;
  static OneByOne<Linear>::Tape tape;
  static OneByOne<Linear>::Scratch scratch;
  static OneByOne<Linear>::InferenceScratch inference_scratch;
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
  OneByOne<Linear>::forward(parameters, x, y, inference_scratch);
  const OneByOne<Linear>::Output inferred = y;
  OneByOne<Linear>::forward(parameters, x, y, tape, scratch);
  EXPECT_TRUE(check::same_bits(inferred, y));
  OneByOne<Linear>::backward(parameters, x, tape, dy, attune::View<OneByOne<Linear>::Input>(dx), gradients,
                             scratch);
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

TEST(OneByOne, refuses_the_ids_that_the_layer_refuses) {
  using Tokens = attune::Embedding<attune::EmbeddingShape{.seq_len = 2, .vocabulary = 5, .d_model = 3}>;
  static Tokens::Parameters parameters;
  static OneByOne<Tokens>::Input ids{};
  static OneByOne<Tokens>::Output y;
  static OneByOne<Tokens>::Tape tape;
  static OneByOne<Tokens>::Scratch scratch;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  ids[2 * kLanes - 1] = 4;  // of the last sequence
  EXPECT_EQ(OneByOne<Tokens>::forward(parameters, ids, y, tape, scratch), Status::kOk);
  EXPECT_EQ(sequence(y, kLanes - 1)(1, 2), parameters.weight(4, 2));
  EXPECT_EQ(sequence(y, kLanes - 1)(0, 2), parameters.weight(0, 2));
  ids[2 * kLanes - 1] = 5;
  EXPECT_EQ(OneByOne<Tokens>::forward(parameters, ids, y, tape, scratch), Status::kInvalidToken);
}
