// The programs of layers in sequence (core/program.hpp): inference, and training. A layer is one step forward
// and one backward; its tape, its scratch and the matrices on both sides are values.
//
// Backward of a layer may read y in place of x. It does so if the next layer's backward reads that matrix,
// too: then only one of the two is kept.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/core/planner.hpp>
#include <attune/core/program.hpp>
#include <attune/execution/checked_step.hpp>
#include <attune/execution/context.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/algorithm.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Bytes of a type, and their alignment.
struct Extent {
  std::size_t bytes = 0;
  std::size_t alignment = 1;
};
template <class Type>
inline constexpr Extent kExtent{kBytes<Type>, alignof(Type)};

/// Facts about a layer that the memory of a sequence depends on.
struct LayerInSequence {
  Extent output;
  Extent scratch;
  Extent tape = {};
  bool output_may_be_input = false;
  bool runs_backward = true;
  bool reads_input = false;            // in backward
  bool may_read_output = false;        // in place of its input
  bool gradient_may_be_input = false;  // the gradient of its input may overwrite the input
};

/// The values of a sequence. In a loop, the layers are equal and their values are copies of one layer's: a
/// matrix between two layers is one of as many as there are layers, if backward reads it, or of two that take
/// turns.
template <int layers, bool in_loop>
struct SequenceValues {
  static constexpr int kX = 0, kY = 1, kDx = 2, kDy = 3, kFirst = 4, kOfLayer = 5;
  static constexpr int kDescribed = in_loop ? 1 : layers;  // layers with values of their own
  static constexpr int kCount = kFirst + kOfLayer * kDescribed;

  static constexpr int output(int layer = 0) { return kFirst + kOfLayer * (in_loop ? 0 : layer); }
  static constexpr int gradient(int layer = 0) { return output(layer) + 1; }  // of the output
  static constexpr int tape(int layer = 0) { return output(layer) + 2; }
  static constexpr int forward_scratch(int layer = 0) { return output(layer) + 3; }
  static constexpr int backward_scratch(int layer = 0) { return output(layer) + 4; }
  /// The layer of a value.
  static constexpr int layer(int value) { return (value - kFirst) / kOfLayer; }
};

/// Writes the programs of layers in sequence.
template <int layers, bool in_loop>
class SequenceTrace {
  using Values = SequenceValues<layers, in_loop>;

 public:
  constexpr explicit SequenceTrace(const LayerInSequence (&all)[std::size_t{Values::kDescribed}]) {
    for (int i = 0; i < layers; ++i) all_[i] = all[in_loop ? 0 : i];
  }

  constexpr auto inference() {
    for (LayerInSequence& layer : all_) layer.runs_backward = false;
    add_values(false, ValueMemory::kResult);
    for (int i = 0; i < layers; ++i) forward(i);
    return program_;
  }
  /// Forward, and backward from the last layer to the first that runs backward.
  constexpr auto training() {
    for (int i = layers - 2; i > 0 && !in_loop; --i) {
      const bool next_reads_it = all_[i + 1].reads_input && !reads_output_[i + 1];
      reads_output_[i] = all_[i].may_read_output && all_[i].reads_input && next_reads_it;
    }
    add_values(all_[0].reads_input, ValueMemory::kCaller);
    program_.forward_steps = layers;
    for (int i = 0; i < layers; ++i) forward(i);
    for (int i = layers - 1; i >= 0 && all_[i].runs_backward; --i) backward(i);
    return program_;
  }

 private:
  constexpr void add_values(bool loop_keeps_outputs, ValueMemory y) {
    for (const char* name : {"x", "y", "dx", "dy"}) {
      const bool is_y = program_.value_count == Values::kY;
      add(name, layers - 1, all_[layers - 1].output, is_y ? y : ValueMemory::kCaller);
    }
    for (int i = 0; i < Values::kDescribed; ++i) {
      const bool loop_keeps_gradients = loop_keeps_outputs && all_[i].gradient_may_be_input;
      add("output", i, all_[i].output, ValueMemory::kArena, between(loop_keeps_outputs));
      add("gradient", i, all_[i].output, ValueMemory::kArena, between(loop_keeps_gradients));
      add("tape", i, all_[i].tape, ValueMemory::kTape, in_loop ? layers : 1);
      add("scratch", i, all_[i].scratch, ValueMemory::kArena);
      add("scratch", i, all_[i].scratch, ValueMemory::kArena);
    }
  }
  constexpr void add(const char* name, int layer, const Extent& extent, ValueMemory memory, int copies = 1) {
    program_.add({name, layer, extent.bytes, extent.alignment, memory, copies});
  }
  static constexpr int between(bool kept) {
    return !in_loop ? 1 : kept ? layers - 1 : smaller(layers - 1, 2);
  }

