// A program: a list of steps, each with the values that it reads and writes. A program knows bytes and order;
// it knows no layer and no arithmetic. The planner (planner.hpp) gives each value its place in memory.
//
//   program.add({.name = "output", .layer = 0, .bytes = 256, .alignment = 4}) is a value
//   program.begin("forward", 0).read({x}).write({output}) is a step
//
// A loop is a list of its iterations. A value with copies is an array that the planner places as a whole, so
// that code in the loop finds a copy by its index.
#pragma once

#include <cstddef>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The memory that holds a value.
enum class ValueMemory {
  kArena = 0,   // places in the arena, which values share
  kTape = 1,    // the tape: the value lives from forward to backward
  kCaller = 2,  // the caller's memory: no other value takes it
  kResult = 3   // the caller's memory, which values may take before the result is written
};

/// A value: so many bytes, or an array of so many copies of them.
struct ProgramValue {
  const char* name = "";
  int layer = 0;  // the layer that writes it
  std::size_t bytes = 0;
  std::size_t alignment = 1;
  ValueMemory memory = ValueMemory::kArena;
  int copies = 1;
};

/// A copy of a value.
struct ValueCopy {
  int value = 0;
  int copy = 0;
};
/// A value that a step uses.
struct Operand : ValueCopy {
  bool writes = false;
  int over = -1;  // the value that the step reads whose memory this one may take, copy by copy
};

/// A step and its operands, the range [first, end) of the program's.
struct ProgramStep {
  const char* name = "";
  int layer = 0;
  int first = 0;
  int end = 0;
};

/// At most so many values, steps and operands.
struct ProgramSize {
  int values;
  int steps;
  int operands;
};

/// A list of steps over values.
template <ProgramSize most>
struct Program {
  static constexpr ProgramSize kMax = most;

  ProgramValue values[std::size_t{most.values}] = {};
  ProgramStep steps[std::size_t{most.steps}] = {};
  Operand operands[std::size_t{most.operands}] = {};
  int value_count = 0;
  int step_count = 0;
  int operand_count = 0;
  int forward_steps = -1;  // a value that lives from one of these to a later one is kept on the tape; -1: all

  /// Adds a value. Returns its index.
  constexpr int add(const ProgramValue& value) {
    values[value_count] = value;
    return value_count++;
  }
  /// Adds a step without operands; read() and write() add the next ones.
  constexpr Program& begin(const char* name, int layer) {
    steps[step_count++] = {name, layer, operand_count, operand_count};
    return *this;
  }
  /// The last step reads a value.
  constexpr Program& read(const ValueCopy& value) { return use({value}); }
  /// The last step writes a value, and may write it over one that it reads.
  constexpr Program& write(const ValueCopy& value, int over = -1) { return use({value, true, over}); }

 private:
  constexpr Program& use(const Operand& operand) {
    operands[operand_count++] = operand;
    steps[step_count - 1].end = operand_count;
    return *this;
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
