// Memory of a Sequential (sequential.hpp) in training: on the tape, between two layers, and in scratch.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <attune/models/composition.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Memory of layers in sequence.
template <class... Layers>
struct SequentialMemory {
  static constexpr int kLayers = static_cast<int>(sizeof...(Layers));
  template <int index>
  using Layer = typename TypeAt<index, Layers...>::type;
  using Scalar = typename Layer<0>::Scalar;

  template <class Body>
  static constexpr void for_each_index(const Body& body) {
    [&]<std::size_t... index>(std::index_sequence<index...>) {
      (body.template operator()<static_cast<int>(index)>(), ...);
    }
    (std::make_index_sequence<std::size_t{kLayers}>{});
  }
  template <class Gradients, int index>
  using GradientsOf = std::remove_cvref_t<decltype(std::declval<Gradients&>().template layer<index>())>;

  // Whether a layer has no trained parameters and no dropout.
  template <class Each>
  static constexpr bool kFixed = std::is_empty_v<typename Each::Parameters> &&
                                 (kFrozen<Each> || !kDropsIn<typename Each::Tape>);
  // The number of layers at the front that run inference only in training: up to the last Frozen one before
  // the first that is not fixed.
  static constexpr int kInferred = [] {
    const bool fixed[] = {kFixed<Layers>...};
    const bool frozen[] = {kFrozen<Layers>...};
    int count = 0;
    for (int i = 0; i < kLayers && fixed[i]; ++i) {
      if (frozen[i]) count = i + 1;
    }
    return count;
  }();
  // Whether all layers are fixed.
  static constexpr bool kAllFixed = (kFixed<Layers> && ...);
  struct Nothing {};

  // Memory of a layer.
  template <class Gradients, int index>
  struct KeptOf {
    using Tape = TapeOf<Layer<index>, GradientsOf<Gradients, index>>;
    using Scratch = ScratchOf<Layer<index>, GradientsOf<Gradients, index>>;
    static constexpr bool kReadsInput = detail::kReadsInput<Layer<index>, GradientsOf<Gradients, index>>;
  };
  template <class Gradients, int index>
    requires(index < kInferred)
  struct KeptOf<Gradients, index> {
    using Tape = Nothing;
    using Scratch = typename Layer<index>::InferenceScratch;
    static constexpr bool kReadsInput = false;
  };
  // Whether the next layer's backward reads the output of layer `index`.
  template <class Gradients, int index>
  static constexpr bool kNextReads = KeptOf<Gradients, index + 1>::kReadsInput;
  // Whether layer `index` overwrites its input with its output on the tape, and backward reads the latter.
  template <class Gradients, int index>
  static consteval bool works_in_place() {
    if constexpr (index > 0 && index + 1 < kLayers) {
      return kAbilities<Layer<index>>.backward_may_read_output && KeptOf<Gradients, index>::kReadsInput &&
             kNextReads<Gradients, index> && !works_in_place<Gradients, index + 1>();
    } else {
      return false;
    }
  }
  // Whether the output of layer `index` has memory of its own on the tape.
  template <class Gradients, int index>
  static constexpr bool kKeepsOutput =
      kNextReads<Gradients, index> && !works_in_place<Gradients, index + 1>();
  // Whether its gradient overwrites it on the tape. A layer in place reads its output once more.
  template <class Gradients, int index>
  static constexpr bool kGradientInPlace =
      !works_in_place<Gradients, index>() && kNextReads<Gradients, index> &&
      kGradientReplacesInput<Layer<index + 1>, GradientsOf<Gradients, index + 1>>;

  // The scalars after a layer that are not on the tape.
  template <class Gradients, int index>
  static constexpr int kInScratch = [] {
    if constexpr (index + 1 == kLayers) {
      return 0;
    } else {
      return kGradientInPlace<Gradients, index> ? 0 : Layer<index>::Output::size;
    }
  }();

  // Whether a layer runs inference only and its output takes the memory of its input.
  template <class Gradients, int index>
  static constexpr bool kInferredInPlace = [] {
    if constexpr (index > 0 && index < kInferred && index + 1 < kLayers) {
      return kReplacesInput<Layer<index>> && !kNextReads<Gradients, index>;
    } else {
      return false;
    }
  }();

  // Memory of all layers: their tapes, matrices between them on the tape, scratch.
  template <class Gradients, class Indices = std::make_integer_sequence<int, kLayers>>
  struct All;
  template <class Gradients, int... index>
  struct All<Gradients, std::integer_sequence<int, index...>> {
    using Tapes = Members<typename KeptOf<Gradients, index>::Tape...>;
    using Scratch =
        SequentialScratch<Scalar,
                          SequentialOutputs<SequentialOutput{kInScratch<Gradients, index>,
                                                             kInferredInPlace<Gradients, index>}...>,
                          typename KeptOf<Gradients, index>::Scratch...>;
    static constexpr bool kDrops = (kDropsIn<typename KeptOf<Gradients, index>::Tape> || ...);
  };
  template <class Gradients, class Indices = std::make_integer_sequence<int, kLayers - 1>>
  struct Between;
  template <class Gradients, int... index>
  struct Between<Gradients, std::integer_sequence<int, index...>> {
    using Outputs = Members<
        std::conditional_t<kKeepsOutput<Gradients, index>, typename Layer<index>::Output, Nothing>...>;
  };
  // Whether each layer takes the output of the one before it.
  static constexpr bool kAllFit = []<int... index>(std::integer_sequence<int, index...>) {
    return (kFits<Layer<index>, Layer<index + 1>> && ...);
  }
  (std::make_integer_sequence<int, kLayers - 1>{});

  // The first trained layer. Earlier layers need no gradient unless dx is requested.
  template <class Gradients>
  static constexpr int kFirstTrained = [] {
    int first = kLayers - 1;
    for_each_index([&first]<int index>() {
      if constexpr (!std::is_empty_v<GradientsOf<Gradients, index>>) first = (std::min)(first, index);
    });
    return first;
  }();
};

}  // namespace ATTUNE_NAMESPACE::detail
