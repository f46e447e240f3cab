// Layers side by side:  y = f_1(x) + f_2(x) + …,   dx = (∂f_1/∂x)ᵀ·dy + (∂f_2/∂x)ᵀ·dy + …
//
//   using Parallel = attune::Residual<attune::Sum<attune::Sequential<Norm, Attention>,
//                                                 attune::Sequential<Norm, FeedForward>>>;  // GPT-NeoX
//
// Terms are added in this order, as are the terms of dx. Layers run one after the other and share scratch.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <attune/kernels/algorithm.hpp>
#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class First, class... Rest>
constexpr bool check_sum() {
  static_assert(Holds<(sizeof...(Rest) > 0 && sizeof...(Rest) < kMaxLayers)>,
                "attune::Sum: use 2 to 24 layers");
  static_assert(Holds<(!TakesIds<First> && (!TakesIds<Rest> && ...))>,
                "attune::Sum: a layer that takes token ids cannot be a term; use EmbeddingSum");
  static_assert(Holds<((std::is_same_v<typename First::Input, typename Rest::Input> && ...) &&
                       (std::is_same_v<typename First::Output, typename Rest::Output> && ...))>,
                "attune::Sum: the layers' inputs, and their outputs, need the same shape and scalar type");
  return true;
}
template <class... Layers>
concept Summable = check_sum<Layers...>();

}  // namespace detail

/// The sum of the outputs of layers with the same input, such as parallel attention and network.
template <detail::CheckedLayer... Layers>
  requires detail::Summable<Layers...>
struct Sum : detail::Steps<Sum<Layers...>>, detail::Passes<Sum<Layers...>> {
  static constexpr int kLayers = static_cast<int>(sizeof...(Layers));
  template <int index>
  using Layer = typename detail::TypeAt<index, Layers...>::type;
  using Scalar = typename Layer<0>::Scalar;
  using Input = typename Layer<0>::Input;
  using Output = typename Layer<0>::Output;
  template <class Other>
  using WithScalar = Sum<typename detail::WithScalarOf<Layers, Other>::type...>;
  using Parts = LayerList<Layers...>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Sum", kFingerprintOf<Layers>...);

  /// `layer<i>()` is the set of layer i, named "i" in the names of tensors.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = typename detail::LayerSets<Layers...>::template ParametersOf<Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities = detail::kAbilitiesOfAll<Layers...>;

 private:
  using Sets = detail::LayerSets<Layers...>;
  template <class Gradients>
  using MemoryOf = typename Sets::template MemoryOf<Gradients>;

 public:
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = MemoryOf<Gradients>::kReads;
  /// The layers' tapes.
  template <class Gradients>
  struct TapeOf : detail::TapeOfParts<typename MemoryOf<Gradients>::Tapes> {};
  using Tape = TapeOf<Parameters>;
  /// A term or its dx, and the scratch of a layer.
  template <class Gradients>
  struct ScratchOf {
    detail::OneOf<Output, Input> term;
    typename MemoryOf<Gradients>::Scratches layers;
  };
  using Scratch = ScratchOf<Parameters>;
  /// A term, and the scratch of a layer.
  struct InferenceScratch {
    detail::OneOf<Output> term;
    detail::OneOf<typename Layers::InferenceScratch...> layers;
  };

  /// Token by token (execution/stream.hpp), if each layer supports it.
  template <int tokens, CacheShape cache>
  struct Stream : Sets::template Streams<tokens, cache> {
    struct Scratch {
      detail::StepOutput<Sum, tokens> term;
      typename Stream::Scratches layers;
    };
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<detail::StepInput<Sum, tokens>> x, View<detail::StepOutput<Sum, tokens>> y,
                     auto& memory, Scratch& scratch, const auto&... more) {
      add_terms(Context<>{}, y, scratch.term, [&]<int index>(auto to) ATTUNE_INLINE_LAMBDA {
        Stream::template step_of<index>(position, parameters, x, to, memory,
                                        detail::one_of<index>(scratch.layers), more...);
      });
    }
  };

  /// Neither `y` nor `dx` may overlap `x`, nor `dx` `dy`.
  using detail::Passes<Sum>::forward, detail::Passes<Sum>::backward;

 private:
  friend detail::Passes<Sum>;
  ATTUNE_INLINE static void run(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                auto& scratch, auto&... tape) {
    add_terms(context, y, detail::one_of<0>(scratch.term),
              [&]<int index>(View<Output> to) ATTUNE_INLINE_LAMBDA {
                Sets::template forward<index>(context, parameters, x, to, scratch.layers,
                                              detail::member<index>(tape.layers)...);
              });
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    add_terms(context, dx, detail::one_of<1>(scratch.term), [&]<int index>(auto to) ATTUNE_INLINE_LAMBDA {
      Sets::template backward<index>(context, parameters, x, tape.layers, dy, to, gradients, scratch.layers);
    });
  }
  // total = Σ terms; each(term) computes it, in order. Without a total, terms have no place either.
  template <int index = 0, class Total, class Term, class Each>
  ATTUNE_INLINE static void add_terms(const auto& context, Total total, Term& term, const Each& each) {
    const auto to = detail::first_if<(index == 0 || !kWanted<Total>)>(total, View<Term>(term));
    each.template operator()<index>(to);
    if constexpr (index > 0) detail::add_to<Term>(context, to, total);
    if constexpr (index + 1 < kLayers) add_terms<index + 1>(context, total, term, each);
  }
};

}  // namespace ATTUNE_NAMESPACE
