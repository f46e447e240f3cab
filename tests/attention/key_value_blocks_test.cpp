#include <attune/attention/key_value_blocks.hpp>

#include "check.hpp"

namespace {

using attune::CacheShape;

// What VisibleKeys promises at one position.
template <CacheShape shape>
constexpr bool keeps_its_promises(std::uint64_t position) {
  using Places = attune::detail::CachePlaces<shape>;
  constexpr int kBlock = Places::kBlock;
  const attune::detail::VisibleKeys<shape> visible(position);
  const std::uint64_t window = shape.window > 0 ? shape.window : shape.capacity;
  const std::uint64_t first = position + 1 > window ? position + 1 - window : 0;
  const std::uint64_t sinks = first < std::uint64_t{shape.sinks} ? first : shape.sinks;
  std::uint64_t expected = sinks > 0 ? 0 : first;  // the next key, in rising order
  std::uint64_t last_sum = attune::detail::kAnyNumber;
  int end = 0;
  for (const auto& run : visible) {
    if (run.count <= 0 || run.axis < end || run.axis + run.count > visible.blocks() * kBlock) return false;
    end = run.axis + run.count;
    for (int i = 0; i < run.count; ++i, ++expected) {
      if (expected == sinks && expected < first) expected = first;
      const bool sink = expected < sinks;
      const int slot = sink ? static_cast<int>(expected) : Places::slot(expected);
      if (run.slot + i != slot || slot >= Places::kSlots) return false;
      if ((run.axis + i) % kBlock != static_cast<int>(expected % kBlock)) return false;  // its lane
      const std::uint64_t sum = expected / attune::kernels::kDepthBlock;
      if ((i == 0 && run.begins_sum) != (sum != last_sum)) return false;
      last_sum = sum;
      if (i == 0 && std::uint64_t(run.distance) != position - expected / kBlock * kBlock) return false;
    }
  }
  // No two visible tokens of the window stand in one block's place, unless they are of one block.
  return expected == position + 1 && position / kBlock - first / kBlock < Places::kBlocks;
}
template <CacheShape shape>
bool keeps_its_promises_up_to(std::uint64_t end, std::uint64_t from = 0) {
  for (std::uint64_t position = from; position < end; ++position) {
    if (!keeps_its_promises<shape>(position)) return false;
  }
  return true;
}

TEST(KeyValueBlocks, visible_keys_run_from_oldest_to_newest_in_their_lanes) {
  EXPECT_TRUE(keeps_its_promises_up_to<CacheShape{.capacity = 450}>(450));
  EXPECT_TRUE(keeps_its_promises_up_to<CacheShape{.window = 1}>(100));
  EXPECT_TRUE(keeps_its_promises_up_to<CacheShape{.window = 2}>(100));
  EXPECT_TRUE(keeps_its_promises_up_to<CacheShape{.window = 17}>(500));
  EXPECT_TRUE((keeps_its_promises_up_to<CacheShape{.window = 48, .sinks = 5}>(500)));
  EXPECT_TRUE((keeps_its_promises_up_to<CacheShape{.window = 210, .sinks = 250}>(1500)));
}
TEST(KeyValueBlocks, a_ring_runs_forever) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
  const attune::detail::VisibleKeys<CacheShape{.window = 40}> visible(kFar);
  int keys = 0;
  for (const auto& run : visible) keys += run.count;
  EXPECT_EQ(keys, 40);
  EXPECT_TRUE(keeps_its_promises_up_to<CacheShape{.window = 40}>(kFar + 300, kFar));
}

TEST(KeyValueBlocks, sinks_are_never_overwritten) {
  constexpr CacheShape kShape{.window = 3, .sinks = 2};
  static attune::detail::KeyValueBlocks<float, 2, 1, 2, kShape> blocks;
  for (std::uint64_t t = 0; t < 100; ++t) {
    const auto value = static_cast<float>(t);
    const float key[2] = {value, -value}, values[4] = {value, value + 0.25f, value + 0.5f, value + 0.75f};
    blocks.append(t, key, values);
    for (std::uint64_t sink = 0; sink <= t && sink < 2; ++sink) {
      const int at = static_cast<int>(sink);
      EXPECT_EQ(blocks.heads[1].keys(0, at), -static_cast<float>(at));
      EXPECT_EQ(blocks.heads[1].values(at, 1), static_cast<float>(at) + 0.75f);
    }
    const int slot = decltype(blocks)::Places::slot(t);
    EXPECT_EQ(blocks.heads[0].keys(slot / 16, slot % 16), value);
    EXPECT_EQ(blocks.heads[0].values(slot, 1), value + 0.25f);
  }
}

TEST(KeyValueBlocks, the_most_squares_bound_all_keys) {
  constexpr CacheShape kShape{.window = 3};
  static attune::detail::KeyValueBlocks<float, 2, 2, 1, kShape> blocks;
  const auto most_after = [](std::uint64_t position, float last) {
    const float key[] = {3, 4, 0, last}, value[] = {0, 0};
    blocks.append(position, key, value);
    EXPECT_EQ(blocks.heads[0].most_squares, 25.0f);
    return blocks.heads[1].most_squares;
  };
  EXPECT_EQ(most_after(0, 2), 4.0f);
  EXPECT_EQ(most_after(1, -1), 4.0f);
  EXPECT_EQ(most_after(2, -3), 9.0f);
  // Behind a key that is not finite nothing is bounded any more.
  for (const float broken : {check::kNan<float>, check::kInfinity<float>, 1e30f}) {
    blocks.heads[1].most_squares = 9;
    EXPECT_EQ(most_after(3, broken), check::kInfinity<float>);
    EXPECT_EQ(most_after(4, 1), check::kInfinity<float>);
  }
}

}  // namespace
