// A thread trains and publishes, another infers with what it takes.
#include <attune/execution/published.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>

#include <attune/core/parameters.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/layers/linear.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using namespace attune;

using Model = Linear<LinearShape{.rows = 2, .d_in = 8, .d_out = 8}>;
using Training = Trainer<Model, MeanSquaredError, AdamW>;

struct Version {
  Model::Parameters parameters;
  std::uint32_t hash;
  int step;
};

struct Example {
  Model::Input x{};
  Model::Output target{};
};

// A writer that overwrites what is read would do it here thousands of times.
TEST(Published, no_value_is_torn_by_a_writer_that_never_pauses) {
  struct Block {
    int numbers[4096];
  };
  static Published<Block> published;
  constexpr int kLast = 3000;
  std::thread writer([] {
    for (int number = 1; number <= kLast; ++number) {
      Block* place = published.place();
      for (; place == nullptr; place = published.place()) std::this_thread::yield();
      std::fill(std::begin(place->numbers), std::end(place->numbers), number);
      published.publish();
    }
  });
  int last = 0, torn = 0, back = 0;
  while (last < kLast) {
    const Block& block = published.take();
    const int first = block.numbers[0];
    torn += std::count(std::begin(block.numbers), std::end(block.numbers), first) != 4096;
    back += first < last;
    last = first;
  }
  writer.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(back, 0);
  EXPECT_EQ(published.number(), static_cast<std::uint32_t>(kLast));
}

TEST(Published, a_reader_sees_whole_values_in_order_while_a_thread_trains) {
  static Published<Version> published;
  static Training trainer;
  static Example example;
  Rng rng(1);
  check::fill(example.x, rng);
  check::fill(example.target, rng);
  constexpr int kSteps = 3000;
  std::atomic<bool> ended = false;
  trainer.initialize(XavierUniform{}, Rng{1});
  int kept = 0;
  std::thread training([&] {
    for (int step = 1; step <= kSteps; ++step) {
      EXPECT_TRUE(trainer.step(example.x, example.target, {.learning_rate = 1e-3f}).ok());
      if (Version* const place = published.place()) {
        place->parameters = trainer.parameters();
        place->hash = hash_bits(trainer.parameters());
        place->step = step;
        published.publish();
        ++kept;
      }
    }
    ended = true;
  });
  int last = 0, torn = 0, back = 0;
  static Model::Output y;
  static Model::InferenceScratch scratch;
  while (!ended) {
    const Version& version = published.take();
    if (version.step == 0) continue;  // nothing is published yet
    infer<Model>(version.parameters, example.x, y, scratch);
    torn += hash_bits(version.parameters) != version.hash;
    back += version.step < last;
    last = version.step;
  }
  training.join();
  (void)published.take();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(back, 0);
  EXPECT_GT(kept, 0);
  EXPECT_EQ(published.number(), static_cast<std::uint32_t>(kept));

  // What is published last, when the reader has taken all before, is what training on one thread ends with.
  Version* const place = published.place();
  ASSERT_TRUE(place != nullptr);
  place->parameters = trainer.parameters();
  published.publish();
  static Training alone;
  alone.initialize(XavierUniform{}, Rng{1});
  for (int step = 1; step <= kSteps; ++step) {
    EXPECT_TRUE(alone.step(example.x, example.target, {.learning_rate = 1e-3f}).ok());
  }
  EXPECT_EQ(hash_bits(published.take().parameters), hash_bits(alone.parameters()));
}

}  // namespace
