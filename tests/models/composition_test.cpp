#include <attune/models/composition.hpp>

#include "check.hpp"

namespace {

using attune::detail::Members;

struct None {};
struct AlsoNone {};

// Nothing is spent on what is empty, however often and of whatever type.
static_assert(sizeof(Members<float, None, double>) == 2 * sizeof(double));
static_assert(sizeof(Members<None, float, None, None, AlsoNone, float, None>) == 2 * sizeof(float));
static_assert(std::is_empty_v<Members<None, None>>);
static_assert(std::is_trivially_copyable_v<Members<None, float>>);

}  // namespace

TEST(Members, are_found_by_their_number) {
  Members<float, None, int, float> members{};
  attune::detail::member<0>(members) = 1.5f;
  attune::detail::member<2>(members) = 7;
  attune::detail::member<3>(members) = 2.5f;
  const auto& constant = members;
  EXPECT_EQ(attune::detail::member<0>(constant), 1.5f);
  EXPECT_EQ(attune::detail::member<2>(constant), 7);
  EXPECT_EQ(attune::detail::member<3>(constant), 2.5f);
  static_assert(std::is_same_v<decltype(attune::detail::member<1>(members)), None>);
}

TEST(DoubleBuffer, neighbors_have_different_buffers) {
  attune::detail::DoubleBuffer<float, 6, 3> turns;
  using Small = attune::Tensor<float, 1, 4>;
  using Large = attune::Tensor<float, 2, 3>;
  EXPECT_NE(turns.at<Small>(0).data, turns.at<Large>(1).data);
  EXPECT_EQ(turns.at<Small>(0).data, turns.at<Large>(2).data);
  static_assert(sizeof turns == 12 * sizeof(float));
  static_assert(sizeof(attune::detail::DoubleBuffer<float, 6, 1>) == 6 * sizeof(float));
  static_assert(std::is_empty_v<attune::detail::DoubleBuffer<float, 6, 0>>);
}

namespace {

template <int... scalars>
using Apart = attune::detail::SequentialOutputs<attune::detail::SequentialOutput{scalars}...>;

}  // namespace

TEST(SequentialScratch, values_between_two_layers_overlap_neither) {
  using attune::detail::SequentialScratch;
  struct Scratch {
    float values[5];
  };
  // 3 scalars between the first two of four layers, none between the next, 4 before the last.
  SequentialScratch<float, Apart<3, 0, 4, 9>, Scratch, None, Scratch, None> storage;
  static_assert(sizeof storage == (4 + 5) * sizeof(float));  // the third layer and what is behind it
  const auto first = storage.behind<attune::Tensor<float, 1, 3>, 0>();
  const auto last = storage.behind<attune::Tensor<float, 2, 2>, 2>();
  for (int i = 0; i < 3; ++i) first(0, i) = 1;
  for (float& value : storage.of_layer<0>().values) value = 2;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(first(0, i), 1.0f);
  for (int i = 0; i < 4; ++i) last(i / 2, i % 2) = 3;
  for (float& value : storage.of_layer<2>().values) value = 4;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(last(i / 2, i % 2), 3.0f);
}

TEST(SequentialScratch, both_sides_of_a_layer_are_apart) {
  using attune::detail::SequentialScratch;
  SequentialScratch<float, Apart<3, 4, 0>, None, Members<float, float>, None> storage;
  static_assert(sizeof storage == (3 + 2 + 4) * sizeof(float));
  const auto before = storage.behind<attune::Tensor<float, 1, 3>, 0>();
  const auto behind = storage.behind<attune::Tensor<float, 1, 4>, 1>();
  auto& own = storage.of_layer<1>();
  const float* const places[] = {before.data, &own.first, behind.data};
  EXPECT_TRUE(places[0] + 3 <= places[1] && places[1] + 2 <= places[2]);
  static_assert(sizeof(SequentialScratch<float, Apart<6, 0>, None, None>) == 6 * sizeof(float));
}

TEST(SequentialScratch, an_output_in_place_takes_the_memory_of_its_input) {
  using attune::detail::SequentialScratch, attune::detail::SequentialOutput,
      attune::detail::SequentialOutputs;
  using Five = attune::Tensor<float, 1, 5>;
  // The second and third of five layers work in place; the fourth does not.
  using Outputs = SequentialOutputs<SequentialOutput{5}, SequentialOutput{5, true}, SequentialOutput{5, true},
                                    SequentialOutput{3}, SequentialOutput{9}>;
  SequentialScratch<float, Outputs, None, Members<float, float>, None, None, None> storage;
  static_assert(sizeof storage == (5 + 3) * sizeof(float));
  const auto first = storage.behind<Five, 0>();
  EXPECT_EQ((storage.behind<Five, 1>().data), first.data);
  EXPECT_EQ((storage.behind<Five, 2>().data), first.data);
  EXPECT_EQ((storage.behind<attune::Tensor<float, 1, 3>, 3>().data), first.data + 5);
  EXPECT_EQ(&storage.of_layer<1>().first, first.data + 5);
  // Behind an odd number of layers, in place at the end.
  using AtTheEnd = SequentialOutputs<SequentialOutput{2}, SequentialOutput{5}, SequentialOutput{5, true},
                                     SequentialOutput{9}>;
  SequentialScratch<float, AtTheEnd, None, None, Members<float, float>, None> at_the_end;
  static_assert(sizeof at_the_end == (5 + 2) * sizeof(float));
  EXPECT_EQ((at_the_end.behind<Five, 1>().data), (at_the_end.behind<Five, 2>().data));
  EXPECT_EQ(&at_the_end.of_layer<2>().first + 2, (at_the_end.behind<Five, 1>().data));
}
