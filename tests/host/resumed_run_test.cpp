// Runs that end, in any way, and go on from their file.
#include <attune/host/training_run.hpp>

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <thread>

#include <attune/host/parallel_trainer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "host/temporary_folder.hpp"

namespace {

using attune::Status;
using attune::host::run_training;
using attune::host::TrainingEnd;

constexpr attune::EncoderLayerShape kShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2, .dropout = 0.25}, .d_ff = 8};
using Model = attune::Sequential<attune::Linear<attune::LinearShape{4, 3, 8}>, attune::EncoderLayer<kShape>>;
using Trainer = attune::host::ParallelTrainer<Model, attune::MeanSquaredError, attune::AdamW, 4>;

constexpr int kSteps = 60;

struct Training {
  attune::Rng data{3};  // goes on from step to step: kept beside
  Trainer trainer{{.threads = 2}};
  Training() { trainer.initialize(attune::XavierUniform{}, attune::Rng{1}); }

  auto operator()(const std::string& file, int steps = kSteps, int patience = 0, int pause = 0,
                  int save_every = 7) {
    Trainer::BatchInput x;
    Trainer::BatchTarget target;
    return run_training(
        trainer,
        {.steps = steps,
         .validate_every = 10,
         .patience = patience,
         .write = nullptr,
         .file = file,
         .save_every = save_every,
         .beside = std::as_writable_bytes(std::span(&data, 1))},
        [&](int) {
          if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
          check::fill(x, data);
          check::fill(target, data);
          return trainer.step(x, target, {});
        },
        [&] { return 1 / (1 + static_cast<double>(trainer.state().steps % 30)); });
  }
};

struct File {
  check::TemporaryFolder folder;
  std::string path = folder.file("run");
};

template <class Result>
void expect_same(const Training& a, const Result& of_a, const Training& b, const Result& of_b) {
  EXPECT_EQ(attune::hash_bits(a.trainer.state()), attune::hash_bits(b.trainer.state()));
  EXPECT_EQ(a.trainer.state().steps, b.trainer.state().steps);
  EXPECT_EQ(of_a.end, of_b.end);
  EXPECT_EQ(of_a.losses, of_b.losses);
  EXPECT_EQ(attune::hash_bits(*of_a.best), attune::hash_bits(*of_b.best));
  EXPECT_EQ(of_a.best_step, of_b.best_step);
  ASSERT_EQ(of_a.validations.size(), of_b.validations.size());
  for (std::size_t i = 0; i < of_a.validations.size(); ++i) {
    EXPECT_EQ(of_a.validations[i].step, of_b.validations[i].step);
    EXPECT_EQ(of_a.validations[i].accuracy, of_b.validations[i].accuracy);
  }
}

}  // namespace

TEST(ResumedRun, resumes_to_the_same_bits_when_killed_at_any_time) {
  const File file;
  Training without_stop;
  const auto expected = without_stop("");
  attune::Rng when(5);
  int kills = 0;
  for (bool ended = false; !ended && kills < 200;) {
    const pid_t child = fork();
    if (child == 0) {
      Training run;
      _exit(run(file.path, kSteps, 0, 500, 3).end == TrainingEnd::kAllSteps ? 0 : 1);
    }
    // About a third of the run.
    std::this_thread::sleep_for(std::chrono::microseconds(3000 + when.next() % 15000));
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      ASSERT_TRUE(ended);
      break;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    ++kills;
  }
  EXPECT_GT(kills, 0);
  Training last;
  const auto run = last(file.path);
  EXPECT_EQ(run.steps, kSteps);
  expect_same(last, run, without_stop, expected);
}

TEST(ResumedRun, resumes_after_ctrl_c_and_with_more_steps) {
  const File file;
  Training without_stop, first, second;
  const auto expected = without_stop("");
  int calls = 0;
  const auto interrupted = run_training(first.trainer,
                                        {.steps = kSteps,
                                         .write = nullptr,
                                         .file = file.path,
                                         .save_every = 0,
                                         .beside = std::as_writable_bytes(std::span(&first.data, 1))},
                                        [&](int) {
                                          Trainer::BatchInput x;
                                          Trainer::BatchTarget target;
                                          check::fill(x, first.data);
                                          check::fill(target, first.data);
                                          if (++calls == 13) raise(SIGINT);
                                          return first.trainer.step(x, target, {});
                                        });
  EXPECT_EQ(interrupted.end, TrainingEnd::kInterrupted);
  EXPECT_EQ(interrupted.steps, 13);
  const auto part = second(file.path, 40);
  EXPECT_EQ(part.steps, 40);
  Training third;
  const auto rest = third(file.path);
  EXPECT_EQ(attune::hash_bits(third.trainer.state()), attune::hash_bits(without_stop.trainer.state()));
  EXPECT_EQ(rest.losses, expected.losses);
}

