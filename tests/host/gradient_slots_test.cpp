#include <attune/host/gradient_slots.hpp>

#include <attune/layers/linear.hpp>

#include <gtest/gtest.h>

namespace {

using Parameters = attune::Linear<attune::LinearShape{1, 2, 1}>::Parameters;
using attune::host::ThreadPool;
using attune::host::detail::GradientSlots;
using attune::host::detail::slots_for;

}  // namespace

TEST(GradientSlots, are_between_one_per_thread_and_one_per_sequence) {
  EXPECT_EQ(slots_for<Parameters>(8, 3, std::size_t{0}), 3);
  EXPECT_EQ(slots_for<Parameters>(8, 3, std::nullopt), 8);
  EXPECT_EQ(slots_for<Parameters>(2, 3, std::size_t{0}), 2);
}

TEST(GradientSlots, are_added_in_their_order_and_zero_afterwards) {
  ThreadPool pool(2);
  GradientSlots<Parameters, float> slots(pool, 3);
  slots.begin_batch();
  slots.slot(0).weight(0, 0) = 1e8f;
  slots.slot(1).weight(0, 0) = -1e8f;
  slots.slot(2).weight(0, 0) = 1;  // lost, if it were added to either alone
  slots.slot(2).bias(0, 0) = 5;    // of a sequence that does not count
  slots.add(2, 0, sizeof(Parameters));
  EXPECT_EQ(slots.sum().weight(0, 0), 0.0f);
  EXPECT_EQ(slots.sum().bias(0, 0), 0.0f);
  slots.add(3, 0, sizeof(Parameters));
  EXPECT_EQ(slots.sum().weight(0, 0), 1.0f);
  EXPECT_EQ(slots.sum().bias(0, 0), 5.0f);
  EXPECT_EQ(slots.slot(2).bias(0, 0), 0.0f);
}

TEST(GradientSlots, of_a_batch_that_was_not_finished_are_cleared) {
  ThreadPool pool(1);
  GradientSlots<Parameters, float> slots(pool, 1);
  slots.begin_batch();
  slots.sum().bias(0, 0) = 1;
  slots.slot(0).bias(0, 0) = 1;
  slots.begin_batch();
  EXPECT_EQ(slots.sum().bias(0, 0), 0.0f);
  EXPECT_EQ(slots.slot(0).bias(0, 0), 0.0f);
}
