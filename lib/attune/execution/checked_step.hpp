// Checked mode for the steps of a model (kernels/checked.hpp). Two assertions, which name the layer and the
// value:
//
// A call of a layer, to completion, writes no NaN to y, dx or its gradients if x, dy and its parameters are
// below 1e9. Larger numbers may overflow: trainers return kNotFinite. Tokens after the valid ones may have
// any numbers, as may a mask's scores.
//
// A step of a program (core/program.hpp) changes no other value of it: in tape and scratch, it writes only
// its own tape, its own scratch, and y or dx.
//
//   attune: PRelu (8x6 to 8x6) wrote NaN to dx in backward, from numbers below 1e9
//   attune: layer 1, PRelu (8x6 to 8x6), changed the tape of layer 0 in forward
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/core/planner.hpp>
#include <attune/execution/context.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/checked.hpp>
#include <attune/kernels/simd/lanes.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The name of a class template or class, without namespace and arguments.
template <class Type>
[[nodiscard]] constexpr std::string_view class_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("Type = ") + 7);
  name = name.substr(0, name.find_first_of("<;]"));
  return name.substr(name.rfind(':') + 1);
}

/// A message of a failed check, put together without a heap.
class CheckMessage {
 public:
  CheckMessage& operator<<(std::string_view text) {
    for (const char c : text.substr(0, sizeof text_ - 1 - size_)) text_[size_++] = c;
    return *this;
  }
  CheckMessage& operator<<(int number) {
    if (number > 9) *this << number / 10;
    const char digit = static_cast<char>('0' + number % 10);
    return *this << std::string_view(&digit, 1);
  }
  /// Adds a layer: "Linear (2x3 to 2x4)".
  template <class Layer>
  CheckMessage& add_layer() {
    *this << class_name<Layer>() << " (";
    if constexpr (TakesIds<Layer>) {
      *this << "ids";
    } else {
      *this << Layer::Input::rows << "x" << Layer::Input::cols;
    }
    return *this << " to " << Layer::Output::rows << "x" << Layer::Output::cols << ")";
  }
  void fail() const {
#if ATTUNE_CHECKED
    on_failed_check(text_);
#endif
  }

 private:
  char text_[256] = "attune: ";
  std::size_t size_ = 8;
};

// ---- Numbers. ----

/// The largest of some numbers, as far as it matters.
enum class Numbers { kSmall = 0, kLarge = 1, kNaN = 2 };

template <class Real>
[[nodiscard, gnu::noinline]] Numbers numbers_in(const Real* values, std::size_t count) {
  Numbers largest = Numbers::kSmall;
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] != values[i]) return Numbers::kNaN;
    if (!(values[i] >= Real(-1e9) && values[i] <= Real(1e9))) largest = Numbers::kLarge;
  }
  return largest;
}
/// The same for the valid tokens of a contiguous matrix, in all lanes.
template <AnyContext Call, class View>
[[nodiscard]] Numbers numbers_in(const Call& context, const View& view) {
  using Scalar = std::remove_const_t<typename View::Scalar>;
  using Real = kernels::Real<Scalar>;
  const auto rows = static_cast<std::size_t>(static_cast<int>(context.template count<View::rows>()));
  return numbers_in(reinterpret_cast<const Real*>(view.data),
                    rows * std::size_t{View::cols} * (sizeof(Scalar) / sizeof(Real)));
}
/// The same for a set of tensors.
template <class Scalar, class Set>
[[nodiscard]] Numbers numbers_in(const Set& set) {
  using Real = kernels::Real<Scalar>;
  return numbers_in(reinterpret_cast<const Real*>(&set), kBytes<Set> / sizeof(Real));
}

/// The numbers of a layer's call.
template <class Layer, AnyContext Call>
class CheckedNumbers {
  using Parameters = typename Layer::Parameters;
  using Scalar = typename Layer::Scalar;

 public:
  explicit CheckedNumbers(const Call& context) : context_(context) {}

