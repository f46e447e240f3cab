#include <attune/core/program.hpp>

#include "check.hpp"

namespace {

using attune::detail::Program, attune::detail::ProgramSize, attune::detail::ValueMemory;

constexpr auto kProgram = [] {
  Program<ProgramSize{3, 2, 4}> program;
  const int x = program.add({.name = "x", .bytes = 8, .alignment = 4, .memory = ValueMemory::kCaller});
  const int hidden = program.add({.name = "hidden", .bytes = 8, .alignment = 4, .copies = 2});
  program.begin("first", 0).read({x}).write({hidden, 1}, x);
  program.begin("second", 1).read({hidden, 1}).write({x});
  return program;
}();

}  // namespace

TEST(Program, lists_steps_with_their_operands_in_order) {
  EXPECT_EQ(kProgram.value_count, 2);
  EXPECT_EQ(kProgram.step_count, 2);
  EXPECT_EQ(kProgram.steps[0].first, 0);
  EXPECT_EQ(kProgram.steps[0].end, 2);
  EXPECT_EQ(kProgram.steps[1].first, 2);
  EXPECT_EQ(kProgram.steps[1].end, 4);
  const auto& written = kProgram.operands[1];
  EXPECT_TRUE(written.writes && !kProgram.operands[0].writes);
  EXPECT_EQ(written.value, 1);
  EXPECT_EQ(written.copy, 1);
  EXPECT_EQ(written.over, 0);
}
