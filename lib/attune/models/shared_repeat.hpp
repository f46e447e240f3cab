// One layer several times in a row with one set of parameters (Dehghani et al., "Universal Transformers",
// 2019; Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations", 2020).
//
//   h_0 = x,   h_i = f(h_(i−1)),   y = h_n
//
//   dh_(i−1) = (∂f/∂h_(i−1))ᵀ·dh_i,   dθ = Σ_i (∂f/∂θ)ᵀ·dh_i      for i = n, n − 1, …, 1
//
//   using Albert = attune::Sequential<Embeddings, Widen, attune::SharedRepeat<12, Block>>;
//
// Twelve applications take the flash, the gradients and the moments of one layer, and the time and the tapes
// of twelve. SharedRepeat<12, Checkpointed<Block>> keeps twelve inputs and one tape. Each application has its
// own dropout masks and, in a stream, its own cache.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/models/composition.hpp>
#include <attune/models/repeat.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// One set in place of the sets of a Repeat's layers.
template <class Set>
struct SetOfEach {
  using Each = std::remove_const_t<Set>;
  struct Layers {
    Set& set;
    ATTUNE_INLINE Set& operator[](int) const { return set; }
  };
  Layers layers;

  ATTUNE_INLINE explicit SetOfEach(Set& set) : layers{set} {}
};

}  // namespace detail

/// `count` applications of a layer in sequence, all with its parameters. Gradients are sums over the
/// applications, the last one first.
template <int count, detail::CheckedLayer Layer>
class SharedRepeat : public detail::Steps<SharedRepeat<count, Layer>>,
                     public detail::Passes<SharedRepeat<count, Layer>> {
  using Applications = Repeat<count, Layer>;

 public:
  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  template <class Other>
  using WithScalar = SharedRepeat<count, typename detail::WithScalarOf<Layer, Other>::type>;
  using Parts = LayerList<Layer>;
  static constexpr std::uint32_t kFingerprint = fingerprint("SharedRepeat", count, kFingerprintOf<Layer>);
  static constexpr bool kFrozen = detail::IsFrozen<Layer>;  // whether no parameter is trained

  /// The layer's set.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = detail::SetOf<Layer, Matrix, Vector>;
  using Parameters = typename Layer::Parameters;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = Applications::template kReadsInput<detail::SetOfEach<Gradients>>;

  // Gradients of several sequences in lanes would be added application by application, in another order.
  static constexpr Abilities kAbilities =
      detail::with(Applications::kAbilities, &Abilities::lanes,
                   std::is_empty_v<Parameters> ? Applications::kAbilities.lanes : Lanes::kNone,
                   &Abilities::additions, std::is_empty_v<Parameters> ? Additions::kOnce : Additions::kMany);

  /// The tapes of the applications, and the matrices between them that backward reads.
  template <class Gradients>
    requires(!detail::CollectsAdditions<Layer, Gradients>)
  struct TapeOf : Applications::template TapeOf<detail::SetOfEach<Gradients>> {};
  using Tape = TapeOf<Parameters>;
  /// The layer's scratch, and the other matrices between applications.
  template <class Gradients>
    requires(!detail::CollectsAdditions<Layer, Gradients>)
  struct ScratchOf : Applications::template ScratchOf<detail::SetOfEach<Gradients>> {};
  using Scratch = ScratchOf<Parameters>;
  using InferenceScratch = typename Applications::InferenceScratch;

  /// Token by token (execution/stream.hpp), if the layer supports it.
  template <int tokens, CacheShape cache>
  struct Stream : Applications::template Stream<tokens, cache> {
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<detail::StepInput<Layer, tokens>> x, View<detail::StepOutput<Layer, tokens>> y,
                     auto& memory, auto& scratch, const auto&... more) {
      Applications::template Stream<tokens, cache>::step(position, detail::SetOfEach(parameters), x, y,
                                                         memory, scratch, more...);
    }
    static void remember(const auto& parameters, const auto& remembered, auto& memory) {
      Applications::template Stream<tokens, cache>::remember(detail::SetOfEach(parameters), remembered,
                                                             memory);
    }
  };

  /// `y` and `dx` may be `x` if the layer allows it, `y` in inference only. `dx` may not overlap `dy`.
  using detail::Passes<SharedRepeat>::forward, detail::Passes<SharedRepeat>::backward;

 private:
  friend detail::Passes<SharedRepeat>;
  ATTUNE_INLINE static void run(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                auto& scratch, auto&... tape) {
    Applications::forward(detail::SetOfEach(parameters), x, y, tape..., scratch, context);
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    detail::SetOfEach of_each(gradients);
    Applications::backward(detail::SetOfEach(parameters), x, tape, dy, dx, of_each, scratch, context);
  }
};

}  // namespace ATTUNE_NAMESPACE
