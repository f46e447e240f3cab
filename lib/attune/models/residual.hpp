// A layer with a shortcut:  y = x + f(x),   dx = dy + (∂f/∂x)ᵀ·dy   (He et al., "Deep Residual Learning for
// Image Recognition", 2016).
#pragma once

#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE {

/// x + f(x); the output of the layer has the shape of its input.
template <detail::CheckedLayer Layer>
struct Residual : Layer, detail::Passes<Residual<Layer>> {
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
  /// Neither `y` nor `dx` may overlap `x`, nor `dx` `dy`.
  using detail::Passes<Residual>::forward, detail::Passes<Residual>::backward;

 private:
  friend detail::Passes<Residual>;
  ATTUNE_INLINE static void run(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                auto& scratch, auto&... tape) {
    detail::forward_in<Layer>(context, parameters, x, y, tape..., scratch);
    detail::add_to<Input>(context, x, y);
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    detail::backward_in<Layer>(context, parameters, x, tape, dy, dx, gradients, scratch);
    detail::add_to<Input>(context, dy, dx);
  }
};

}  // namespace ATTUNE_NAMESPACE
