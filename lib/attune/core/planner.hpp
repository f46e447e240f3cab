// The planner: a place in memory for each value of a program (program.hpp), at compile time.
//
// A value lives from its first step to its last. A result takes the memory of an operand that dies in the
// same step, if the step allows it. A value that lives from forward to backward is kept on the tape. All
// others share an arena: values that live at the same time are apart in it. The bound is the largest sum of
// bytes that live at the same time; no arena is smaller.
#pragma once

#include <cstddef>

#include <attune/core/program.hpp>
#include <attune/kernels/algorithm.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The steps from a value's first use to its last.
struct Lifetime {
  int first = -1;
  int last = -1;

  constexpr void add(int step) {
    if (first < 0) first = step;
    last = step;
  }
  [[nodiscard]] constexpr bool used() const { return first >= 0; }
  [[nodiscard]] constexpr bool meets(const Lifetime& other) const {
    return first <= other.last && other.first <= last;
  }
};

/// The places of so many values.
template <int most>
struct Placement {
  int owner[std::size_t{most}] = {};           // the value whose memory it takes, or itself
  ValueMemory memory[std::size_t{most}] = {};  // of its owner
  std::size_t offset[std::size_t{most}] = {};  // in the arena
  Lifetime life[std::size_t{most}] = {};       // of an owner, with the values in its memory
  std::size_t arena = 0;                       // bytes
  std::size_t alignment = 1;
  std::size_t bound = 0;  // bytes that live at the same time, at most

  /// Whether a value has its own memory on the tape.
  [[nodiscard]] constexpr bool keeps(int value) const {
    return owner[value] == value && memory[value] == ValueMemory::kTape;
  }
};

/// Finds the places of a program's values.
template <class Program>
class Planner {
  static constexpr int kMax = Program::kMax.values;

 public:
  constexpr explicit Planner(const Program& program) : program_(program) {}

  constexpr Placement<kMax> place() {
    find_lifetimes();
    merge();
    find_memory();
    find_bound();
    place_in(Order::kFromBothEnds);
    if (best_.arena > best_.bound) place_in(Order::kLargestFirst);
    return best_;
  }

 private:
  // From both ends: first the values that live for several steps, as they come, in turns at the beginning and
  // at the end. In a sequence of layers this reaches the bound.
  enum class Order { kFromBothEnds = 0, kLargestFirst = 1 };