TEST(ResumedRun, stays_ended_after_patience_ran_out) {
  const File file;
  Training without_stop, first, second;
  const auto expected = without_stop("", kSteps, 2);
  ASSERT_EQ(expected.end, TrainingEnd::kNoPatience);
  (void)first(file.path, 30, 2);
  const auto run = second(file.path, kSteps, 2);
  EXPECT_EQ(run.steps, expected.steps);
  Training third;
  const auto again = third(file.path, kSteps, 2);
  EXPECT_EQ(again.end, TrainingEnd::kNoPatience);
  EXPECT_EQ(again.steps, expected.steps);
}

TEST(ResumedRun, may_add_patience_when_resumed) {
  const File file;
  Training first, second;
  const auto patient = first(file.path, 40);  // the best is that of step 30
  EXPECT_EQ(patient.steps, 40);
  const auto run = second(file.path, kSteps, 2);
  EXPECT_EQ(run.end, TrainingEnd::kNoPatience);
  EXPECT_EQ(run.steps, 50);
}

TEST(ResumedRun, of_another_training_or_a_damaged_file_takes_no_step_and_leaves_the_file) {
  const File file;
  Training run;
  (void)run(file.path, 10);
  Training other;
  std::byte more[3] = {};
  const std::uint32_t before = attune::hash_bits(other.trainer.state());
  const auto ends = [&](std::span<std::byte> beside) {
    const auto result =
        run_training(other.trainer, {.steps = 20, .write = nullptr, .file = file.path, .beside = beside},
                     [&](int) { return Trainer::Result{}; });
    EXPECT_EQ(result.end, TrainingEnd::kNotSaved);
    EXPECT_EQ(result.steps, 0);
    EXPECT_EQ(attune::hash_bits(other.trainer.state()), before);
    return result.status;
  };
  EXPECT_EQ(ends(more), Status::kOtherState);
  std::filesystem::resize_file(file.path, 100);
  EXPECT_EQ(ends({}), Status::kUnreadable);
  EXPECT_EQ(std::filesystem::file_size(file.path), 100u);
}

TEST(ResumedRun, impossible_counts_are_refused) {
  const File file;
  Training first;
  static_cast<void>(first(file.path));
  constexpr std::uint32_t kFingerprint = Trainer::State::kFingerprint;
  std::vector<std::byte> bytes;
  ASSERT_EQ(attune::host::load_whole_file(file.path, kFingerprint, bytes), Status::kOk);
  // Of a size that is the file's where products wrap.
  std::int32_t counts[2];  // losses, validations
  std::byte* const at = bytes.data() + sizeof(Trainer::State) + 2 * sizeof counts[0];
  std::memcpy(counts, at, sizeof counts);
  ASSERT_EQ(counts[0], kSteps);
  counts[1] += (counts[0] + 4) / 4;
  counts[0] = -4;
  std::memcpy(at, counts, sizeof counts);
  ASSERT_EQ(attune::host::save_whole_file(file.path, kFingerprint, {bytes}), Status::kOk);
  Training second;
  const auto run = second(file.path);
  EXPECT_EQ(run.end, TrainingEnd::kNotSaved);
  EXPECT_EQ(run.status, Status::kOtherState);
  EXPECT_EQ(run.steps, 0);
}

TEST(ResumedRun, ends_if_the_file_cannot_be_written) {
  Training run;
  const auto result = run("/no/such/folder/run", kSteps, 0, 0, 7);
  EXPECT_EQ(result.end, TrainingEnd::kNotSaved);
  EXPECT_EQ(result.status, Status::kFileFault);
  EXPECT_EQ(result.steps, 7);
}