  /// Looks at a matrix that the call reads.
  void reads(const auto& matrix) { small_ = small_ && numbers_in(context_, matrix) == Numbers::kSmall; }
  template <int ids>
  void reads(const Ids<ids>&) {}
  /// Looks at a matrix that it has written.
  void wrote(const char* matrix, const char* call, const auto& view, const auto& parameters) const {
    if (small_ && numbers_in(context_, view) == Numbers::kNaN) fail(matrix, call, parameters);
  }
  /// Whether gradients can be looked at before and after the call: they are tensors, and no other sequence
  /// adds to them meanwhile.
  template <class Gradients>
  [[nodiscard]] bool are_small(const Gradients& gradients) const {
    return !Call::kInBatchOrder && std::is_same_v<Gradients, Parameters> && small_ &&
           numbers_in<Scalar>(gradients) == Numbers::kSmall;
  }
  void added(const auto& gradients, const auto& parameters) const {
    if (numbers_in<Scalar>(gradients) == Numbers::kNaN) fail("its gradients", "backward", parameters);
  }

 private:
  template <class Set>
  static void fail(const char* value, const char* call, const Set& parameters) {
    if (std::is_same_v<Set, Parameters> && numbers_in<Scalar>(parameters) != Numbers::kSmall) return;
    CheckMessage message;
    message.add_layer<Layer>() << " wrote NaN to " << value << " in " << call << ", from numbers below 1e9";
    message.fail();
  }

  const Call& context_;
  // Whether all that it reads is. In slices, a call may end before all is written. A mask may add any number
  // to scores.
  bool small_ =
      Call::kRunsToCompletion && !(kAbilities<Layer>.mask == MaskUse::kScores &&
                                   kMasks<typename Call::Mask> && !std::is_empty_v<typename Call::Mask>);
};

/// Calls forward(), and checks y.
template <class Layer, AnyContext Call>
ForwardResult<Layer> checked_forward(const Call& context, const auto& forward, const auto& parameters,
                                     const auto& x, const auto& y, const auto&...) {
  CheckedNumbers<Layer, Call> numbers(context);
  numbers.reads(ConstView<typename Layer::Input>(x));
  return then(forward,
              [&] { numbers.wrote("y", "forward", ConstView<typename Layer::Output>(y), parameters); });
}
/// Calls backward(), and checks dx and the gradients.
template <class Layer, AnyContext Call, class Gradients>
void checked_backward(const Call& context, const auto& backward, const auto& parameters, const auto& x,
                      const auto&, const auto& dy, const auto& dx, const Gradients& gradients, const auto&) {
  CheckedNumbers<Layer, Call> numbers(context);
  numbers.reads(ConstView<typename Layer::Output>(dy));
  if (ReadsInput<Layer, Gradients>) numbers.reads(ConstView<typename Layer::Input>(x));
  const bool were_small = numbers.are_small(gradients);
  backward();
  if constexpr (kWanted<decltype(dx)> && !Call::kInBatchOrder) {  // turns of a refused batch write nothing
    numbers.wrote("dx", "backward", ConstView<typename Layer::Input>(dx), parameters);
  }
  if (were_small) numbers.added(gradients, parameters);
}

// ---- Memory. ----

/// A range of memory.
struct MemoryRange {
  const unsigned char* begin = nullptr;
  std::size_t bytes = 0;

  [[nodiscard]] const unsigned char* end() const { return begin + bytes; }
  [[nodiscard]] bool contains(const unsigned char* at) const { return begin <= at && at < end(); }
};

/// The memory of a program that a step may not change.
template <class Plan>
class CheckedMemory {
  static constexpr int kValues = decltype(Plan::program)::kMax.values;

