#include <attune/models/sequence_program.hpp>

#include <algorithm>

#include <attune/core/rng.hpp>

#include "check.hpp"
#include "program_replay.hpp"

namespace {

using attune::detail::LayerInSequence, attune::detail::SequenceTrace, attune::detail::SequenceValues;

constexpr int kLayers = 7;
using Trace = SequenceTrace<kLayers, false>;
using Loop = SequenceTrace<kLayers, true>;

bool drawn(attune::Rng& rng) { return rng.next() % 2 == 0; }
LayerInSequence drawn_layer(attune::Rng& rng) {
  const auto bytes = [&rng](unsigned most) { return rng.next() % most; };
  LayerInSequence layer{.output = {1 + bytes(3)}, .scratch = {bytes(4)}, .tape = {bytes(3)}};
  layer.output_may_be_input = drawn(rng);
  layer.reads_input = drawn(rng);
  layer.may_read_output = drawn(rng);
  layer.gradient_may_be_input = drawn(rng);
  return layer;
}
struct DrawnLayers {
  LayerInSequence of[std::size_t{kLayers}];

  explicit DrawnLayers(attune::Rng& rng) {
    const int inferred = static_cast<int>(rng.next() % 3);
    for (int i = 0; i < kLayers; ++i) {
      of[i] = drawn_layer(rng);
      of[i].runs_backward = i >= inferred;
    }
  }
};

// What came of moving each value of a plan to every other address.
struct Mutations {
  int harmful = 0;
  int missed = 0;        // of the harmful ones
  int false_alarms = 0;  // of the others
};
template <class Program>
void mutate(const Program& program, const check::Addresses<Program>& addresses, Mutations& found) {
  const std::uint64_t expected = check::executed(program, addresses.of, addresses.bytes);
  for (int value = 0; value < program.value_count; ++value) {
    const auto& moved = program.values[value];
    if (moved.memory == attune::detail::ValueMemory::kCaller) continue;
    const std::size_t bytes = moved.bytes * static_cast<std::size_t>(moved.copies);
    for (std::size_t at = 0; bytes > 0 && at + bytes <= addresses.bytes; ++at) {
      auto changed = addresses;
      changed.at(value) = at;
      const bool harms = check::executed(program, changed.of, addresses.bytes) != expected;
      const bool alarms = static_cast<bool>(check::first_fault(program, changed.of));
      found.harmful += harms;
      found.missed += harms && !alarms;
      found.false_alarms += !harms && alarms;
    }
  }
}
template <class Program>
void expect_right(const Program& program, Mutations* mutations) {
  const auto places = attune::detail::Plan(program).places;
  const check::Addresses<Program> addresses(program, places);
  const check::Fault fault = check::first_fault(program, addresses.of);
  EXPECT_FALSE(fault) << fault.message(program);
  EXPECT_EQ(places.arena, places.bound);
  if (mutations != nullptr) mutate(program, addresses, *mutations);
}

}  // namespace

TEST(SequenceProgram, reaches_the_bound_and_reads_nothing_overwritten) {
  attune::Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    const DrawnLayers layers(rng);
    expect_right(Trace(layers.of).training(), nullptr);
    expect_right(Trace(layers.of).inference(), nullptr);
    const LayerInSequence layer[] = {drawn_layer(rng)};
    expect_right(Loop(layer).training(), nullptr);
    expect_right(Loop(layer).inference(), nullptr);
  }
}

TEST(SequenceProgram, a_value_in_another_place_is_found_if_it_changes_a_number) {
  attune::Rng rng(2);
  Mutations found;
  for (int i = 0; i < 12; ++i) {
    const DrawnLayers layers(rng);
    expect_right(Trace(layers.of).training(), &found);
    expect_right(Trace(layers.of).inference(), &found);
    const LayerInSequence layer[] = {drawn_layer(rng)};
    expect_right(Loop(layer).training(), &found);
    expect_right(Loop(layer).inference(), &found);
  }
  EXPECT_GT(found.harmful, 1000);
  EXPECT_EQ(found.missed, 0);
  EXPECT_EQ(found.false_alarms, 0);
}

TEST(SequenceProgram, keeps_the_input_or_the_output_of_a_layer_that_reads_either) {
  const LayerInSequence product{.output = {4}, .reads_input = true};
  const LayerInSequence relu{.output = {4},
                             .output_may_be_input = true,
                             .reads_input = true,
                             .may_read_output = true,
                             .gradient_may_be_input = true};
  const auto kept = [](const auto& program) {
    const auto places = attune::detail::Plan(program).places;
    int count = 0;
    for (int value = 0; value < program.value_count; ++value) {
      count += places.keeps(value) && program.values[value].name[0] == 'o';
    }
    return count;
  };
  using Four = SequenceTrace<4, false>;
  EXPECT_EQ(kept(Four({product, relu, product, product}).training()), 2);
  EXPECT_EQ(kept(Four({product, product, product, product}).training()), 3);
  EXPECT_EQ(kept(Four({product, relu, relu, product}).training()), 2);
}
