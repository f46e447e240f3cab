#include <attune/host/distributed_trainer.hpp>

#include <cstring>
#include <limits>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <attune/host/training_run.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/adafactor.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/stochastic_bfloat16.hpp>

#include "check.hpp"
#include "host/temporary_folder.hpp"
#include "host/thread_ranks.hpp"

namespace {

using attune::Status;
using attune::host::DistributedOptions;
using attune::host::DistributedTrainer;
using attune::host::Ranks;

constexpr int kBatch = 13;  // not a multiple of any number of ranks

template <int num_heads>
using ModelOf = attune::Sequential<
    attune::Linear<attune::LinearShape{6, 5, 8}>,
    attune::EncoderLayer<attune::EncoderLayerShape{
        .attention = {.seq_len = 6, .d_model = 8, .num_heads = num_heads, .dropout = 0.25}, .d_ff = 12}>,
    attune::Pooling<attune::PoolingShape{6, 8}>, attune::Linear<attune::LinearShape{1, 8, 3}>>;
using Model = ModelOf<2>;
using PerSequence = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, kBatch>;
using Distributed = DistributedTrainer<Model, attune::CrossEntropy<>, attune::AdamW, kBatch>;

struct Data {
  PerSequence::BatchInput x;
  PerSequence::BatchTarget target;
  explicit Data(std::uint64_t seed) {
    attune::Rng rng(seed);
    check::fill(x, rng);
    for (int& id : target) id = static_cast<int>(rng.next() % 3);
  }
};
constexpr attune::AdamW::Options kOptions{.learning_rate = 0.01f};
constexpr attune::GradientClipping kClipping{0.05f};

// What steps with the data of these seeds end with, on one machine.
PerSequence& after_steps(std::initializer_list<std::uint64_t> seeds) {
  static PerSequence trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  for (const std::uint64_t seed : seeds) {
    const Data data(seed);
    EXPECT_TRUE(trainer.step(data.x, data.target, kOptions, kClipping).ok());
  }
  return trainer;
}

void expect_nothing_thrown(const std::vector<std::string>& thrown) {
  for (const std::string& what : thrown) EXPECT_EQ(what, "");
}
void expect_all_say(const std::vector<std::string>& thrown, const std::string& what) {
  for (const std::string& said : thrown) EXPECT_EQ(said, "attune::DistributedTrainer: " + what);
}

}  // namespace

TEST(DistributedTrainer, has_the_bits_of_a_trainer_on_any_ranks_and_threads) {
  const PerSequence& expected = after_steps({1, 2, 3});
  for (const int size : {1, 2, 3, 5, kBatch + 2}) {
    for (const int threads : {1, 2}) {
      for (const bool least_memory : {false, true}) {
        const DistributedOptions options{
            .threads = threads,
            .gradient_bytes = least_memory ? 0 : std::numeric_limits<std::size_t>::max(),
            .chunk_bytes = least_memory ? std::size_t{100} : std::size_t{1} << 20};
        expect_nothing_thrown(check::on_ranks(size, [&](Ranks& ranks) {
          Distributed trainer(ranks, options);
          trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
          for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            Data data(seed);
            // What is another rank's is not read.
            for (int sequence = 0; sequence < kBatch; ++sequence) {
              if (sequence < trainer.first_sequence() || sequence >= trainer.end_sequence())
                data.x.values[30 * sequence] = check::kNan<float>;
            }
            EXPECT_TRUE(trainer.step(data.x, data.target, kOptions, kClipping).ok());
          }
          EXPECT_EQ(attune::hash_bits(trainer.state()), attune::hash_bits(expected.state()));
        }));
      }
    }
  }
}

TEST(DistributedTrainer, gives_the_loss_and_the_norm_of_a_trainer_to_every_rank) {
  PerSequence& trainer = after_steps({});
  const Data data(1);
  const auto expected = trainer.step(data.x, data.target, kOptions, kClipping);
  expect_nothing_thrown(check::on_ranks(3, [&](Ranks& ranks) {
    Distributed distributed(ranks, {.threads = 1});
    distributed.initialize(attune::XavierUniform{}, attune::Rng{42});
    const auto result = distributed.step(data.x, data.target, kOptions, kClipping);
    EXPECT_TRUE(check::same_bits(result.loss, expected.loss));
    EXPECT_TRUE(check::same_bits(result.gradient_norm, expected.gradient_norm));
  }));
}

