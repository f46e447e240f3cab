#include <attune/training/trainer.hpp>

#include <attune/layers/linear.hpp>
#include <attune/training/cross_entropy.hpp>

#include "check.hpp"

namespace {

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 4}>;
using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW>;
constexpr attune::AdamW::Options kOptions{.learning_rate = 0.01f};

constexpr float kSample[2] = {0.5f, -1.0f};

// The parameters after one step that `take` takes.
template <class Take>
std::uint32_t after(const Take& take) {
  static Trainer trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  EXPECT_EQ(take(trainer), attune::Status::kOk);
  return attune::hash_bits(trainer.parameters());
}

}  // namespace

TEST(Trainer, takes_one_label_as_a_number) {
  const std::array<int, 1> labels{3};
  const std::uint32_t expected =
      after([&](Trainer& trainer) { return trainer.step(kSample, labels, kOptions).status; });
  EXPECT_NE(after([](Trainer&) { return attune::Status::kOk; }), expected);
  EXPECT_EQ(after([](Trainer& trainer) { return trainer.step(kSample, 3, kOptions).status; }), expected);
  EXPECT_EQ(after([](Trainer& trainer) {
              EXPECT_EQ(trainer.accumulate(kSample, 4), attune::Status::kInvalidTarget);
              EXPECT_EQ(trainer.accumulate(kSample, 3), attune::Status::kOk);
              return trainer.update(kOptions).status;
            }),
            expected);
}
