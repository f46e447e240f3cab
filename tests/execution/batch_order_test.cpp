#include <attune/execution/batch_order.hpp>

#include <attune/attention/sequence_length.hpp>
#include <attune/execution/pass.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/convolution.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/token_type.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

// A flag of one thread: a number that nobody waits for in vain.
struct Flag {
  std::uint32_t value = 0;
  void publish(std::uint32_t number) { value = number; }
  std::uint32_t wait_for(std::uint32_t number) const {
    EXPECT_GE(value, number);
    return value;
  }
};
using Order = attune::AdditionOrder<Flag>;
struct Sets {
  float sequence, batch;
  [[nodiscard]] std::ptrdiff_t to_batch() const {
    return reinterpret_cast<const char*>(&batch) - reinterpret_cast<const char*>(&sequence);
  }
};

}  // namespace

TEST(AdditionOrder, adds_to_the_gradients_of_the_batch_after_the_sequence_before) {
  Flag flags[2];
  Sets sets{};
  Order first(nullptr, flags[0], sets.to_batch()), second(&flags[0], flags[1], sets.to_batch());
  first.run(sets.sequence, [](float& gradient) { gradient += 1e8f; });
  second.run(sets.sequence, [](float& gradient) { gradient += 1; });
  EXPECT_EQ(sets.batch, 1e8f);
  EXPECT_EQ(sets.sequence, 0.0f);
  EXPECT_EQ(flags[1].value, 1u);
  first.end();
  second.run(sets.sequence, [](float& gradient) { gradient -= 1e8f; });
  EXPECT_EQ(sets.batch, 0.0f);
  EXPECT_EQ(flags[1].value, 2u);
}

TEST(AdditionOrder, nothing_is_added_after_a_sequence_that_was_refused) {
  Flag flags[3];
  Sets sets{};
  Order(nullptr, flags[0], sets.to_batch()).refuse();
  for (int sequence = 1; sequence < 3; ++sequence) {
    Order order(&flags[sequence - 1], flags[sequence], sets.to_batch());
    order.run(sets.sequence, [](float& gradient) { gradient += 1; });
    order.run(sets.sequence, [](float& gradient) { gradient += 1; });
    order.end();
  }
  EXPECT_EQ(sets.batch, 0.0f);
  EXPECT_EQ(sets.sequence, 4.0f);
}

// A Sequential passes the order on. Its Linear adds once, to the sequence's gradients.
TEST(InBatchOrder, layers_that_add_more_than_once_add_to_the_gradients_of_the_batch) {
  using Model = attune::Sequential<attune::Linear<attune::LinearShape{3, 2, 2}>,
                                   attune::TokenType<attune::TokenTypeShape{.seq_len = 3, .d_model = 2}>>;
  static Model::Parameters parameters, expected, gradients[2];
  static Model::Tape tape;
  static Model::Scratch scratch;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  Model::Input x;
  Model::Output y, dy;
  check::fill(x, rng);
  check::fill(dy, rng);
  attune::forward<Model>(parameters, x, y, tape, scratch);
  attune::backward<Model>(parameters, x, tape, dy, attune::NoGradient{}, expected, scratch);

  Flag flag;
  Order order(nullptr, flag, sizeof gradients[0]);
  attune::forward<Model>(parameters, x, y, tape, scratch);
  attune::detail::backward_pass<Model>(
      attune::context_for<Model>(attune::NoMask{}, attune::InBatchOrder(order)), parameters,
      attune::ConstView<Model::Input>(x), tape, attune::ConstView<Model::Output>(dy), attune::NoGradient{},
      gradients[0], scratch);
  EXPECT_TRUE(check::same_bits(gradients[0].layer<0>(), expected.layer<0>()));
  EXPECT_TRUE(check::same_bits(gradients[1].layer<1>(), expected.layer<1>()));
  EXPECT_EQ(gradients[0].layer<1>().weight(0, 0), 0.0f);
  EXPECT_EQ(flag.value, 1u);
}

TEST(RelayOrder, adds_to_one_set_after_the_sequence_before) {
  Flag flags[2];
  float gradient = 0;
  attune::RelayOrder<Flag> first(nullptr, flags[0]), second(&flags[0], flags[1]);
  first.run(gradient, [](float& g) { g += 1e8f; });
  second.run(gradient, [](float& g) { g += 1; });
  first.run(gradient, [](float& g) { g -= 1e8f; });
  second.run(gradient, [](float& g) { g += 2; });
  EXPECT_EQ(gradient, 2.0f);
  EXPECT_EQ(flags[1].value, 2u);
}

TEST(RelayOrder, nothing_runs_after_a_sequence_that_was_refused) {
  Flag flags[2];
  attune::RelayOrder<Flag>(nullptr, flags[0]).refuse();
  attune::RelayOrder<Flag> order(&flags[0], flags[1]);
  float gradient = 0;
  order.run(gradient, [](float& g) { g += 1; });
  order.slices_of_one_addition().stage([&] { gradient += 1; });
  order.end();
  EXPECT_EQ(gradient, 0.0f);
  EXPECT_EQ(flags[1].value, flags[0].value);
}

// A layer that adds once takes a turn for each stage, one that adds more often takes one, and a layer without
// parameters takes none. Behind a length, which decides how many stages there are, every layer takes one.
TEST(RelayOrder, turns_are_stages_or_whole_layers) {
  const auto turns_of = []<class Model>(Model*, const auto& mask) {
    static typename Model::Parameters parameters, gradients, expected;
    static typename Model::Tape tape;
    static typename Model::Scratch scratch;
    attune::Rng rng(1);
    check::fill_set(parameters, rng);
    typename Model::Input x;
    typename Model::Output y, dy;
    check::fill(x, rng);
    check::fill(dy, rng);
    attune::forward<Model>(parameters, x, y, tape, scratch, mask);
    attune::backward<Model>(parameters, x, tape, dy, attune::NoGradient{}, expected, scratch, mask);
    Flag flag;
    attune::RelayOrder<Flag> order(nullptr, flag);
    attune::forward<Model>(parameters, x, y, tape, scratch, mask);
    attune::detail::backward_pass<Model>(attune::context_for<Model>(mask, attune::InBatchOrder(order)),
                                         parameters, attune::ConstView<typename Model::Input>(x), tape,
                                         attune::ConstView<typename Model::Output>(dy), attune::NoGradient{},
                                         gradients, scratch);
    EXPECT_TRUE(check::same_bits(gradients, expected));
    return flag.value;
  };
  using Once = attune::Linear<attune::LinearShape{3, 2, 2}>;
  using Many =
      attune::Conv1d<attune::Conv1dShape{.seq_len = 3, .d_in = 2, .d_out = 2, .kernel = 3, .padding = 1}>;
  using Pooled = attune::Sequential<Once, attune::Pooling<attune::PoolingShape{3, 2}>>;
  const attune::NoMask all;
  attune::SequenceLength<3> length;
  EXPECT_EQ(length.set_length(2), attune::Status::kOk);
  EXPECT_GT(turns_of(static_cast<Once*>(nullptr), all), 1u);
  EXPECT_EQ(turns_of(static_cast<Many*>(nullptr), all), 1u);
  EXPECT_EQ(turns_of(static_cast<attune::Sequential<attune::Relu<3, 2>, Many>*>(nullptr), all), 1u);
  EXPECT_GT(turns_of(static_cast<Pooled*>(nullptr), all), 1u);
  EXPECT_EQ(turns_of(static_cast<Pooled*>(nullptr), length), 1u);
}
