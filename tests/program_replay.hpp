// Two judges of a plan, and neither knows how it was made. first_fault() replays a program without
// arithmetic: it finds reads of what another value has overwritten. Executed runs it: each step writes
// numbers that depend on all that it reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <attune/core/planner.hpp>
#include <attune/core/program.hpp>

namespace check {

using attune::detail::Operand, attune::detail::ValueMemory;

/// The addresses of values in one memory: the arena, then each value outside of it.
template <class Program>
struct Addresses {
  std::vector<std::size_t> of;
  std::size_t bytes = 0;

  Addresses(const Program& program, const auto& places) : of(static_cast<std::size_t>(program.value_count)) {
    bytes = places.arena;
    for (int value = 0; value < program.value_count; ++value) {
      if (places.owner[value] != value) continue;
      if (places.memory[value] == ValueMemory::kArena) {
        at(value) = places.offset[value];
      } else {
        at(value) = bytes;
        bytes += program.values[value].bytes * static_cast<std::size_t>(program.values[value].copies);
      }
    }
    for (int value = 0; value < program.value_count; ++value) at(value) = at(places.owner[value]);
  }
  std::size_t& at(int value) { return of[static_cast<std::size_t>(value)]; }
};

/// A read of a value that is not there, or a write over an operand of the same step.
struct Fault {
  int step = -1;
  int value = -1;

  explicit operator bool() const { return step >= 0; }
  template <class Program>
  [[nodiscard]] std::string message(const Program& program) const {
    const auto name = [](const auto& named) { return named.name + (" " + std::to_string(named.layer)); };
    return name(program.steps[step]) + " uses " + name(program.values[value]) + ", which is overwritten";
  }
};

template <class Program>
class Replay {
 public:
  Replay(const Program& program, const std::vector<std::size_t>& address)
      : program_(program), address_(address) {}

  Fault first_fault() {
    for (int step = 0; step < program_.step_count; ++step) {
      for (const bool writes : {false, true}) {
        for (int i = program_.steps[step].first; i < program_.steps[step].end; ++i) {
          const Operand& used = program_.operands[i];
          if (used.writes != writes || program_.values[used.value].bytes == 0) continue;
          if (writes ? overwrites_operand(step, i) : !holds(used)) return {step, used.value};
          if (writes) write(used);
        }
      }
    }
    return {};
  }

 private:
  struct Bytes {
    int value, copy;
    std::size_t begin, end;
    [[nodiscard]] bool meets(const Bytes& other) const {
      return (std::max)(begin, other.begin) < (std::min)(end, other.end);
    }
    bool operator==(const Bytes&) const = default;
  };
  [[nodiscard]] Bytes bytes_of(const Operand& used) const {
    const std::size_t bytes = program_.values[used.value].bytes;
    const std::size_t begin =
        address_[static_cast<std::size_t>(used.value)] + static_cast<std::size_t>(used.copy) * bytes;
    return {used.value, used.copy, begin, begin + bytes};
  }
  // What a caller writes is there until a step overwrites it.
  [[nodiscard]] bool holds(const Operand& used) const {
    const Bytes read = bytes_of(used);
    for (const Bytes& each : written_) {
      if (each == read) return true;
    }
    if (program_.values[used.value].memory != ValueMemory::kCaller) return false;
    for (const Bytes& each : all_written_) {
      if (each.meets(read)) return false;
    }
    return true;
  }
  [[nodiscard]] bool overwrites_operand(int step, int written) const {
    const Operand& result = program_.operands[written];
    const Bytes bytes = bytes_of(result);
    for (int i = program_.steps[step].first; i < program_.steps[step].end; ++i) {
      const Operand& other = program_.operands[i];
      if (i == written || !bytes.meets(bytes_of(other))) continue;
      const bool allowed =
          other.value == result.over && !other.writes && bytes_of(other).begin == bytes.begin;
      if (!allowed) return true;
    }
    return false;
  }
  void write(const Operand& used) {
    const Bytes bytes = bytes_of(used);
    std::erase_if(written_, [&](const Bytes& each) { return each.meets(bytes); });
    written_.push_back(bytes);
    all_written_.push_back(bytes);
  }

  const Program& program_;
  const std::vector<std::size_t>& address_;
  std::vector<Bytes> written_;  // and not overwritten
  std::vector<Bytes> all_written_;
};
template <class Program>
Fault first_fault(const Program& program, const std::vector<std::size_t>& address) {
  return Replay<Program>(program, address).first_fault();
}

/// Runs a program in bytes. A step fills its results before it reads its operands, except a result over an
/// operand, which it writes after reading. Returns a hash of all that steps
/// read and wrote.
template <class Program>
std::uint64_t executed(const Program& program, const std::vector<std::size_t>& address, std::size_t bytes) {
  std::vector<std::uint64_t> memory(bytes, 1);
  std::uint64_t all = 0;
  const auto mixed = [](std::uint64_t a, std::uint64_t b) {
    a = (a ^ b) * 0x9e3779b97f4a7c15u;
    return a ^ a >> 29;
  };
  for (int value = 0; value < program.value_count; ++value) {
    if (program.values[value].memory != ValueMemory::kCaller) continue;
    for (std::size_t i = 0; i < program.values[value].bytes; ++i) {
      memory[address[static_cast<std::size_t>(value)] + i] = mixed(static_cast<std::uint64_t>(value), i);
    }
  }
  for (int step = 0; step < program.step_count; ++step) {
    std::uint64_t read = static_cast<std::uint64_t>(step);
    const auto each = [&](const auto& body) {
      for (int i = program.steps[step].first; i < program.steps[step].end; ++i) {
        const Operand& used = program.operands[i];
        const std::size_t size = program.values[used.value].bytes;
        const std::size_t begin =
            address[static_cast<std::size_t>(used.value)] + static_cast<std::size_t>(used.copy) * size;
        for (std::size_t byte = 0; byte < size; ++byte) body(used, memory[begin + byte], byte);
      }
    };
    const auto fill = [&](bool over) {
      each([&](const Operand& used, std::uint64_t& at, std::size_t byte) {
        const auto value = static_cast<std::size_t>(used.value);
        const bool is_over = used.over >= 0 && address[value] == address[static_cast<std::size_t>(used.over)];
        if (used.writes && is_over == over) at = mixed(mixed(read, value), byte);
      });
    };
    fill(false);
    each([&](const Operand& used, std::uint64_t& at, std::size_t) {
      if (!used.writes) read = mixed(read, at);
    });
    fill(false);
    fill(true);
    each([&](const Operand& used, std::uint64_t& at, std::size_t) {
      if (used.writes) all = mixed(all, at);
    });
    all = mixed(all, read);
  }
  return all;
}

}  // namespace check