  [[nodiscard]] constexpr ValueCopy output(int i) const {
    if (i < 0) return {Values::kX};
    if (i + 1 == layers || (in_loop && works_in_place(i))) return {Values::kY};
    return {Values::output(i), i % program_.values[Values::output(i)].copies};
  }
  [[nodiscard]] constexpr ValueCopy gradient(int i) const {
    if (i < 0) return {Values::kDx};
    if (i + 1 == layers) return {Values::kDy};
    return {Values::gradient(i), i % program_.values[Values::gradient(i)].copies};
  }
  // Whether forward may write y over x.
  [[nodiscard]] constexpr bool works_in_place(int i) const {
    return all_[i].runs_backward ? reads_output_[i] : all_[i].output_may_be_input;
  }
  constexpr void forward(int i) {
    const ValueCopy x = output(i - 1);
    program_.begin("forward", i).read(x).write({Values::forward_scratch(i)});
    if (all_[i].runs_backward) program_.write({Values::tape(i), in_loop ? i : 0});
    program_.write(output(i), works_in_place(i) ? x.value : -1);
  }
  constexpr void backward(int i) {
    const ValueCopy x = output(reads_output_[i] ? i : i - 1);
    program_.begin("backward", i).read(gradient(i)).read({Values::tape(i), in_loop ? i : 0});
    program_.write({Values::backward_scratch(i)});
    if (all_[i].reads_input) program_.read(x);
    if (i > 0 && !all_[i - 1].runs_backward) return;
    program_.write(gradient(i - 1), all_[i].reads_input && all_[i].gradient_may_be_input ? x.value : -1);
  }

  Program<ProgramSize{Values::kCount, 2 * layers, 9 * layers}> program_;
  LayerInSequence all_[std::size_t{layers}];
  bool reads_output_[std::size_t{layers}] = {};  // in place of its input, in backward
};

/// Memory for the values of an arena.
template <std::size_t bytes, std::size_t alignment>
struct Arena {
  alignas(alignment) unsigned char storage[bytes];

  /// The value at an offset. A value of an empty type has no place.
  template <class Type>
  decltype(auto) at(std::size_t offset) {
    if constexpr (std::is_empty_v<Type>) {
      return Type{};
    } else {
      return (*std::launder(reinterpret_cast<Type*>(storage + offset)));
    }
  }
};
template <std::size_t alignment>
struct Arena<0, alignment> {
  template <class Type>
  static Type at(std::size_t) {
    return {};
  }
};

/// The scratch of layers in sequence, and the matrices between them that are not on the tape.
template <const auto& plan>
struct SequenceScratch {
  static constexpr const auto& kPlan = plan;
  [[no_unique_address]] Arena<plan.places.arena, plan.places.alignment> arena;

  template <class Type, int value>
  decltype(auto) at() {
    return arena.template at<Type>(plan.places.offset[value]);
  }
  /// The address of a value, or null if it has another memory. For checked mode.
  [[nodiscard]] const void* place(int value) const {
    if constexpr (plan.places.arena > 0) {
      if (plan.places.memory[value] == ValueMemory::kArena) return arena.storage + plan.places.offset[value];
    }
    return nullptr;
  }
  /// A matrix of two that take turns.
  template <class Matrix, int value>
  View<Matrix> copy(int i) {
    return (&at<Matrix, value>())[i % 2];
  }
};

/// `call`, a step of layers in sequence. Checked mode asserts that it writes only its own values. The other
/// arguments must outlive what is returned.
template <class Layer, AnyContext Call, class Tape, class Scratch, class Body>
ATTUNE_INLINE auto as_step([[maybe_unused]] const Call& context, [[maybe_unused]] int step,
                           [[maybe_unused]] const Tape& tape, [[maybe_unused]] Scratch& scratch,
                           const Body& call) {
  if constexpr (ATTUNE_CHECKED != 0) {
    return [&context, step, &tape, &scratch, call] {
      const auto place = [&](int value) {
        const void* const in_scratch = scratch.place(value);
        return in_scratch != nullptr ? in_scratch : tape.place(value);
      };
      return checked_step<Layer>(context, step, Scratch::kPlan, place, call);
    };
  } else {
    return call;
  }
}

}  // namespace ATTUNE_NAMESPACE::detail