  [[nodiscard]] constexpr int owner(int value) const {
    while (best_.owner[value] != value) value = best_.owner[value];
    return value;
  }
  [[nodiscard]] constexpr std::size_t size(int value) const {
    return program_.values[value].bytes * static_cast<std::size_t>(program_.values[value].copies);
  }
  [[nodiscard]] static constexpr std::size_t aligned(std::size_t bytes, std::size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  constexpr void find_lifetimes() {
    for (int value = 0; value < program_.value_count; ++value) best_.owner[value] = value;
    for (int step = 0; step < program_.step_count; ++step) {
      for (int i = program_.steps[step].first; i < program_.steps[step].end; ++i) {
        best_.life[program_.operands[i].value].add(step);
      }
    }
  }

  // The steps in which a copy of a value is used.
  [[nodiscard]] constexpr Lifetime life_of_copy(int value, int copy) const {
    Lifetime life;
    for (int step = 0; step < program_.step_count; ++step) {
      for (int i = program_.steps[step].first; i < program_.steps[step].end; ++i) {
        const Operand& used = program_.operands[i];
        if (owner(used.value) == value && used.copy == copy) life.add(step);
      }
    }
    return life;
  }
  // Whether each copy of `to` is written for the first time where the same copy of `from` dies.
  [[nodiscard]] constexpr bool replaces(int to, int from) const {
    const ProgramValue &written = program_.values[to], &read = program_.values[from];
    if (written.bytes != read.bytes || written.copies != read.copies) return false;
    if (read.memory != ValueMemory::kArena) return false;
    if (written.memory != ValueMemory::kArena && written.memory != ValueMemory::kResult) return false;
    for (int copy = 0; copy < read.copies; ++copy) {
      if (life_of_copy(from, copy).last != life_of_copy(to, copy).first) return false;
    }
    return true;
  }
  constexpr void merge() {
    for (int step = 0; step < program_.step_count; ++step) {
      for (int i = program_.steps[step].first; i < program_.steps[step].end; ++i) {
        const Operand& written = program_.operands[i];
        if (written.over < 0) continue;
        const int to = owner(written.value), from = owner(written.over);
        if (to == from || !replaces(to, from)) continue;
        // The owner is the result, or else the first.
        const bool keeps_first = program_.values[to].memory == ValueMemory::kArena;
        const int kept = keeps_first ? from : to, merged = keeps_first ? to : from;
        best_.owner[merged] = kept;
        best_.life[kept] = {best_.life[from].first, best_.life[to].last};
      }
    }
  }

  constexpr void find_memory() {
    const int forward = program_.forward_steps;
    for (int value = 0; value < program_.value_count; ++value) {
      best_.owner[value] = owner(value);
      const int place = best_.owner[value];
      const Lifetime& life = best_.life[place];
      best_.memory[value] = program_.values[place].memory;
      if (best_.memory[value] != ValueMemory::kArena) continue;
      if (life.first < forward && life.last >= forward) best_.memory[value] = ValueMemory::kTape;
      if (place != value || !life.used() || size(value) == 0) continue;
      if (best_.memory[value] != ValueMemory::kArena) continue;
      best_.alignment = larger(best_.alignment, program_.values[value].alignment);
      placed_[count_++] = value;
    }
  }
  constexpr void find_bound() {
    for (int step = 0; step < program_.step_count; ++step) {
      std::size_t bytes = 0;
      for (int i = 0; i < count_; ++i) {
        if (best_.life[placed_[i]].meets({step, step})) bytes += size(placed_[i]);
      }
      best_.bound = larger(best_.bound, bytes);
    }
  }

  [[nodiscard]] constexpr bool lasts(int value) const {
    return best_.life[value].last > best_.life[value].first;
  }
  [[nodiscard]] constexpr bool comes_first(Order order, int a, int b) const {
    if (order == Order::kFromBothEnds && lasts(a) != lasts(b)) return lasts(a);
    if (order == Order::kLargestFirst && size(a) != size(b)) return size(a) > size(b);
    const int first_a = best_.life[a].first, first_b = best_.life[b].first;
    return first_a != first_b ? first_a < first_b : a < b;
  }
  // The lowest place for a value among the first `others` of placed_, by offset.
  [[nodiscard]] constexpr std::size_t lowest(int value, int others) const {
    std::size_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int i = 0; i < others; ++i) {
        if (!overlaps(value, at, placed_[i])) continue;
        at = aligned(offset_[placed_[i]] + size(placed_[i]), program_.values[value].alignment);
        moved = true;
      }
    }
    return at;
  }
  // The highest place below the bound; `otherwise` if there is none.
  [[nodiscard]] constexpr std::size_t highest(int value, int others, std::size_t otherwise) const {
    std::size_t end = best_.bound;
    for (bool moved = true; moved;) {
      moved = false;
      if (end < size(value)) return otherwise;
      const std::size_t at = below(value, end);
      for (int i = 0; i < others; ++i) {
        if (!overlaps(value, at, placed_[i])) continue;
        end = offset_[placed_[i]];
        moved = true;
        break;
      }
    }
    return below(value, end);
  }
  [[nodiscard]] constexpr std::size_t below(int value, std::size_t end) const {
    const std::size_t at = end - size(value);
    return at - at % program_.values[value].alignment;
  }
  [[nodiscard]] constexpr bool overlaps(int value, std::size_t at, int other) const {
    return best_.life[value].meets(best_.life[other]) && at < offset_[other] + size(other) &&
           offset_[other] < at + size(value);
  }

  constexpr void place_in(Order order) {
    sort(placed_, count_, [&](int a, int b) { return comes_first(order, a, b); });
    std::size_t arena = 0;
    for (int i = 0; i < count_; ++i) {
      const int value = placed_[i];
      std::size_t at = lowest(value, i);
      if (order == Order::kFromBothEnds && lasts(value) && at > 0) at = highest(value, i, at);
      offset_[value] = at;
      arena = larger(arena, at + size(value));
    }
    if (order != Order::kFromBothEnds && arena >= best_.arena) return;
    best_.arena = arena;
    for (int value = 0; value < program_.value_count; ++value) {
      best_.offset[value] = offset_[best_.owner[value]];
    }
  }

  const Program& program_;
  Placement<kMax> best_;
  int placed_[std::size_t{kMax}] = {};  // owners in the arena
  int count_ = 0;
  std::size_t offset_[std::size_t{kMax}] = {};
};

/// A program and the places of its values.
template <class OfProgram>
struct Plan {
  OfProgram program;
  Placement<OfProgram::kMax.values> places;

  constexpr explicit Plan(const OfProgram& planned)
      : program(planned), places(Planner<OfProgram>(program).place()) {}
};

}  // namespace ATTUNE_NAMESPACE::detail
