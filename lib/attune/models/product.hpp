// A layer times its gate, element by element:
//
//   y = f(x) ∘ g(x),   dx = (∂f/∂x)ᵀ·(dy ∘ g(x)) + (∂g/∂x)ᵀ·(dy ∘ f(x))
//
//   using Gated = attune::Product<Attention, attune::Sequential<Linear, attune::Sigmoid<17, 32>>>;
//   using Excited = attune::Product<attune::Identity<17, 32>,
//                                   attune::Sequential<Pooling, Down, Relu, Up, attune::Sigmoid<1, 32>>>;
//
// The gate may have one row, which multiplies all tokens (Hu et al., "Squeeze-and-Excitation Networks",
// 2018). An Identity as f takes no memory: x is read in place. If tokens meet in g, as in a Linear over
// tokens, this is a spatial gating unit (Liu et al., "Pay Attention to MLPs", 2021).
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/scale_features.hpp>
#include <attune/layers/identity.hpp>
#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Layer, class Gate>
constexpr bool check_product() {
  static_assert(
      Holds<(!TakesIds<Layer> && !TakesIds<Gate>)>,
      "attune::Product: a layer that takes token ids cannot be a factor; put the embedding in front");
  static_assert(Holds<(std::is_same_v<typename Layer::Input, typename Gate::Input>)>,
                "attune::Product: both layers need inputs of one shape and scalar type");
  static_assert(Holds<(Layer::Output::cols == Gate::Output::cols &&
                       (Layer::Output::rows == Gate::Output::rows || Gate::Output::rows == 1))>,
                "attune::Product: both outputs need one shape, or the second one a single row, which "
                "multiplies all rows of the first");
  static_assert(Holds<!kIsIdentity<Gate>>,
                "attune::Product: an Identity must be the first layer; exchange the two");
  return true;
}
template <class Layer, class Gate>
concept Multipliable = check_product<Layer, Gate>();

}  // namespace detail

/// The product of the outputs of two layers with the same input, element by element. The second output may
/// have one row, which multiplies all rows of the first. `Product<Identity<rows, cols>, Gate>` is x ∘ g(x).
template <detail::CheckedLayer LayerType, detail::CheckedLayer GateType>
  requires detail::Multipliable<LayerType, GateType>
struct Product : detail::Steps<Product<LayerType, GateType>>, detail::Passes<Product<LayerType, GateType>> {
  /// The first layer.
  using Layer = LayerType;
  /// The layer whose output multiplies the first one's.
  using Gate = GateType;
  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  template <class Other>
  using WithScalar = Product<typename detail::WithScalarOf<Layer, Other>::type,
                             typename detail::WithScalarOf<Gate, Other>::type>;
  using Parts = LayerList<Layer, Gate>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("Product", kFingerprintOf<Layer>, kFingerprintOf<Gate>);

  /// `layer<0>()` is the layer's set, `layer<1>()` the gate's, named "0" and "1" in the names of tensors.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = typename detail::LayerSets<Layer, Gate>::template ParametersOf<Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities = detail::kAbilitiesOfAll<Layer, Gate>;

 private:
  using Sets = detail::LayerSets<Layer, Gate>;
  template <class Gradients>
  using MemoryOf = typename Sets::template MemoryOf<Gradients>;
  static constexpr bool kOfInput = detail::kIsIdentity<Layer>;
  static constexpr bool kOneRow = Gate::Output::rows < Output::rows;

 public:
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = kOfInput || MemoryOf<Gradients>::kReads;
  /// The layers' tapes and both factors.
  template <class Gradients>
  struct TapeOf : detail::TapeOfParts<typename MemoryOf<Gradients>::Tapes> {
    [[no_unique_address]] detail::OutputMemory<Layer> factor;
    typename Gate::Output gate;
  };
  using Tape = TapeOf<Parameters>;
  /// The gradient of the gate, then the dx of a layer, and the scratch of a layer.
  template <class Gradients>
  struct ScratchOf {
    detail::OneOf<typename Gate::Output, Input> gradient;
    typename MemoryOf<Gradients>::Scratches layers;
  };
  using Scratch = ScratchOf<Parameters>;
  /// The gate, and the scratch of a layer.
  struct InferenceScratch {
    typename Gate::Output gate;
    detail::OneOf<typename Layer::InferenceScratch, typename Gate::InferenceScratch> layers;
  };

