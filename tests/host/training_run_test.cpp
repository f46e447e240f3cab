#include <attune/host/training_run.hpp>

#include <limits>

#include <attune/host/parallel_trainer.hpp>
#include <attune/layers/linear.hpp>

#include "check.hpp"
#include "training/batch_data.hpp"

namespace {

using attune::Status;
using attune::host::run_training;
using attune::host::TrainingEnd;

// A training whose parameters say how many steps it has taken.
struct Counter {
  struct Result {
    float loss;
    Status status;
  };
  int taken = 0;
  [[nodiscard]] const int& parameters() const { return taken; }
  Result step(Status status = Status::kOk) {
    if (status == Status::kOk) ++taken;
    return {1.0f / static_cast<float>(taken), status};
  }
};

struct Written {
  std::string text;
  [[nodiscard]] attune::host::TrainingProgress::Write write() {
    return [this](std::string_view more) { text += more; };
  }
};

}  // namespace

TEST(TrainingRun, takes_its_steps_and_keeps_their_losses) {
  Counter trainer;
  std::vector<int> indices;
  const auto run = run_training(trainer, {.steps = 4, .write = nullptr}, [&](int index) {
    indices.push_back(index);
    return trainer.step();
  });
  EXPECT_EQ(run.end, TrainingEnd::kAllSteps);
  EXPECT_EQ(run.steps, 4);
  EXPECT_EQ(indices, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(run.losses, (std::vector{1.0f, 1.0f / 2, 1.0f / 3, 1.0f / 4}));
  EXPECT_EQ(*run.best, 4);  // without validation: the last
  EXPECT_EQ(run.best_step, 4);
  EXPECT_TRUE(run.validations.empty());
  EXPECT_GE(run.seconds, 0);
}

TEST(TrainingRun, keeps_the_parameters_of_the_best_validation) {
  Counter trainer;
  const double accuracies[] = {0.5, 0.75, 0.75, 0.625};
  std::size_t validation = 0;
  const auto run = run_training(
      trainer, {.steps = 10, .validate_every = 3, .write = nullptr}, [&](int) { return trainer.step(); },
      [&] { return accuracies[validation++]; });
  ASSERT_EQ(run.validations.size(), 4u);  // after 3, 6, 9, and the end
  EXPECT_EQ(run.validations[2].step, 9);
  EXPECT_EQ(run.validations[3].step, 10);
  EXPECT_EQ(run.validations[3].accuracy, 0.625);
  EXPECT_EQ(run.best_step, 6);  // the first of equals
  EXPECT_EQ(run.best_accuracy, 0.75);
  EXPECT_EQ(*run.best, 6);
  EXPECT_EQ(trainer.taken, 10);
}

TEST(TrainingRun, does_not_validate_twice_at_the_end) {
  Counter trainer;
  const auto run = run_training(
      trainer, {.steps = 4, .validate_every = 2, .write = nullptr}, [&](int) { return trainer.step(); },
      [] { return 1.0; });
  EXPECT_EQ(run.validations.size(), 2u);
}

TEST(TrainingRun, ends_when_patience_does) {
  Counter trainer;
  Written written;
  // Better after 2 and 6; then never again.
  const auto run = run_training(
      trainer, {.steps = 100, .validate_every = 2, .patience = 3, .write = written.write()},
      [&](int) { return trainer.step(); },
      [&] { return trainer.taken == 2   ? 0.25
                   : trainer.taken == 6 ? 0.5
                                        : 0.125; });
  EXPECT_EQ(run.end, TrainingEnd::kNoPatience);
  EXPECT_EQ(run.steps, 12);
  EXPECT_EQ(*run.best, 6);
  EXPECT_EQ(run.best_accuracy, 0.5);
  EXPECT_NE(written.text.find("no better accuracy since step 6: stopped after 12 steps\n"), std::string::npos)
      << written.text;
}

TEST(TrainingRun, an_accuracy_that_is_not_a_number_is_never_the_best) {
  Counter trainer;
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  const double accuracies[] = {kNan, 0.25, kNan};
  std::size_t validation = 0;
  const auto run = run_training(
      trainer, {.steps = 3, .validate_every = 1, .write = nullptr}, [&](int) { return trainer.step(); },
      [&] { return accuracies[validation++]; });
  EXPECT_EQ(*run.best, 2);
  EXPECT_EQ(run.best_accuracy, 0.25);
}

TEST(TrainingRun, ctrl_c_ends_it_and_keeps_the_parameters) {
  std::signal(SIGINT, SIG_DFL);
  Counter trainer;
  Written written;
  const auto run = run_training(
      trainer, {.steps = 100, .validate_every = 4, .write = written.write()},
      [&](int index) {
        if (index == 5) std::raise(SIGINT);
        return trainer.step();
      },
      [&] { return trainer.taken == 4 ? 0.25 : 0.5; });
  EXPECT_EQ(run.end, TrainingEnd::kInterrupted);
  EXPECT_EQ(run.steps, 6);  // the step in which it came counts
  EXPECT_EQ(run.validations.size(), 2u);
  EXPECT_EQ(*run.best, 6);
  EXPECT_NE(written.text.find("interrupted after 6 steps"), std::string::npos) << written.text;
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_DFL);
}

TEST(TrainingRun, a_refused_step_ends_it) {
  Counter trainer;
  Written written;
  const auto run = run_training(
      trainer, {.steps = 100, .write = written.write()},
      [&](int index) { return trainer.step(index == 3 ? Status::kNotFinite : Status::kOk); },
      [] { return 0.5; });
  EXPECT_EQ(run.end, TrainingEnd::kRefused);
  EXPECT_EQ(run.status, Status::kNotFinite);
  EXPECT_EQ(run.steps, 3);
  EXPECT_EQ(run.losses.size(), 3u);
  EXPECT_EQ(*run.best, 3);
  EXPECT_NE(written.text.find(attune::message(Status::kNotFinite)), std::string::npos) << written.text;
}

TEST(TrainingRun, memory_is_of_the_steps_that_are_taken) {
  Counter trainer;
  const auto run =
      run_training(trainer, {.steps = std::numeric_limits<int>::max(), .write = nullptr},
                   [&](int index) { return trainer.step(index < 3 ? Status::kOk : Status::kNotFinite); });
  EXPECT_EQ(run.steps, 3);
  EXPECT_LE(run.losses.capacity(), 1000u);
}

TEST(TrainingRun, without_steps_the_initial_parameters_are_the_best) {
  Counter trainer;
  const auto run = run_training(
      trainer, {.write = nullptr}, [&](int) { return trainer.step(); }, [] { return 0.5; });
  EXPECT_EQ(run.steps, 0);
  EXPECT_EQ(run.validations.size(), 1u);
  EXPECT_EQ(*run.best, 0);
}

TEST(TrainingRun, runs_any_trainer) {
  using Model = attune::Linear<attune::LinearShape{.rows = 3, .d_in = 4, .d_out = 2}>;
  using Parallel = attune::host::ParallelTrainer<Model, attune::MeanSquaredError, attune::AdamW, 8>;
  Parallel parallel({.threads = 2});
  static Parallel::PerSequence per_sequence;
  static const check::Batch<Parallel> data(1);
  const auto losses_of = [](auto& trainer) {
    trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
    return run_training(trainer, {.steps = 50, .write = nullptr},
                        [&](int) { return trainer.step(data.x, data.target, {.learning_rate = 0.01f}); })
        .losses;
  };
  const std::vector<float> losses = losses_of(parallel);
  EXPECT_EQ(losses, losses_of(per_sequence));
  EXPECT_LT(losses.back(), losses.front());
}
