#include <attune/training/forward_loss.hpp>

#include <attune/execution/slices.hpp>
#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using namespace attune;
using Layer = Linear<LinearShape{1, 1, 1}>;

struct Answer {
  Status status;
  float y, dy, loss;
};
Answer answer_of(float weight, float x_value, float target_value) {
  const Layer::Parameters parameters{.weight = {{weight}}, .bias = {{1}}};
  const Layer::Input x{{x_value}};
  const Layer::Output target{{target_value}};
  Layer::Output output;
  Layer::Tape tape;
  Layer::Scratch scratch;
  LossSum<float> sum{};
  Answer answer{};
  answer.status = detail::forward_loss<Layer>(
      Context<>{}, parameters, view(x), view(output), view(target), MeanSquaredError{}, sum,
      [&answer](const auto& y) { answer.y = y(0, 0); }, tape, scratch);
  answer.dy = output(0, 0);
  answer.loss = sum.sum;
  return answer;
}

}  // namespace

TEST(ForwardLoss, the_gradient_takes_the_place_of_the_output) {
  const Answer answer = answer_of(2, 3, 4);
  EXPECT_EQ(answer.status, Status::kOk);
  EXPECT_EQ(answer.y, 7.0f);
  EXPECT_EQ(answer.loss, 9.0f);
  EXPECT_EQ(answer.dy, 6.0f);
}

TEST(ForwardLoss, that_is_not_finite_is_refused) {
  EXPECT_EQ(answer_of(check::kInfinity<float>, 1, 0).status, Status::kNotFinite);
  EXPECT_EQ(answer_of(check::kNan<float>, 1, 0).status, Status::kNotFinite);
}
