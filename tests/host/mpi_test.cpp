// A program of its own, on any number of ranks: tests/host/ranks starts it. Every rank runs all tests.
//   attune_mpi_tests --leave RANK    this rank leaves by an exception, and the others wait for it
//   attune_mpi_tests --end RANK      this rank comes to its end while the others wait for it
//   attune_mpi_tests --hang RANK     this rank hangs before it sends; --hang-at-end RANK: when all is done
#include <attune/host/mpi.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/host/distributed_trainer.hpp>
#include <attune/layers/convolution.hpp>
#include <attune/models/tied.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/sgd.hpp>

#include "check.hpp"

namespace {

attune::host::Ranks* ranks = nullptr;

constexpr int kBatch = 5;
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 6, .d_model = 8, .num_heads = 2}>;

int leave(int rank) {
  try {
    attune::host::MpiRanks of_job;
    if (of_job.rank() == rank) throw std::runtime_error("a rank without data");
    attune::host::hand_out(of_job, {});
    (void)attune::host::of_all_ranks(of_job, 0);
  } catch (const std::exception&) {
    return 0;  // if the job were still there
  }
  return 0;
}

int end_early(int rank) {
  attune::host::MpiRanks of_job;
  (void)attune::host::of_all_ranks(of_job, 0);
  if (of_job.rank() == rank) return 0;
  (void)attune::host::of_all_ranks(of_job, 0);
  return 0;
}

int hang(int rank, bool at_end) {
  attune::host::MpiRanks of_job({.longest_wait = std::chrono::milliseconds(4800)});
  if (at_end) (void)attune::host::of_all_ranks(of_job, 0);
  if (of_job.rank() == rank) std::this_thread::sleep_for(std::chrono::minutes(2));
  if (!at_end) (void)attune::host::of_all_ranks(of_job, 0);
  return 0;
}

}  // namespace

TEST(MpiRanks, pass_on_data_larger_than_a_message_without_waiting) {
  std::vector<int> values(std::size_t{1} << 20, ranks->rank());
  if (ranks->rank() == 0) values.back() = 17;
  attune::host::hand_out(*ranks, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values.front(), 0);
  EXPECT_EQ(values.back(), 17);
  const auto all = attune::host::of_all_ranks(*ranks, 3 * ranks->rank());
  ASSERT_EQ(all.size(), static_cast<std::size_t>(ranks->size()));
  EXPECT_EQ(all.back(), 3 * (ranks->size() - 1));
}

TEST(MpiRanks, train_to_the_bits_of_a_trainer) {
  static attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, kBatch> expected;
  attune::host::DistributedTrainer<Layer, attune::MeanSquaredError, attune::AdamW, kBatch> trainer(
      *ranks, {.threads = 2, .chunk_bytes = 256});
  expected.initialize(attune::XavierUniform{}, attune::Rng{42});
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  for (int step = 0; step < 20; ++step) {
    attune::Tensor<float, kBatch * 6, 8> x, target;
    check::fill(x, rng);
    check::fill(target, rng);
    const auto one = expected.step(x, target, {}, attune::GradientClipping{0.5f});
    const auto all = trainer.step(x, target, {}, attune::GradientClipping{0.5f});
    EXPECT_TRUE(check::same_bits(all.loss, one.loss));
  }
  EXPECT_TRUE(check::same_bits(trainer.parameters(), expected.parameters()));
}

// Tied adds to its table twice, and the convolution several times.
TEST(MpiRanks, train_layers_that_add_more_than_once_to_the_bits_of_a_trainer) {
  using Model = attune::Tied<
      attune::Embedding<attune::EmbeddingShape{.seq_len = 18, .vocabulary = 11, .d_model = 4}>,
      attune::Conv1d<attune::Conv1dShape{.seq_len = 18, .d_in = 4, .d_out = 4, .kernel = 3, .padding = 1}>>;
  static attune::Trainer<Model, attune::CrossEntropy<>, attune::Sgd<>, kBatch> expected;
  attune::host::DistributedTrainer<Model, attune::CrossEntropy<>, attune::Sgd<>, kBatch> trainer(
      *ranks, {.threads = 2, .chunk_bytes = 256});
  expected.initialize(attune::XavierUniform{}, attune::Rng{42});
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  attune::Rng rng(1);
  for (int step = 0; step < 5; ++step) {
    std::array<int, std::size_t{kBatch * 18}> x, target;
    for (int& id : x) id = static_cast<int>(rng.next() % 11);
    for (int& id : target) id = static_cast<int>(rng.next() % 11);
    EXPECT_TRUE(expected.step(x, target, {.learning_rate = 1}).ok());
    EXPECT_TRUE(trainer.step(x, target, {.learning_rate = 1}).ok());
  }
  EXPECT_TRUE(check::same_bits(trainer.parameters(), expected.parameters()));
}

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "--leave") return leave(std::atoi(argv[2]));
  if (argc > 2 && std::string_view(argv[1]) == "--end") return end_early(std::atoi(argv[2]));
  if (argc > 2 && std::string_view(argv[1]) == "--hang") return hang(std::atoi(argv[2]), false);
  if (argc > 2 && std::string_view(argv[1]) == "--hang-at-end") return hang(std::atoi(argv[2]), true);
  testing::InitGoogleTest(&argc, argv);
  attune::host::MpiRanks of_job;
  ranks = &of_job;
  const int code = RUN_ALL_TESTS();
  if (of_job.rank() == 0) std::printf("ranks: %d\n", of_job.size());
  return code;
}
