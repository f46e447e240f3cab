// A layer on groups of tokens: each group is a sequence of its own, and all have the same parameters. It is
// PyTorch's x.reshape(batch · groups, tokens, features) in front of a module, and a reshape back behind it.
//
//   y_g = f(x_g),   dx_g = (∂f/∂x_g)ᵀ·dy_g,   dθ = Σ_g (∂f/∂θ)ᵀ·dy_g      for groups g = 0, 1, …
//
//   // One model for each of 7 variables, as in PatchTST
//   using Forecast = attune::EachGroup<7, attune::Sequential<Patches, attune::Repeat<3, Block>, Head>>;
//   // Attention along the rows of an image, then along its columns (Ho et al., "Axial Attention in
//   // Multidimensional Transformers", 2019)
//   using Axial = attune::Sequential<attune::EachGroup<kHeight, AlongRow>,
//                                    attune::TransposeGrid<attune::TransposeGridShape{kHeight, kWidth, 32}>,
//                                    attune::EachGroup<kWidth, AlongColumn>,
//                                    attune::TransposeGrid<attune::TransposeGridShape{kWidth, kHeight, 32}>>;
//
// Group g is rows g·n … (g + 1)·n − 1 of x, for the n rows of the layer's input. TransposeGrid
// (layers/transpose_grid.hpp) brings other groups into this order. Groups run one after the other and share
// scratch, which has the size of one group. Each has its own tape, and its own dropout masks.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/models/composition.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <int groups, class Layer>
constexpr bool check_each_group() {
  static_assert(Holds<(groups > 0)>, "attune::EachGroup: the number of groups must be positive");
  static_assert(Holds<!TakesIds<Layer>>,
                "attune::EachGroup: the layer takes token ids; put the embedding in front of EachGroup");
  static_assert(
      Holds<!attends_to_memory<Layer>()>,
      "attune::EachGroup: a decoder layer attends to the memory of the whole model, and groups have "
      "none; use encoder layers, with .window = {.right = 0} in AttentionShape");
  return true;
}
template <int groups, class Layer>
concept Groupable = CheckedLayer<Layer> && check_each_group<groups, Layer>();

}  // namespace detail

/// `Layer` on each group of rows; groups stand one behind the other in x and y. They share its parameters;
/// gradients are sums over the groups, in their order. A mask or a length of the call is a compile error:
/// attention within groups has the masks of its AttentionShape.
template <int groups, class LayerType>
  requires detail::Groupable<groups, LayerType>
struct EachGroup : detail::Passes<EachGroup<groups, LayerType>> {
  /// The number of groups.
  static constexpr int kGroups = detail::at_least_one(groups);
  using Layer = LayerType;
  using Scalar = typename Layer::Scalar;
  using Input = typename detail::Stacked<typename Layer::Input, kGroups>::Storage;
  using Output = typename detail::Stacked<typename Layer::Output, kGroups>::Storage;
  template <class Other>
  using WithScalar = EachGroup<kGroups, typename detail::WithScalarOf<Layer, Other>::type>;
  using SteppedAs = EachGroup;
  using Parts = LayerList<Layer>;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;
  static constexpr std::uint32_t kFingerprint = fingerprint("EachGroup", kGroups, kFingerprintOf<Layer>);
  static constexpr bool kFrozen = detail::IsFrozen<Layer>;  // whether no parameter is trained

  /// The layer's set.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = detail::SetOf<Layer, Matrix, Vector>;
  using Parameters = typename Layer::Parameters;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = detail::ReadsInput<Layer, Gradients>;

  // Gradients of several sequences in lanes would be added group by group, in another order.
  static constexpr Abilities kAbilities{
      .mask = MaskUse::kPadding,  // to refuse it
      .takes_context = true,
      .output_may_be_input = detail::ReplacesInput<Layer>,
      .gradient_may_be_input = detail::GradientMayBeInput<Layer>,
      .lanes = std::is_empty_v<Parameters> ? detail::kLanesOf<Layer> : Lanes::kNone};

  /// The layer's tape for each group.
  template <class Gradients>
    requires(!detail::CollectsAdditions<Layer, Gradients>)
  struct TapeOf : detail::TapeOfParts<detail::TapesOfCopies<detail::TapeOf<Layer, Gradients>, kGroups>> {};
  using Tape = TapeOf<Parameters>;
  /// The layer's scratch for a group.
  template <class Gradients>
    requires(!detail::CollectsAdditions<Layer, Gradients>)
  using ScratchOf = detail::ScratchOf<Layer, Gradients>;
  using Scratch = ScratchOf<Parameters>;
  /// The layer's scratch for a group.
  using InferenceScratch = typename Layer::InferenceScratch;

  /// `y` and `dx` may be `x` if the layer allows it, `y` in inference only. `dx` may not overlap `dy`.
  using detail::Passes<EachGroup>::forward, detail::Passes<EachGroup>::backward;

 private:
  friend detail::Passes<EachGroup>;
  ATTUNE_INLINE static void run(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                auto& scratch, auto&... tape) {
    const auto within = context_of_groups(context);
    within.template repeat<kGroups>([&](int group) ATTUNE_INLINE_LAMBDA {
      const auto run_group = [&](auto&&... own) ATTUNE_INLINE_LAMBDA {
        detail::forward_in<Layer>(
            within, parameters, detail::part_of<typename Layer::Input>(x, group * Layer::Input::rows),
            detail::part_of<typename Layer::Output>(y, group * Layer::Output::rows), own..., scratch);
      };
      run_group(tape.layers[group]...);
    });
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    const auto within = context_of_groups(context);
    within.template repeat<kGroups>([&](int group) ATTUNE_INLINE_LAMBDA {
      auto&& own = tape.layers[group];
      detail::backward_in<Layer>(
          within, parameters, detail::part_of<typename Layer::Input>(x, group * Layer::Input::rows), own,
          detail::part_of<typename Layer::Output>(dy, group * Layer::Output::rows),
          detail::part_of<typename Layer::Input>(dx, group * Layer::Input::rows), gradients, scratch);
    });
  }
  // The context of a group, which has no mask and all of its tokens.
  template <class Call>
  static constexpr auto context_of_groups(const Call& context) {
    static_assert(detail::Holds<(!kMasks<typename Call::Mask> && !Call::kHasLength)>,
                  "attune::EachGroup: a mask or a length of the call is that of all tokens, and groups have "
                  "none; leave "
                  "it out. For causal attention, set .window = {.right = 0} in AttentionShape");
    return Context<NoMask, typename Call::Slices>(NoMask{}, context.slices())
        .template with_products<typename Call::Products>();
  }
};

}  // namespace ATTUNE_NAMESPACE
