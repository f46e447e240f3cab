// A layer with a shortcut:  y = x + f(x),   dx = dy + (∂f/∂x)ᵀ·dy   (He et al., "Deep Residual Learning for
// Image Recognition", 2016).
#pragma once

#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE {

/// x + f(x); the output of the layer has the shape of its input.
template <detail::CheckedLayer Layer>
struct Residual : Layer {
  static_assert(detail::check_next<Layer>());
  using typename Layer::Scalar, typename Layer::Input, typename Layer::Output, typename Layer::Parameters;
  using typename Layer::Tape, typename Layer::Scratch, typename Layer::InferenceScratch;
  template <class Other>
  using WithScalar = Residual<typename detail::WithScalarOf<Layer, Other>::type>;
  using Parts = LayerList<Layer>;
  static constexpr std::uint32_t kFingerprint = fingerprint("residual", kFingerprintOf<Layer>);
  static constexpr Abilities kAbilities = detail::kAbilitiesOfAll<Layer>;
  /// Token by token (execution/stream.hpp), if the layer supports it.
  template <int tokens, CacheShape cache>
  struct Stream : detail::StreamOf<Layer, tokens, cache> {
    using Base = detail::StreamOf<Layer, tokens, cache>;
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<detail::StepInput<Layer, tokens>> x, View<detail::StepOutput<Layer, tokens>> y,
                     auto& memory, typename Base::Scratch& scratch, const auto&... more) {
      Base::step(position, parameters, x, y, memory, scratch, more...);
      kernels::add_to(tokens * Input::cols, x.data, y.data);
    }
  };
  /// Deleted: a norm's recompute() would omit x.
  static void recompute(const auto&...) = delete;

  /// Inference. `y` may not overlap `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    detail::forward_in<Layer>(context, parameters, x, y, scratch);
    detail::add_to<Input>(context, x.data, y.data);
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class AnyTape, class AnyScratch, AnyContext Call = Context<>>
    requires(!std::is_same_v<AnyTape, InferenceScratch>)
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, AnyTape& tape,
                      AnyScratch& scratch, const Call& context = {}) {
    detail::forward_in<Layer>(context, parameters, x, y, tape, scratch);
    detail::add_to<Input>(context, x.data, y.data);
  }
  /// dx from dy, overwritten; gradients accumulate. `dx` may overlap neither `dy` nor `x`.
  template <class Set = Parameters, class AnyTape, class Dx, class Gradients, class AnyScratch,
            AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, AnyTape& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, AnyScratch& scratch, const Call& context = {}) {
    const auto to = detail::sink<Input>(dx);
    detail::backward_in<Layer>(context, parameters, x, tape, dy, to, gradients, scratch);
    if constexpr (kWanted<Dx>) detail::add_to<Input>(context, dy.data, to.data);
  }
};

}  // namespace ATTUNE_NAMESPACE
