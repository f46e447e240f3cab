// Runs that end, in any way, and go on from their file.
#include <attune/host/training_run.hpp>

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
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
  signal(SIGINT, SIG_DFL);  // the background job of a shell ignores it
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

// clang-format off
/// The file of 15 of the 30 steps below, as version 1.0 wrote it. Not to be made again: newer versions read it.
constexpr unsigned char kRunOfVersion10[] = {
  0x41,0x54,0x46,0x31,0xc0,0xf0,0x70,0x15,0x04,0x01,0x00,0x00,0x00,0x00,0x00,0x00,0x5b,0x50,0xc4,0x3b,
  0x00,0x00,0x00,0x00,0xb0,0x2c,0xef,0x3e,0xf6,0x7b,0x30,0xbe,0x9c,0x65,0x4e,0xbd,0xc0,0xc9,0xcf,0xbe,
  0x77,0xaf,0x63,0x3f,0x06,0xe1,0xfc,0xbd,0xe7,0x02,0xd3,0x3c,0xda,0x26,0x90,0xbc,0x1e,0xc4,0x04,0x3e,
  0xa2,0x7f,0x29,0xbd,0xb4,0x03,0x93,0xbd,0x53,0x3b,0x0f,0xbe,0x59,0xc6,0x4a,0x3e,0x3f,0x5a,0xe5,0xbc,
  0xd6,0x27,0x0b,0xbd,0xb2,0x5a,0x3c,0x3e,0xe8,0xd1,0x49,0x3a,0x69,0x9e,0xea,0x39,0x23,0x24,0x0b,0x3a,
  0xb9,0x89,0x36,0x3a,0x8c,0x2d,0x04,0x3b,0x19,0x02,0x5f,0x3a,0xd0,0xea,0x12,0x3b,0x78,0x08,0xf2,0x3a,
  0xa0,0x0d,0xf8,0x1d,0x01,0xb8,0x4a,0xcb,0xc1,0x25,0xfa,0x3b,0x3e,0x30,0xd0,0x03,0x0f,0x00,0x00,0x00,
  0x00,0x00,0x00,0x00,0xc0,0xf0,0x70,0x15,0x73,0x2b,0xe5,0xfd,0x0f,0x00,0x00,0x00,0x00,0x00,0x00,0x00,
  0x0f,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00,
  0x00,0x00,0x00,0x00,0xf6,0x52,0x71,0x16,0x08,0x98,0xa1,0x3f,0x1a,0xb3,0x12,0x3f,0xd8,0xc4,0x37,0xbe,
  0x90,0xcd,0xe8,0xbd,0x11,0x2b,0x03,0xbf,0xe0,0xea,0x80,0x3f,0x04,0xcc,0x4b,0xbe,0x00,0x00,0x00,0x00,
  0x00,0x00,0x00,0x00,0xdc,0xef,0x33,0x3f,0x76,0x93,0x49,0x3f,0x5f,0x0d,0x16,0x3f,0x63,0x09,0xbe,0x3e,
  0x30,0x47,0x35,0x3f,0xf0,0x39,0x10,0x3f,0xcf,0x6b,0x85,0x3e,0x93,0x03,0x52,0x3e,0xe2,0x86,0xc1,0x3e,
  0xae,0x6f,0x16,0x3f,0xd2,0x1b,0x0a,0x3e,0x3a,0xa9,0x2d,0x3f,0xac,0x3f,0x09,0x3f,0x1a,0x0e,0x99,0x3e,
  0x88,0x2f,0x1d,0x3f,
};
// clang-format on

TEST(ResumedRun, of_version_1_0_is_resumed) {
  using Small = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
  using SmallTrainer = attune::host::ParallelTrainer<Small, attune::MeanSquaredError, attune::AdamW, 2>;
  const File file;
  std::ofstream(file.path, std::ios::binary)
      .write(reinterpret_cast<const char*>(kRunOfVersion10), sizeof kRunOfVersion10);
  SmallTrainer trainer({.threads = 1});
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  std::vector<int> taken;
  const auto run = run_training(
      trainer, {.steps = 30, .write = nullptr, .file = file.path, .save_every = 5},
      [&](int index) {
        SmallTrainer::BatchInput x;
        SmallTrainer::BatchTarget target;
        attune::Rng rng(static_cast<std::uint64_t>(index + 1));
        check::fill(x, rng);
        check::fill(target, rng);
        taken.push_back(index);
        return trainer.step(x, target, {.learning_rate = 1e-2f});
      },
      [] { return 0.0; });
#if ATTUNE_FUSED
  EXPECT_EQ(run.status, Status::kOtherArithmetic);
  EXPECT_TRUE(taken.empty());
#else
  EXPECT_EQ(run.status, Status::kOk);
  ASSERT_EQ(taken.size(), 15u);
  EXPECT_EQ(taken.front(), 15);
  EXPECT_EQ(attune::hash_bits(trainer.parameters()), 0xb10bb93bu);
#endif
}