  /// Token by token (execution/stream.hpp), if each layer supports it and the gate has a row for each token.
  template <int tokens, CacheShape cache, bool kWhole = kOneRow>
  struct Stream : Sets::template Streams<tokens, cache> {
    struct Scratch {
      detail::StepOutput<Gate, tokens> gate;
      typename Stream::Scratches layers;
    };
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<detail::StepInput<Product, tokens>> x,
                     View<detail::StepOutput<Product, tokens>> y, auto& memory, Scratch& scratch,
                     const auto&... more) {
      const auto run = [&]<int index>(auto to) ATTUNE_INLINE_LAMBDA {
        Stream::template step_of<index>(position, parameters, x, to, memory,
                                        detail::one_of<index>(scratch.layers), more...);
      };
      run.template operator()<1>(View<detail::StepOutput<Gate, tokens>>(scratch.gate));
      if constexpr (!kOfInput) run.template operator()<0>(y);
      kernels::scale_features<false>(tokens * Output::cols, kOfInput ? x.data : y.data, scratch.gate.data(),
                                     y.data);
    }
  };
  template <int tokens, CacheShape cache>
  struct Stream<tokens, cache, true> : detail::NeedsWholeSequence<tokens> {};

  /// Neither `y` nor `dx` may overlap `x`, nor `dx` `dy`.
  using detail::Passes<Product>::forward, detail::Passes<Product>::backward;

 private:
  friend detail::Passes<Product>;
  ATTUNE_INLINE static void run(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                auto& scratch, auto&... tape) {
    auto& gate = detail::on_tape(scratch, tape...).gate;
    Sets::template forward<1>(context, parameters, x, View<typename Gate::Output>(gate), scratch.layers,
                              detail::member<1>(tape.layers)...);
    const Scalar* factor = x.data;
    if constexpr (!kOfInput) {
      const View<Output> of_layer = detail::on_tape(y, tape.factor.values...);
      Sets::template forward<0>(context, parameters, x, of_layer, scratch.layers,
                                detail::member<0>(tape.layers)...);
      factor = of_layer.data;
    }
    multiply<false>(context, factor, gate.data(), y.data);
  }
  template <class Call>
  ATTUNE_INLINE static void run_backward(const Call& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    const View<typename Gate::Output> d_gate(detail::one_of<0>(scratch.gradient));
    differentiate_gate(context, dy.data, detail::output_of<Layer>(x, tape.factor).data, d_gate.data);
    Sets::template backward<1>(context, parameters, x, tape.layers, ConstView<typename Gate::Output>(d_gate),
                               dx, gradients, scratch.layers);
    // The layer's dx, in the memory of d_gate.
    const auto term =
        detail::first_if<kWanted<decltype(dx)>>(View<Input>(detail::one_of<1>(scratch.gradient)), dx);
    if constexpr (!kOfInput) {
      const View<Output> d_factor(tape.factor.values);
      multiply<Call::kSkipsZeros>(context, dy.data, tape.gate.data(), d_factor.data);
      Sets::template backward<0>(context, parameters, x, tape.layers, ConstView<Output>(d_factor), term,
                                 gradients, scratch.layers);
    } else if constexpr (kWanted<decltype(dx)>) {
      multiply<Call::kSkipsZeros>(context, dy.data, tape.gate.data(), term.data);
    }
    detail::add_to<Input>(context, term, dx);
  }
  // y = x ∘ gate. With kZeroStays, y is zero for a zero x, whatever the gate is.
  template <bool kZeroStays>
  static void multiply(const auto& context, const Scalar* x, const Scalar* gate, Scalar* y) {
    const auto& any_order = context.in_any_order();
    if constexpr (kOneRow) {
      any_order.template each_token<Output::rows, 2 * Output::cols>([&](int i) ATTUNE_INLINE_LAMBDA {
        const int row = i * Output::cols;
        kernels::scale_features<false, kZeroStays>(Output::cols, x + row, gate, y + row);
      });
    } else {
      any_order.template token_elements<Output::rows, Output::cols, 2>(
          [&](int first, int count) ATTUNE_INLINE_LAMBDA {
            kernels::scale_features<false, kZeroStays>(count, x + first, gate + first, y + first);
          });
    }
  }
  // d_gate = dy ∘ factor, over all rows if the gate has one. A zero dy adds nothing, as in multiply().
  template <class Call>
  static void differentiate_gate(const Call& context, const Scalar* dy, const Scalar* factor,
                                 Scalar* d_gate) {
    if constexpr (kOneRow) {
      context.stage([&] {
        for (int j = 0; j < Output::cols; ++j) d_gate[j] = Scalar(0);
        kernels::add_feature_products<false, Call::kSkipsZeros>(
            kernels::size_for_rows<Scalar>(context.template count<Output::rows>()), Output::cols, dy, factor,
            d_gate);
      });
    } else {
      multiply<Call::kSkipsZeros>(context, dy, factor, d_gate);
    }
  }
};

}  // namespace ATTUNE_NAMESPACE
