#include <attune/core/planner.hpp>

#include "check.hpp"
#include "program_replay.hpp"

namespace {

using attune::detail::Plan, attune::detail::Program, attune::detail::ProgramSize, attune::detail::ValueMemory;
using Small = Program<ProgramSize{8, 8, 32}>;

constexpr int arena(Small& program, std::size_t bytes, int copies = 1) {
  return program.add({.name = "value", .bytes = bytes, .copies = copies});
}

// A chain: each step reads the last value and writes the next one.
constexpr auto kChain = [] {
  Small program;
  int last = program.add({.name = "x", .bytes = 1, .memory = ValueMemory::kCaller});
  for (const std::size_t bytes : {4, 6, 2, 5}) {
    const int next = arena(program, bytes);
    program.begin("step", program.step_count).read({last}).write({next});
    last = next;
  }
  return program;
}();

}  // namespace

TEST(Planner, gives_memory_of_the_dead_to_others) {
  constexpr auto kPlaces = Plan(kChain).places;
  static_assert(kPlaces.bound == 10 && kPlaces.arena == 10);
  EXPECT_FALSE(check::first_fault(kChain, check::Addresses(kChain, kPlaces).of));
}

TEST(Planner, writes_a_result_over_an_operand_that_dies) {
  constexpr auto kPlace = [](bool dies) {
    Small program;
    const int x = arena(program, 4), y = arena(program, 4);
    program.begin("make", 0).write({x});
    program.begin("change", 1).read({x}).write({y}, x);
    program.begin("use", 2).read({y}).read({dies ? y : x});
    return Plan(program).places;
  };
  static_assert(kPlace(true).owner[1] == 0 && kPlace(true).arena == 4);
  static_assert(kPlace(false).owner[1] == 1 && kPlace(false).arena == 8);
}

TEST(Planner, takes_the_memory_of_a_result_and_of_no_other_caller) {
  constexpr auto kPlace = [](ValueMemory memory) {
    Small program;
    const int x = arena(program, 4);
    const int y = program.add({.name = "y", .bytes = 4, .memory = memory});
    program.begin("make", 0).write({x});
    program.begin("change", 1).read({x}).write({y}, x);
    return Plan(program).places;
  };
  static_assert(kPlace(ValueMemory::kResult).owner[0] == 1 && kPlace(ValueMemory::kResult).arena == 0);
  static_assert(kPlace(ValueMemory::kCaller).owner[0] == 0 && kPlace(ValueMemory::kCaller).arena == 4);
}

TEST(Planner, values_that_cross_from_forward_to_backward_are_on_the_tape) {
  constexpr auto kPlaces = [] {
    Small program;
    const int kept = arena(program, 4), dead = arena(program, 8);
    program.forward_steps = 1;
    program.begin("forward", 0).write({kept}).write({dead});
    program.begin("backward", 0).read({kept});
    return Plan(program).places;
  }();
  static_assert(kPlaces.keeps(0) && !kPlaces.keeps(1) && kPlaces.arena == 8);
}

TEST(Planner, places_the_copies_of_a_loop_as_one_array) {
  constexpr auto kProgram = [] {
    Small program;
    const int x = arena(program, 4, 2), dx = arena(program, 4, 2), other = arena(program, 4);
    for (int i = 0; i < 2; ++i) program.begin("forward", i).write({x, i});
    program.begin("between", 0).write({other});
    for (int i = 1; i >= 0; --i) program.begin("backward", i).read({x, i}).write({dx, i}, x);
    return program;
  }();
  constexpr auto kPlaces = Plan(kProgram).places;
  static_assert(kPlaces.owner[1] == 0 && kPlaces.arena == 12);
  EXPECT_FALSE(check::first_fault(kProgram, check::Addresses(kProgram, kPlaces).of));
}

TEST(Planner, aligns_values) {
  constexpr auto kPlaces = [] {
    Small program;
    const int odd = program.add({.name = "odd", .bytes = 3});
    const int aligned = program.add({.name = "aligned", .bytes = 8, .alignment = 8});
    program.begin("step", 0).write({odd}).write({aligned});
    return Plan(program).places;
  }();
  static_assert(kPlaces.offset[1] % 8 == 0 && kPlaces.alignment == 8 && kPlaces.bound == 11);
}

TEST(Planner, replay_names_the_step_and_the_value_that_is_gone) {
  auto addresses = check::Addresses(kChain, Plan(kChain).places).of;
  addresses[2] = addresses[1];  // the second step writes over what it reads
  const check::Fault fault = check::first_fault(kChain, addresses);
  EXPECT_EQ(fault.message(kChain), "step 1 uses value 0, which is overwritten");
}