 public:
  /// Before the step. `place(value)` is the address of a value in the arena or on the tape, or null.
  CheckedMemory(const Plan& plan, int step, const auto& place) : plan_(plan), step_(step) {
    for (int value = 0; value < plan.program.value_count; ++value) {
      const ProgramValue& of = plan.program.values[value];
      const bool has_memory = plan.places.owner[value] == value && plan.places.life[value].used();
      const auto* const at = has_memory ? static_cast<const unsigned char*>(place(value)) : nullptr;
      if (at != nullptr) memory_[value] = {at, of.bytes * static_cast<std::size_t>(of.copies)};
    }
    for (int i = plan.program.steps[step].first; i < plan.program.steps[step].end; ++i) {
      const Operand& operand = plan.program.operands[i];
      const ProgramValue& of = plan.program.values[operand.value];
      if (!operand.writes && of.memory != ValueMemory::kTape) continue;  // backward may use up its tape
      const MemoryRange& whole = memory_[plan.places.owner[operand.value]];
      const std::size_t first = of.bytes * static_cast<std::size_t>(operand.copy);
      if (whole.bytes > 0) written_[written_count_++] = {whole.begin + first, of.bytes};
    }
    for (int value = 0; value < plan.program.value_count; ++value) hashes_[value] = hash(memory_[value]);
  }
  /// After the step.
  template <class Layer>
  void check() const {
    int changed = -1;
    for (int value = plan_.program.value_count - 1; value >= 0; --value) {
      const bool lives = plan_.places.life[value].meets({step_, step_});
      if ((changed < 0 || lives) && hash(memory_[value]) != hashes_[value]) changed = value;
    }
    if (changed < 0) return;
    const ProgramValue& of = plan_.program.values[changed];
    const auto& step = plan_.program.steps[step_];
    CheckMessage message;
    (message << "layer " << step.layer << ", ").template add_layer<Layer>() << ", changed ";
    const bool lives = plan_.places.life[changed].meets({step_, step_});
    if (!lives && plan_.places.memory[changed] == ValueMemory::kArena) {
      message << "scratch that is not its own";
    } else if (of.copies > 1) {
      message << "the " << of.name << " of another layer";
    } else {
      message << "the " << of.name << " of layer " << of.layer;
    }
    (message << " in " << step.name).fail();
  }

 private:
  // Hashes a range without the parts that the step writes.
  [[nodiscard]] std::uint64_t hash(const MemoryRange& range) const {
    std::uint64_t state = 1;
    for (const unsigned char* at = range.begin; at != range.end();) {
      const unsigned char* end = range.end();
      bool is_written = false;
      for (int i = 0; i < written_count_; ++i) {
        const MemoryRange& written = written_[i];
        if (written.contains(at)) {
          at = smaller(written.end(), range.end());
          is_written = true;
          break;
        }
        if (written.begin > at) end = smaller(end, written.begin);
      }
      if (is_written) continue;
      for (; end - at >= std::ptrdiff_t{sizeof state}; at += sizeof state) {
        std::uint64_t next;
        __builtin_memcpy(&next, at, sizeof next);
        state = (state ^ next) * 0x9E3779B97F4A7C15u;
        state ^= state >> 32;
      }
      for (; at != end; ++at) state = (state ^ *at) * 0x100000001B3u;
    }
    return state;
  }

  const Plan& plan_;
  int step_;
  MemoryRange memory_[std::size_t{kValues}] = {};
  MemoryRange written_[std::size_t{kValues}] = {};
  int written_count_ = 0;
  std::uint64_t hashes_[std::size_t{kValues}] = {};
};

/// Calls a step of a plan, and checks that it changed no other value. place(value) is the value's address.
template <class Layer, AnyContext Call, class Plan>
auto checked_step(const Call&, int step, const Plan& plan, const auto& place, const auto& call) {
  // Several members of a crew work on one tape.
  if (!Call::kRunsToCompletion && !Call::kStopsWithin) return call();
  const CheckedMemory<Plan> memory(plan, step, place);
  return then(call, [&] { memory.template check<Layer>(); });
}

}  // namespace ATTUNE_NAMESPACE::detail
