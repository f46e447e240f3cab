// Crews of threads, and of a second core that is a thread.
#include <attune/attune.hpp>
#include <attune/host/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "check.hpp"
#include "host/slices_done.hpp"

namespace {

using namespace attune;

static_assert(Crew<OneCore> && Crew<host::Threads<3>>);

// A second core made of a thread, which sleeps while it waits.
template <int number>
struct ThreadCore {
  static constexpr std::size_t kFlagBytes = 64;
  static inline std::atomic<int> relaxed = 0;
  static void start(void (*entry)()) { std::thread(entry).detach(); }
  static void relax() {
    ++relaxed;
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // not to disturb the tests behind
  }
  static void wake() {}
};
static_assert(Crew<TwoCores<ThreadCore<0>>>);

template <class Members>
void expect_every_index_once(Members& crew) {
  for (int count : {0, 1, 2, 3, 7, 64}) {
    std::array<int, 64> calls{}, member_of{};
    std::array<std::atomic<int>, Members::kMembers> busy{};
    crew.for_each(count, [&](int member, int index) {
      EXPECT_EQ(busy[static_cast<std::size_t>(member)]++, 0);
      ++calls[static_cast<std::size_t>(index)];
      member_of[static_cast<std::size_t>(index)] = member;
      --busy[static_cast<std::size_t>(member)];
    });
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(calls[static_cast<std::size_t>(i)], i < count ? 1 : 0);
      EXPECT_TRUE(member_of[static_cast<std::size_t>(i)] >= 0 &&
                  member_of[static_cast<std::size_t>(i)] < Members::kMembers);
    }
  }
}

// Each index adds its digit after the one before: out of order, the number differs.
template <class Members>
void expect_order_by_flags(Members& crew) {
  for (int round = 0; round < 200; ++round) {
    typename Members::Flag flags[9];
    for (auto& flag : flags) flag.reset();
    int number = 0;
    crew.for_each(9, [&](int, int index) {
      const std::uint32_t before = index > 0 ? flags[index - 1].wait_for(3) : 3;
      EXPECT_EQ(before, 3u);
      number = 10 * number + index + 1;
      flags[index].publish(3);
    });
    EXPECT_EQ(number, 123456789);
  }
}

}  // namespace

TEST(Crew, calls_the_body_once_for_every_index) {
  OneCore one;
  host::Threads<3> threads;
  static TwoCores<ThreadCore<1>> cores;
  cores.start();
  expect_every_index_once(one);
  expect_every_index_once(threads);
  expect_every_index_once(cores);
}

TEST(Crew, members_wait_for_each_others_flags) {
  OneCore one;
  host::Threads<4> threads;
  static TwoCores<ThreadCore<2>> cores;
  cores.start();
  expect_order_by_flags(one);
  expect_order_by_flags(threads);
  expect_order_by_flags(cores);
  EXPECT_GT(ThreadCore<2>::relaxed, 0);
}

TEST(WordFlag, numbers_wrap_like_an_unsigned_counter) {
  static WordFlag<ThreadCore<3>> flag;
  flag.publish(0xFFFFFFFFu);
  EXPECT_EQ(flag.wait_for(0xFFFFFFF0u), 0xFFFFFFFFu);
  flag.publish(2);
  EXPECT_EQ(flag.wait_for(0xFFFFFFFFu), 2u);
  flag.reset();
  EXPECT_EQ(flag.wait_for(0), 0u);
}

namespace {

template <int members>
void expect_all_slices() {
  host::Threads<members> threads;
  CrewPass<host::Threads<members>> pass;
  for (int round = 0; round < 50; ++round) {
    check::SlicesDone done, expected;
    expected.fill(RunToCompletion{});
    EXPECT_EQ(pass.run(threads, &done, [&](const auto& slices) { done.fill(slices); }), Status::kOk);
    EXPECT_EQ(done.rows, expected.rows);
    EXPECT_EQ(done.elements, expected.elements);
    EXPECT_EQ(done.sum, 1000);
  }
}

using Model = Sequential<
    Embedding<EmbeddingShape{.seq_len = 12, .vocabulary = 9, .d_model = 8}>,
    EncoderLayer<EncoderLayerShape{.attention = {.seq_len = 12, .d_model = 8, .num_heads = 2}, .d_ff = 20}>>;

}  // namespace

TEST(CrewPass, members_do_every_row_and_element_once_after_earlier_slices) {
  expect_all_slices<1>();
  expect_all_slices<2>();
  expect_all_slices<3>();
}

TEST(CrewPass, an_error_ends_the_pass_of_all_members) {
  using Members = host::Threads<3>;
  Members threads;
  CrewPass<Members> pass;
  static Model::Parameters parameters;
  static Model::InferenceScratch scratch[3];
  Rng rng(1);
  check::fill_set(parameters, rng);
  const CausalMask mask;
  for (int round = 0; round < 50; ++round) {
    Model::Input ids{1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, round % 2 == 0 ? 9 : 8};
    static Model::Output y, expected;
    const Status status = pass.run(threads, scratch, [&](const auto& slices) {
      (void)detail::forward_pass<Model>(context_for<Model>(mask, slices), parameters,
                                        ConstView<Model::Input>(ids), View<Model::Output>(y), scratch[0]);
    });
    EXPECT_EQ(status, round % 2 == 0 ? Status::kInvalidToken : Status::kOk);
    if (status != Status::kOk) continue;
    static Model::InferenceScratch own;
    EXPECT_EQ(infer<Model>(parameters, ids, expected, own, mask), Status::kOk);
    EXPECT_TRUE(check::same_bits(y, expected));
  }
}

namespace {

constexpr int kCount = 5;

template <class Members, class Products = FloatProducts>
void expect_bits_of_infer(const Products& products = {}) {
  Members crew;
  static CrewInference<Members, Model> inference;
  static Model::Parameters parameters;
  static Model::InferenceScratch scratch;
  Rng rng(1);
  check::fill_set(parameters, rng);
  std::array<int, kCount * 12> ids;
  for (int& id : ids) id = static_cast<int>(rng.next() % 9);
  std::array<SequenceLength<12>, kCount> lengths;
  static Tensor<float, kCount * 12, 8> outputs;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(lengths[static_cast<std::size_t>(i)].set_length(3 + 2 * i), Status::kOk);
  }
  ASSERT_EQ(inference.template infer_batch<kCount>(crew, parameters, ids, outputs, lengths, products),
            Status::kOk);
  for (int i = 0; i < kCount; ++i) {
    const Ids<12> one(ids.data() + 12 * i);
    const auto& length = lengths[static_cast<std::size_t>(i)];
    Model::Output y, expected;
    ASSERT_EQ(infer<Model>(parameters, one, expected, scratch, length, products), Status::kOk);
    ASSERT_EQ(inference.infer(crew, parameters, one, y, length, products), Status::kOk);
    EXPECT_TRUE(check::same_bits(y, expected));
    EXPECT_EQ(std::memcmp(&outputs.values[i * Model::Output::size], &expected, sizeof expected), 0);
  }
  ids[12 * 3] = 9;
  EXPECT_EQ(inference.template infer_batch<kCount>(crew, parameters, ids, outputs), Status::kInvalidToken);
}

}  // namespace

TEST(CrewInference, one_and_a_batch_have_the_bits_of_infer) {
  expect_bits_of_infer<OneCore>();
  expect_bits_of_infer<host::Threads<2>>();
  expect_bits_of_infer<host::Threads<3>>();
  expect_bits_of_infer<host::Threads<2>>(Int8Products{});
}
