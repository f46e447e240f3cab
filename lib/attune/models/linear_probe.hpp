// A Sequential with a trained head, its last layer with parameters. Everything else is constant.
//
//   using Tuned = LinearProbe<Model, kConstants>;   // in flash, in any storage; names and indices are
//   Model's
//   using Features = LinearProbeFeatures<Model, kConstants>;   // from x to the head's input
//   attune::infer<Features>(Features::Parameters{}, x, features, scratch);
#pragma once

#include <attune/models/frozen.hpp>
#include <attune/models/sequential.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Model, const auto& kConstants>
struct LinearProbeOf {  // after an error
  static constexpr int kHead = 1;
  using type = Model;
  using Features = Model;
};
template <class Model>
inline constexpr bool kIsSequential = false;
template <class... Layers>
inline constexpr bool kIsSequential<Sequential<Layers...>> = true;
template <class Model, const auto& kConstants>
constexpr bool check_head() {
  static_assert(Holds<kIsSequential<Model>>,
                "attune::LinearProbe: the model must be a Sequential whose last layer with parameters is the "
                "head; use Sequential<Frozen<Body, kBody>, Head>");
  return !kIsSequential<Model> || check_constants<Model, kConstants>();
}
template <class... Layers, const auto& kConstants>
  requires(are_constants_of<Sequential<Layers...>, kConstants>())
struct LinearProbeOf<Sequential<Layers...>, kConstants> {
  using Model = Sequential<Layers...>;
  static constexpr int kHead = larger(0, last_true({!std::is_empty_v<typename Layers::Parameters>...}));
  template <int index, class Layer = typename Model::template Layer<index>>
  static constexpr auto kOfLayer = [] {
    const auto& set = kConstants.template layer<index>();  // a value if it is empty
    return references_to<Layer>(set);
  }();
  template <int first, int index, class Layer = typename Model::template Layer<index>>
  struct Part {
    using type = PartlyTrained<Layer, kOfLayer<index>,
                               std::conditional_t<(index >= first), TrainEverything, TrainNothing>>;
  };
  template <int first, int index, class Layer>
    requires(index > first && std::is_empty_v<typename Layer::Parameters>)
  struct Part<first, index, Layer> {
    using type = Layer;
  };
  template <int first, int... index>
  static Sequential<typename Part<first, index>::type...> parts(std::integer_sequence<int, index...>);
  /// The first `count` layers, trained from layer `first` on.
  template <int first, int count = Model::kLayers>
  using From = decltype(parts<first>(std::make_integer_sequence<int, count>{}));
  using type = From<kHead>;
  using Features = From<kHead, kHead>;
};
template <class Model, const auto& kConstants>
constexpr bool check_features() {
  static_assert(Holds<(check_head<Model, kConstants>() && LinearProbeOf<Model, kConstants>::kHead > 0)>,
                "attune::LinearProbeFeatures: no layer is before the head, so features are the inputs");
  return true;
}

}  // namespace detail

/// `Model`, a Sequential, with constant parameters, except in its head, the last layer with parameters.
/// The head starts as in `kConstants`, as floats where those are quantized. Layers before it run inference
/// only. For a head of other classes, take Sequential<Frozen<Body, kBody>, Head>.
template <detail::CheckedLayer Model, const auto& kConstants>
  requires(detail::check_head<Model, kConstants>())
using LinearProbe = typename detail::LinearProbeOf<Model, kConstants>::type;

/// The layers of `Model` before its head, constant and without parameters. Their output is the head's input.
template <detail::CheckedLayer Model, const auto& kConstants>
  requires(detail::check_features<Model, kConstants>())
using LinearProbeFeatures = typename detail::LinearProbeOf<Model, kConstants>::Features;

}  // namespace ATTUNE_NAMESPACE
