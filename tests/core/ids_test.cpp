#include <attune/core/ids.hpp>

#include <array>

#include "check.hpp"

namespace {

using attune::Ids;

const int* address_of(Ids<3> ids) { return ids.data(); }
int digits(Ids<3> ids) { return ids[0] * 100 + ids[1] * 10 + ids[2]; }
int one(Ids<1> id) { return id[0]; }

constexpr std::array<int, 3> kIds{4, 0, 2};
static_assert(Ids<3>(kIds)[2] == 2 && Ids<3>::size() == 3);

static_assert(std::is_trivially_copyable_v<Ids<3>> && sizeof(Ids<3>) == sizeof(int*));
static_assert(std::is_convertible_v<int, Ids<1>> && std::is_convertible_v<char, Ids<1>>);
static_assert(std::is_convertible_v<Ids<3>, std::span<const int, 3>>);

}  // namespace

TEST(Ids, are_of_arrays_without_a_copy) {
  int array[] = {4, 0, 2};
  const int constants[] = {4, 0, 2};
  std::array<int, 3> standard{4, 0, 2};
  const std::span<const int, 3> span(array);
  EXPECT_EQ(address_of(array), array);
  EXPECT_EQ(address_of(constants), constants);
  EXPECT_EQ(address_of(standard), standard.data());
  EXPECT_EQ(address_of(kIds), kIds.data());
  EXPECT_EQ(address_of(span), array);
  EXPECT_EQ(address_of(std::span<int, 3>(array)), array);
  EXPECT_EQ(address_of(Ids<3>(&array[0])), array);
}

TEST(Ids, may_be_written_in_braces) {
  EXPECT_EQ(digits({{4, 0, 2}}), 402);
  EXPECT_EQ(digits(std::array{4, 0, 2}), 402);
  EXPECT_EQ(one({3}), 3);
  EXPECT_EQ(one({{3}}), 3);
}

TEST(Ids, of_one_are_a_number) {
  EXPECT_EQ(one(3), 3);
  const unsigned char label = 7;
  EXPECT_EQ(one(label), 7);
  const int id = 5;
  EXPECT_EQ(Ids<1>(id).data(), &id);
}

TEST(Ids, of_sequences_are_one_after_the_other) {
  int sequences[2][3] = {{1, 2, 3}, {4, 5, 6}};
  std::array<std::array<int, 3>, 2> standard{{{1, 2, 3}, {4, 5, 6}}};
  EXPECT_EQ(Ids<6>(sequences)[4], 5);
  EXPECT_EQ(Ids<6>(standard).data(), standard[0].data());
}

TEST(Ids, are_a_range_and_a_span) {
  const Ids<3> ids(kIds);
  int sum = 0;
  for (const int id : ids) sum += id;
  EXPECT_EQ(sum, 6);
  const std::span<const int, 3> converted = ids;
  const std::span<const int, 3> constructed(ids);
  EXPECT_EQ(converted.data(), kIds.data());
  EXPECT_EQ(constructed.data(), kIds.data());
}
