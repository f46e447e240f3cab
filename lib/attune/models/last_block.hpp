// A Sequential with a trained end: its last transformer layer, and all layers behind it. Layers before it are
// constant, and run inference only.
//
//   using Tuned = LastBlock<Model, kConstants>;   // in flash, in any storage
//
// If the last transformer layer is one of a Repeat, the others stay a Repeat: Tuned then has one layer more
// than Model, and the names of tensors behind it count from there.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/models/checkpointed.hpp>
#include <attune/models/linear_probe.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/shared_repeat.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Whether a layer is a transformer layer, with any policy of its tape, or some of them.
template <class Layer>
inline constexpr bool kIsBlock = requires {
  Layer::kBranches;
};
template <int count, class Layer>
inline constexpr bool kIsBlock<Repeat<count, Layer>> = kIsBlock<Layer>;
template <int count, class Layer>
inline constexpr bool kIsBlock<SharedRepeat<count, Layer>> = kIsBlock<Layer>;

/// The index of the last transformer layer; -1 without one.
template <class Model>
inline constexpr int kLastBlock = -1;
template <class... Layers>
inline constexpr int kLastBlock<Sequential<Layers...>> = last_true({kIsBlock<Layers>...});
template <class Model, const auto& kConstants>
constexpr bool check_last_block() {
  static_assert(Holds<(kLastBlock<Model> >= 0)>,
                "attune::LastBlock: the model must be a Sequential with an EncoderLayer or a DecoderLayer "
                "among its layers; of another model, keep the first layers in a Frozen");
  return kLastBlock<Model> < 0 || check_constants<Model, kConstants>();
}

/// One of equal layers, and how many.
template <class Layer>
struct CopiesOf {
  static constexpr int kCount = 1;
};
template <int count, class Layer>
struct CopiesOf<Repeat<count, Layer>> {
  static constexpr int kCount = count;
  using Front = Repeat<(count > 1 ? count - 1 : 1), Layer>;
  using Last = Layer;
};

/// How many equal layers stand where the last transformer layer is; 0 without one.
template <class Model>
inline constexpr int kCopiesOfBlock = 0;
template <class Model>
  requires(kLastBlock<Model> >= 0)
inline constexpr int kCopiesOfBlock<Model> =
    CopiesOf<typename Model::template Layer<kLastBlock<Model>>>::kCount;

template <class Model, const auto& kConstants,
          int copies = are_constants_of<Model, kConstants>() ? kCopiesOfBlock<Model> : 0>
struct LastBlockOf {
  static constexpr int kBlock = kLastBlock<Model>;
  static constexpr const auto& kSets = kConstants.template layer<kBlock>().layers;  // of the equal layers
  using Blocks = CopiesOf<typename Model::template Layer<kBlock>>;
  using Probe = LinearProbeOf<Model, kConstants>;
  // References to the constants of the last layer, and of the others as a Repeat.
  static constexpr auto kLast = references_to<typename Blocks::Last>(kSets[copies - 1]);
  static constexpr auto kFront = [] {
    using Forms = ReferencesTo<typename FormOf<std::remove_cvref_t<decltype(kConstants)>>::type>;
    SetOf<typename Blocks::Front, Forms::template Matrix, Forms::template Vector> front{};
    for (int i = 0; i < copies - 1; ++i) {
      front.layers[i] = references_to<typename Blocks::Last>(kSets[i]);
    }
    return front;
  }();
  template <int... before, int... behind>
  static Sequential<typename Probe::template Part<kBlock, before>::type...,
                    PartlyTrained<typename Blocks::Front, kFront, TrainNothing>,
                    PartlyTrained<typename Blocks::Last, kLast, TrainEverything>,
                    typename Probe::template Part<kBlock, kBlock + 1 + behind>::type...>
      split(std::integer_sequence<int, before...>, std::integer_sequence<int, behind...>);
  using type = decltype(split(std::make_integer_sequence<int, kBlock>{},
                              std::make_integer_sequence<int, Model::kLayers - kBlock - 1>{}));
};
template <class Model, const auto& kConstants>
struct LastBlockOf<Model, kConstants, 0> {
  using type = Model;
};
template <class Model, const auto& kConstants>
struct LastBlockOf<Model, kConstants, 1> {
  using type = typename LinearProbeOf<Model, kConstants>::template From<kLastBlock<Model>>;
};

}  // namespace detail

/// `Model`, a Sequential, with constant parameters up to its last EncoderLayer or DecoderLayer, which is
/// trained with everything behind it. Trained parameters start as in `kConstants`, as floats where those are
/// quantized.
template <detail::CheckedLayer Model, const auto& kConstants>
  requires(detail::check_last_block<Model, kConstants>())
using LastBlock = typename detail::LastBlockOf<Model, kConstants>::type;

}  // namespace ATTUNE_NAMESPACE
