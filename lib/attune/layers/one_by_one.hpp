// A layer in the middle of others that are in lockstep (training/lockstep.hpp), whose scalars have no lanes:
// token ids, a layer of one's own, sums of more tokens than lanes add up as one sequence does.
//
// Each sequence is taken out of its lane, the layer runs as it is, and what it gives is put back. So its
// parameters are numbers and not lanes, and so are its gradients, to which the sequences add in their order.
#pragma once

#include <attune/core/layer.hpp>
#include <attune/kernels/lanes.hpp>
#include <attune/layers/dropout.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

// What a layer has for each of several sequences; no byte where it is empty.
template <class Each, int count>
struct EachLane {
  Each of[std::size_t{count}];
  constexpr Each& operator[](int lane) { return of[lane]; }
};
template <class Each, int count>
  requires std::is_empty_v<Each>
struct EachLane<Each, count> {
  constexpr Each operator[](int) { return {}; }
};

// The input of several sequences: a matrix of lanes, or the ids of one after the other.
template <class Input, class Number, int lanes>
struct InputOfLanes {
  using Scalar = kernels::LanesOf<Number, lanes>;
  using type = Tensor<Scalar, Input::rows, Input::cols>;
  using Storage = Input;  // of a sequence

  static ConstView<Input> take(ConstView<type> x, int lane, Storage& to) {
    kernels::take_lane(Input::size, x.data, lane, to.data());
    return to;
  }
};
template <std::size_t size, class Number, int lanes>
struct InputOfLanes<std::array<int, size>, Number, lanes> {
  using type = std::array<int, size * lanes>;
  struct Storage {};

  static ConstView<std::array<int, size>> take(ConstView<type> ids, int lane, Storage&) {
    return ConstView<std::array<int, size>>(ids.data() + static_cast<std::size_t>(lane) * size);
  }
};

/// `Layer` for as many sequences as a scalar has lanes.
template <class Layer, class Number, int lanes>
struct OneByOne<Layer, kernels::LanesOf<Number, lanes>> {
  using Scalar = kernels::LanesOf<Number, lanes>;
  using Stacked = InputOfLanes<typename Layer::Input, Number, lanes>;
  using Input = typename Stacked::type;
  using Output = Tensor<Scalar, Layer::Output::rows, Layer::Output::cols>;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = SetOf<Layer, Matrix, Vector>;
  using Parameters = typename Layer::Parameters;
  template <class Gradients>
  static constexpr bool kReadsInput = detail::kReadsInput<Layer, Gradients>;
  static constexpr bool kFrozen = detail::kFrozen<Layer>;
  static constexpr bool kTakesMask = detail::kTakesMask<Layer>;
  static constexpr bool kTakesPaddingOnly = detail::kTakesPaddingOnly<Layer>;
  static constexpr bool kTakesLength = false;
  static constexpr bool kGradientMayBeInput = !kTakesIds<Layer>;

  template <class Gradients>
  struct TapeOf {
    using Each = detail::TapeOf<Layer, Gradients>;
    [[no_unique_address]] EachLane<Each, lanes> layers;

    /// The first sequence's; forward draws for the others as many behind.
    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires kDropsIn<Each> {
      layers[0].for_each_dropout(visitor);
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class OfLayer>
  struct ScratchWith {
    [[no_unique_address]] OfLayer layer;
    [[no_unique_address]] typename Stacked::Storage x, dx;
    typename Layer::Output y;  // or dy
  };
  template <class Gradients>
  struct ScratchOf : ScratchWith<detail::ScratchOf<Layer, Gradients>> {};
  using Scratch = ScratchOf<Parameters>;
  struct InferenceScratch : ScratchWith<typename Layer::InferenceScratch> {};

  /// Inference. `y` may not overlap `x`.
  template <class Set = Parameters, AttentionMask Mask = NoMask>
  static Outcome<Layer> forward(const Set& parameters, ConstView<Input> x, View<Output> y,
                                InferenceScratch& scratch, const Mask& mask = {}) {
    return for_each_sequence(x, y, scratch, [&](int, auto of_sequence, auto to) {
      return forward_status<Layer>(InOneGo{}, mask, parameters, of_sequence, to, scratch.layer);
    });
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class Kept, AttentionMask Mask = NoMask>
  static Outcome<Layer> forward(const Set& parameters, ConstView<Input> x, View<Output> y, TapeOf<Kept>& tape,
                                ScratchOf<Kept>& scratch, const Mask& mask = {}) {
    return for_each_sequence(x, y, scratch, [&](int lane, auto of_sequence, auto to) {
      auto&& own = tape.layers[lane];
      if constexpr (kDropsIn<typename TapeOf<Kept>::Each>) {
        if (lane > 0) copy_masks(tape.layers[0], own);
        skip_masks(own, lane);
      }
      return forward_status<Layer>(InOneGo{}, mask, parameters, of_sequence, to, own, scratch.layer);
    });
  }
  /// dx from dy, overwritten, or NoGradient; gradients accumulate in the order of the sequences. `dx` may be
  /// `x`.
  template <class Set = Parameters, class Kept, class Dx, class Gradients, AttentionMask Mask = NoMask>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, ScratchOf<Kept>& scratch, const Mask& mask = {}) {
    for (int lane = 0; lane < lanes; ++lane) {
      const auto of_sequence = Stacked::take(x, lane, scratch.x);
      kernels::take_lane(Output::size, dy.data, lane, scratch.y.data());
      auto&& own = tape.layers[lane];
      const auto run = [&](auto to) {
        backward_through<Layer>(mask, parameters, of_sequence, own,
                                ConstView<typename Layer::Output>(scratch.y), to, gradients, scratch.layer);
      };
      if constexpr (kAsked<Dx>) {
        run(View<typename Layer::Input>(scratch.dx));
        kernels::put_lane(Input::size, scratch.dx.data(), lane, sink<Input>(dx).data);
      } else {
        run(NoGradient{});
      }
    }
  }

 private:
  static Outcome<Layer> for_each_sequence(ConstView<Input> x, View<Output> y, auto& scratch,
                                          const auto& forward_one) {
    for (int lane = 0; lane < lanes; ++lane) {
      [[maybe_unused]] const Status status = forward_one(lane, Stacked::take(x, lane, scratch.x),
                                                         View<typename Layer::Output>(scratch.y));
      if constexpr (kTakesIds<Layer>) {
        if (status != Status::kOk) return status;
      }
      kernels::put_lane(Output::size, scratch.y.data(), lane, y.data);
    }
    return Outcome<Layer>(Status::kOk);
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