TEST(DistributedTrainer, keeps_moments_in_8_bits_factored_moments_and_bf16_weights_as_a_trainer) {
  const auto expect_same = []<class Optimizer>(std::type_identity<Optimizer>) {
    static attune::Trainer<Model, attune::CrossEntropy<>, Optimizer, kBatch> one;
    one.initialize(attune::XavierUniform{}, attune::Rng{42});
    for (const std::uint64_t seed : {1u, 2u}) {
      const Data data(seed);
      ASSERT_TRUE(one.step(data.x, data.target, {}, kClipping).ok());
    }
    expect_nothing_thrown(check::on_ranks(2, [&](Ranks& ranks) {
      DistributedTrainer<Model, attune::CrossEntropy<>, Optimizer, kBatch> distributed(ranks, {.threads = 2});
      distributed.initialize(attune::XavierUniform{}, attune::Rng{42});
      for (const std::uint64_t seed : {1u, 2u}) {
        const Data data(seed);
        EXPECT_TRUE(distributed.step(data.x, data.target, {}, kClipping).ok());
      }
      EXPECT_EQ(std::memcmp(&distributed.state(), &one.state(), sizeof one.state()), 0);
    }));
  };
  expect_same(std::type_identity<
              attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8Stochastic}>>{});
  expect_same(std::type_identity<attune::Adafactor<>>{});
  expect_same(std::type_identity<attune::StochasticBfloat16<attune::AdamW>>{});
}

namespace {

template <class Plan>
using DistributedWith = DistributedTrainer<Model, attune::CrossEntropy<>, attune::AdamW, kBatch, Plan>;

}  // namespace

TEST(DistributedTrainer, trains_in_integers_as_a_trainer) {
  static attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, kBatch, attune::Int8Training> one;
  one.initialize(attune::XavierUniform{}, attune::Rng{42});
  static Model::Parameters overflowing;
  for (const std::uint64_t seed : {1u, 2u}) {
    const Data data(seed);
    ASSERT_TRUE(one.step(data.x, data.target, kOptions, kClipping).ok());
  }
  overflowing = one.parameters();
  overflowing.layer<0>().weight(0, 0) = std::numeric_limits<float>::infinity();
  expect_nothing_thrown(check::on_ranks(2, [&](Ranks& ranks) {
    DistributedWith<attune::Int8Training> distributed(ranks, {.threads = 2});
    distributed.initialize(attune::XavierUniform{}, attune::Rng{42});
    for (const std::uint64_t seed : {1u, 2u}) {
      const Data data(seed);
      EXPECT_TRUE(distributed.step(data.x, data.target, kOptions, kClipping).ok());
    }
    EXPECT_EQ(std::memcmp(&distributed.state(), &one.state(), sizeof one.state()), 0);
    distributed.load(overflowing);
    const Data data(3);
    EXPECT_EQ(distributed.step(data.x, data.target, kOptions, kClipping).status, Status::kNotFinite);
  }));
}

TEST(DistributedTrainer, input_that_one_rank_refuses_is_refused_by_all) {
  const PerSequence& expected = after_steps({1, 2});
  for (const int refused : {0, 5, kBatch - 1}) {
    expect_nothing_thrown(check::on_ranks(3, [&](Ranks& ranks) {
      Distributed trainer(ranks, {.threads = 1, .gradient_bytes = 0, .chunk_bytes = 256});
      trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
      const auto step = [&](const Data& data, const attune::AdamW::Options& options) {
        return trainer.step(data.x, data.target, options, kClipping).status;
      };
      EXPECT_EQ(step(Data(1), kOptions), Status::kOk);
      Data wrong(7);
      wrong.x.values[30 * refused] = check::kNan<float>;
      EXPECT_EQ(step(wrong, kOptions), Status::kNotFinite);
      wrong = Data(7);
      wrong.target[static_cast<std::size_t>(refused)] = 3;
      wrong.x.values[30 * (kBatch - 1)] = check::kNan<float>;  // the first one in the batch tells why
      EXPECT_EQ(step(wrong, kOptions), Status::kInvalidTarget);
      EXPECT_EQ(step(Data(8), {.learning_rate = -1.0f}), Status::kInvalidLearningRate);
      EXPECT_EQ(step(Data(2), kOptions), Status::kOk);
      EXPECT_EQ(attune::hash_bits(trainer.state()), attune::hash_bits(expected.state()));
    }));
  }
}

