// A store of version 0.1 with the state of a training and a cache of keys and values: newer versions read it,
// and go on to the same bits. (journal_of_version_1.hpp has a journal.)
#include <cstddef>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/nor_flash.hpp"
#include "persistence/store_of_version_0_1.hpp"

namespace {

using namespace attune;

using Model =
    MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 2, .window = {.right = 0}}>;
using Training = Trainer<Model, MeanSquaredError, AdamW>;
using Cache = KeyValueCache<Model, CacheShape{.capacity = 4}>;
using Flash = NorFlash<NorShape{.unit = 8, .pages = 80}>;
using Store = FlashStore<Flash, Training::State, Cache>;

struct Continued {
  std::uint32_t parameters, after_a_step, after_a_token;
};

Tensor<float, 4, 4> drawn(std::uint64_t seed) {
  Rng rng(seed);
  Tensor<float, 4, 4> x;
  check::fill(x, rng);
  return x;
}

// The state and the cache as they are, and after one step of each.
Continued go_on(Training& trainer, Cache& cache) {
  Continued found{hash_bits(trainer.parameters()), 0, 0};
  static Cache::Scratch<> scratch;
  Tensor<float, 1, 4> token{{0.5f, -1, 0.25f, 2}}, y;
  EXPECT_EQ(step(trainer.parameters(), token, y, cache, scratch), Status::kOk);
  check::BitHash hash;
  for (const float value : y.values) hash.add(value);
  found.after_a_token = hash.value();
  EXPECT_TRUE(trainer.step(drawn(4), drawn(5), {.learning_rate = 1e-2f}).ok());
  found.after_a_step = hash_bits(trainer.parameters());
  return found;
}

// What was stored: three steps of training, two tokens of a stream.
void make(Training& trainer, Cache& cache) {
  trainer.initialize(XavierUniform{}, Rng{3});
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(trainer.step(drawn(10 + i), drawn(20 + i), {.learning_rate = 1e-2f}).ok());
  }
  static Cache::Scratch<> scratch;
  Tensor<float, 1, 4> y;
  for (int i = 0; i < 2; ++i) {
    const auto x = drawn(30);
    const Tensor<float, 1, 4> token{{x(i, 0), x(i, 1), x(i, 2), x(i, 3)}};
    EXPECT_EQ(step(trainer.parameters(), token, y, cache, scratch), Status::kOk);
  }
}

}  // namespace

TEST(StoredFormats, a_store_of_version_0_1_is_read_and_continued) {
  static Flash flash;
  for (std::uint32_t at = 0; at < Flash::kSize; at += Flash::kPageSize)
    ASSERT_EQ(flash.erase(at), Status::kOk);
  for (std::uint32_t at = 0; at < sizeof kStoreOfVersion01; at += Flash::kProgramUnit) {
    ASSERT_EQ(flash.program(at, kStoreOfVersion01 + at, Flash::kProgramUnit), Status::kOk);
  }
  static Training trainer;
  static Training::State state;
  static Cache cache;
  trainer.initialize(XavierUniform{}, Rng{1});
  const Status loaded = Store(flash).load(state, cache);
#if ATTUNE_FUSED
  EXPECT_EQ(loaded, Status::kOtherState);  // of another arithmetic: refused, never misread
#else
  ASSERT_EQ(loaded, Status::kOk);
  ASSERT_EQ(trainer.resume(state), Status::kOk);
  const Continued found = go_on(trainer, cache);
  EXPECT_EQ(found.parameters, kContinuedOfVersion01[0]);
  EXPECT_EQ(found.after_a_step, kContinuedOfVersion01[1]);
  EXPECT_EQ(found.after_a_token, kContinuedOfVersion01[2]);
#endif
}

TEST(StoredFormats, this_version_writes_the_same_bytes_but_for_the_number_of_a_state) {
  static Flash flash;
  static Training trainer;
  static Cache cache;
  make(trainer, cache);
  Store store(flash);
  ASSERT_EQ(store.save(trainer.state(), cache), Status::kOk);
#if !ATTUNE_FUSED
  // But for the number of the state, which says that it needs its mark, and the CRC of the head.
  constexpr auto kNumber = offsetof(detail::SlotHead, sequence), kCrc = offsetof(detail::SlotHead, crc);
  for (std::uint32_t at = 0; at < sizeof kStoreOfVersion01; ++at) {
    if ((at >= kNumber && at < kNumber + 4) || (at >= kCrc && at < kCrc + 4)) continue;
    unsigned char byte = 0;
    ASSERT_EQ(flash.read(at, &byte, 1), Status::kOk);
    ASSERT_EQ(byte, kStoreOfVersion01[at]) << at;
  }
#endif
  const Continued found = go_on(trainer, cache);
  EXPECT_NE(found.after_a_step, found.parameters);
}
