// Layers that add to a gradient more than once, on several ranks. With a learning rate of 1, a gradient that
// differs in its last bit changes the parameters.
#include <attune/attune.hpp>
#include <attune/host/distributed_trainer.hpp>

#include <memory>

#include "host/parallel_layers.hpp"
#include "host/thread_ranks.hpp"

using namespace parallel_layers;

namespace {

using attune::Status;
using attune::host::Ranks;

// Three steps on 1 to 3 ranks, and on more ranks than sequences. The second step may have an input that is
// not finite.
template <class Model, class Loss = attune::CrossEntropy<>, class Plan = attune::BySequence,
          class Masks = attune::NoMask>
void expect_bits_of_a_trainer(const Masks& masks = {}, int not_finite = -1) {
  using Trainer = attune::Trainer<Model, Loss, attune::Sgd<>, kBatch, Plan>;
  using Distributed = attune::host::DistributedTrainer<Model, Loss, attune::Sgd<>, kBatch, Plan>;
  constexpr int kSteps = 3;
  std::vector<check::Batch<Trainer>> batches;
  for (std::uint64_t step = 0; step < kSteps; ++step) batches.emplace_back(step);
  if constexpr (requires { batches[1].x.values; }) {
    if (not_finite >= 0) {
      const auto rows = static_cast<std::size_t>(batches[1].x.size / kBatch);
      batches[1].x.values[rows * static_cast<std::size_t>(not_finite)] = check::kNan<float>;
    }
  }
  const auto expected = std::make_unique<Trainer>();
  expected->initialize(attune::XavierUniform{}, attune::Rng{42});
  for (int step = 0; step < kSteps; ++step) {
    const auto& data = batches[static_cast<std::size_t>(step)];
    const auto result = expected->step(data.x, data.target, kOptions, attune::NoClipping{}, masks);
    EXPECT_EQ(result.ok(), step != 1 || not_finite < 0);
  }
  for (const int size : {1, 2, 3, kBatch + 1}) {
    for (const int threads : {1, 2}) {
      const auto thrown = check::on_ranks(size, [&](Ranks& ranks) {
        Distributed trainer(ranks, {.threads = threads,
                                    .gradient_bytes = threads == 1 ? 0 : std::size_t{1} << 20,
                                    .chunk_bytes = threads == 1 ? std::size_t{128} : std::size_t{1} << 20});
        trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
        for (const auto& data : batches)
          (void)trainer.step(data.x, data.target, kOptions, attune::NoClipping{}, masks);
        EXPECT_EQ(std::memcmp(&trainer.state(), &expected->state(), sizeof expected->state()), 0)
            << size << " ranks, " << threads << " threads";
      });
      for (const std::string& what : thrown) EXPECT_EQ(what, "");
    }
  }
}

}  // namespace

TEST(DistributedLayers, that_add_more_than_once_have_the_bits_of_a_trainer) {
  expect_bits_of_a_trainer<TiedModel>();
  expect_bits_of_a_trainer<Mixed>();
  expect_bits_of_a_trainer<attune::Linear<attune::LinearShape{200, 3, 2}>, attune::MeanSquaredError>();
}

#if !ATTUNE_TEST_QUICK  // compiling these takes long

TEST(DistributedLayers, with_dropout_and_lengths_have_the_bits_of_a_trainer) {
  std::array<attune::SequenceLength<18>, kBatch> lengths;
  for (int i = 0; i < kBatch; ++i)
    ASSERT_EQ(lengths[static_cast<std::size_t>(i)].set_length(18 - 3 * i), Status::kOk);
  expect_bits_of_a_trainer<Dropping>(lengths);
  for (int sequence = 0; sequence < kBatch; ++sequence)
    expect_bits_of_a_trainer<Dropping>(attune::NoMask{}, sequence);
}

TEST(DistributedLayers, of_const_types_have_the_bits_of_a_trainer) {
  using Trainer = attune::Trainer<OwnModel, attune::CrossEntropy<>, attune::AdamW, kBatch>;
  static Trainer expected;
  const check::Batch<Trainer> data(1);
  expected.initialize(attune::XavierUniform{}, attune::Rng{42});
  ASSERT_TRUE(expected.step(data.x, data.target, {}).ok());
  const auto thrown = check::on_ranks(2, [&](Ranks& ranks) {
    attune::host::DistributedTrainer<const OwnModel, const attune::CrossEntropy<>, const attune::AdamW,
                                     kBatch>
        trainer(ranks, {.threads = 1});
    trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
    EXPECT_TRUE(trainer.step(data.x, data.target, {}).ok());
    EXPECT_TRUE(check::same_bits(trainer.parameters(), expected.parameters()));
  });
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}

#endif