TEST(DistributedTrainer, names_the_rank_that_runs_another_program) {
  const auto of_another_model = check::on_ranks(3, [](Ranks& ranks) {
    if (ranks.rank() != 2) {
      Distributed trainer(ranks, {.threads = 1});
    } else {
      DistributedTrainer<ModelOf<4>, attune::CrossEntropy<>, attune::AdamW, kBatch> trainer(ranks,
                                                                                            {.threads = 1});
    }
  });
  expect_all_say(of_another_model, "rank 2: has a different model or optimizer than rank 0");
  const auto of_integers = check::on_ranks(2, [](Ranks& ranks) {
    if (ranks.rank() == 0) {
      Distributed trainer(ranks, {.threads = 1});
    } else {
      DistributedWith<attune::Int8Training> trainer(ranks, {.threads = 1});
    }
  });
  expect_all_say(of_integers, "rank 1: multiplies in a different precision than rank 0");
  const auto of_other_chunks = check::on_ranks(2, [](Ranks& ranks) {
    Distributed trainer(ranks,
                        {.threads = 1, .chunk_bytes = 1000u * static_cast<unsigned>(1 + ranks.rank())});
  });
  expect_all_say(of_other_chunks, "rank 1: has different chunks than rank 0");
}

#if defined(__SSE2__)
TEST(DistributedTrainer, names_the_rank_that_computes_other_bits) {
  const auto thrown = check::on_ranks(3, [](Ranks& ranks) {
    const unsigned mode = _mm_getcsr();
    if (ranks.rank() == 1) _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    try {
      Distributed trainer(ranks, {.threads = 1});
    } catch (...) {
      _mm_setcsr(mode);
      throw;
    }
  });
  expect_all_say(thrown, std::string("rank 1: ") + message(Status::kWrongArithmetic));
}
#endif

TEST(DistributedTrainer, names_the_rank_that_trains_other_parameters) {
  const auto initialized_otherwise = check::on_ranks(3, [](Ranks& ranks) {
    Distributed trainer(ranks, {.threads = 1});
    trainer.initialize(attune::XavierUniform{}, attune::Rng(ranks.rank() == 1 ? 2 : 1));
    const Data data(1);
    (void)trainer.step(data.x, data.target, kOptions);
  });
  expect_all_say(initialized_otherwise, "rank 1: has different parameters or moments than rank 0 after step 0");

  const auto with_another_option = check::on_ranks(2, [](Ranks& ranks) {
    Distributed trainer(ranks, {.threads = 1, .compare_every = 4});
    trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
    for (std::uint64_t seed = 1; seed < 12; ++seed) {
      const Data data(seed);
      (void)trainer.step(data.x, data.target,
                         {.learning_rate = seed == 6 && ranks.rank() == 1 ? 0.02f : 0.01f});
    }
  });
  expect_all_say(with_another_option, "rank 1: has different parameters or moments than rank 0 after step 8");

  const auto resumed_otherwise = check::on_ranks(2, [](Ranks& ranks) {
    Distributed trainer(ranks, {.threads = 1, .compare_every = 0});
    trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
    const Data data(1);
    (void)trainer.step(data.x, data.target, kOptions);
    if (ranks.rank() == 1) trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
    (void)trainer.step(data.x, data.target, kOptions);
  });
  EXPECT_EQ(resumed_otherwise[1].empty(), false);
}

namespace {

constexpr int kSteps = 12;

// Up to `steps` steps, kept in a file of rank 0's; the hash of the state at the end.
std::uint32_t run(Ranks& ranks, const std::string& file, int steps) {
  Distributed trainer(ranks, {.threads = 1, .compare_every = 3});
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  const auto result = attune::host::run_training(
      trainer,
      {.steps = steps,
       .write = nullptr,
       .file = ranks.rank() == 0 ? file : file + " of another rank, which nobody writes",
       .save_every = 5},
      [&](int step) {
        const Data data(static_cast<std::uint64_t>(step));
        return trainer.step(data.x, data.target, kOptions, kClipping);
      });
  EXPECT_EQ(result.end, attune::host::TrainingEnd::kAllSteps);
  EXPECT_EQ(result.losses.size(), static_cast<std::size_t>(steps));
  return attune::hash_bits(trainer.state());
}

}  // namespace

TEST(DistributedTrainer, resumes_from_the_first_ranks_file_on_other_ranks) {
  const check::TemporaryFolder folder;
  const std::string file = folder.file("run");
  const std::uint32_t expected =
      attune::hash_bits(after_steps({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).state());
  expect_nothing_thrown(check::on_ranks(3, [&](Ranks& ranks) { run(ranks, file, 7); }));
  expect_nothing_thrown(
      check::on_ranks(2, [&](Ranks& ranks) { EXPECT_EQ(run(ranks, file, kSteps), expected); }));
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_FALSE(std::filesystem::exists(file + " of another rank, which nobody writes"));
}
