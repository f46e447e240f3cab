// The interface of a layer.
//
// A layer is a type without state. It names the types of its input, its output and its memory, which the
// caller owns:
//
//   struct Layer {
//     using Scalar = float;
//     using Input = Tensor<Scalar, rows, cols>;   // or std::array<int, n>: token ids
//     using Output = Tensor<Scalar, rows, cols>;
//     struct Parameters { … };                    // a set of tensors (parameters.hpp), or NoParameters
//     struct Tape { … };                          // kept by forward for backward, besides x
//     struct Scratch { … };                       // dead after every call: all layers share it
//     struct InferenceScratch { … };
//
//     static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&);
//     static void forward(const Parameters&, ConstView<Input> x, View<Output> y, Tape&, Scratch&);
//     static void backward(const Parameters&, ConstView<Input> x, Tape&, ConstView<Output> dy, auto&& dx,
//                          Parameters& gradients, Scratch&);
//   };
//
// backward overwrites dx = dL/dx and adds dL/dparameters to `gradients`. `dx` is a View<Input>, or NoGradient
// if unused: `if constexpr (kWanted<decltype(dx)>)`. backward may overwrite the tape. Arguments must not
// overlap. A layer of ids returns a Status from forward, and its dx is always NoGradient.
//
// Optional members, and their defaults:
//
//   kAbilities                 its Abilities, below: for example, whether its calls take a context after
//                              these arguments. Default: none; its tokens meet unless its Stream is
//                              a layer, or it has one row
//   ParametersOf<Matrix, Vector>  its set with other storage than tensors. Default: it is trained as a whole
//   kFingerprint               its name, and options that tensors and shapes do not show (fingerprint.hpp).
//                              Default: the sizes of its Input and Output
//   Parts                      LayerList<A, B>, the layers inside it: their constants belong to the state of
//                              its training. Default: none
//   TapeOf<Gradients>, ScratchOf<Gradients>  memory of a backward to such gradients. Default: Tape, Scratch
//   kReadsInput<Gradients>     whether that backward reads x. Default: true
//   kIdsPerToken               ids of a token, in a layer of ids. Default: that of its first part, or 1
//   TapeIn<Gradients, Matrix>  the tape with other storage of its matrices (layers/packed_rows.hpp). Default:
//                              a packed tape has it as it is
//   WithScalar<Other>          the layer with another scalar. Default: there is none
//   Stream<tokens, cache>      the layer on the next tokens of a stream (stream.hpp): where tokens do not
//                              meet, the layer of as many tokens. Default: it cannot run token by token
//   SteppedAs                  the layer itself, if it computes the function that its members declare: a
//                              derived type inherits them, and may compute another one (stream.hpp)
#pragma once

#include <array>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include <attune/core/fingerprint.hpp>
#include <attune/core/ids.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/execution/attention_mask.hpp>
#include <attune/execution/context.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/lanes.hpp>

namespace ATTUNE_NAMESPACE {

/// A layer's use of a mask.
enum class MaskUse {
  kNone = 0,     // none
  kPadding = 1,  // reads the padding
  kScores = 2    // reads the keys that each query may attend to
};

/// The parts of a layer that can use lanes as scalars (training/lockstep.hpp).
enum class Lanes {
  kNone = 0,          // none: one sequence after the other
  kBetweenParts = 1,  // its own code, and the parts with this ability
  kAll = 2            // the whole layer
};

/// How often backward adds to a gradient. On several threads or ranks, sequences wait for each other unless
/// it is once (batch_order.hpp).
enum class Additions {
  kMany = 0,     // as often as it likes
  kByParts = 1,  // parts add to their own gradients, by detail::backward_in
  kOnce = 2      // once to each gradient for each sequence, and reads no gradient
};

/// The abilities of a layer, a `static constexpr Abilities kAbilities{…}`. Without it, a layer takes no
/// context and is one stage. If its tokens meet, a call with a mask or a length is then a compile error,
/// because the layer would read padding.
struct Abilities {
  bool mixes_tokens = true;       // a row of y depends on other rows of x
  MaskUse mask = MaskUse::kNone;  // the layer's use of a mask
  /// forward and backward take a context (context.hpp) as their last argument, for its stages and, depending
  /// on `mask`, its mask.
  bool takes_context = false;
  /// The layer computes only the tokens from the context, or asks its mask for padding.
  bool takes_length = false;
  ScoreShape scores = {};            // scores that a mask changes; a mask of another size is a compile error
  bool output_may_be_input = false;  // y may be x in inference
  bool gradient_may_be_input = false;  // dx may be x, but not with UpdateInBackward
  bool updates_in_place = false;       // dx may be x with UpdateInBackward, too
  /// backward may read y where it reads x, with the same bits. A Sequential then tapes one of them. The layer
  /// also sets output_may_be_input and gradient_may_be_input.
  bool backward_may_read_output = false;
  /// backward visits each parameter once, and never reads a parameter after giving away its gradient, so it
  /// may be updated at once. Otherwise UpdateInBackward keeps the layer's gradients in scratch.
  bool updates_in_backward = false;
  /// recompute_tape() fills the tape without y, and backward_from() takes x from a function once scratch is
  /// dead. Checkpointed and QuantizedTape then need less memory.
  bool recomputes_tape = false;
  Lanes lanes = Lanes::kNone;  // the parts that can use lanes in Lockstep
  /// Additions to a gradient. After kOnce, several threads or ranks need not wait for each other.
  Additions additions = Additions::kMany;
};

/// The storage of kept keys and values.
enum class CachePrecision {
  kScalar = 0,  // the model's scalar
  kInt8 = 1,    // 8 bits with a scale per token and head, and integer attention; float models only
};

/// The kept keys and values of a stream: of all tokens, at most `capacity`; or, endlessly, of the last
/// `window` tokens, including the newest, and of the first `sinks` tokens (Xiao et al., "Efficient Streaming
/// Language Models with Attention Sinks", 2024).
struct CacheShape {
  int capacity = 0;                                    // largest number of tokens; 0: a ring
  int window = 0;                                      // number of last tokens that a ring keeps; 0: no ring
  int sinks = 0;                                       // number of first tokens that a ring keeps
  CachePrecision precision = CachePrecision::kScalar;  // storage of keys and values
};

/// Replaces an unused dx; drops writes.
struct NoGradient {
  /// Replaces element (row, col).
  [[nodiscard]] constexpr detail::Dropped operator()(int, int) const { return {}; }
  /// Replaces the `count` rows from `first` on.
  template <int count>
  [[nodiscard]] constexpr NoGradient rows_at(auto /*first*/) const {
    return {};
  }
};

/// Whether a sink for a gradient is in use.
template <class Sink>
inline constexpr bool kWanted = !std::is_same_v<std::remove_cvref_t<Sink>, NoGradient>;

/// The layers inside a layer.
template <class... Layers>
struct LayerList {};

namespace detail {

/// A copy of a shape or of abilities, with other values of some members: with(shape, member, value, …).
template <class Shape>
[[nodiscard]] constexpr Shape with(const Shape& shape) {
  return shape;
}
template <class Shape, class Value, class... More>
[[nodiscard]] constexpr Shape with(Shape shape, Value Shape::*member, std::type_identity_t<Value> value,
                                   const More&... more) {
  shape.*member = value;
  return with(shape, more...);
}

/// Abilities of layers that work on each token in place.
inline constexpr Abilities kInPlaceByToken{.mixes_tokens = false,
                                           .takes_context = true,
                                           .takes_length = true,
                                           .output_may_be_input = true,
                                           .gradient_may_be_input = true,
                                           .updates_in_backward = true,
                                           .lanes = Lanes::kAll,
                                           .additions = Additions::kOnce};

/// `count` matrices of one shape, stacked.
template <class Matrix, int count>
struct Stacked {
  using Storage = Tensor<typename Matrix::Scalar, count * Matrix::rows, Matrix::cols>;
  using View = MatrixView<const typename Matrix::Scalar, count * Matrix::rows, Matrix::cols>;
  using One = MatrixView<const typename Matrix::Scalar, Matrix::rows, Matrix::cols>;
  static One at(View view, int index) { return view.template rows_at<Matrix::rows>(index * Matrix::rows); }
};
/// `count` stacked arrays of ids.
template <std::size_t size, int count>
struct Stacked<std::array<int, size>, count> {
  using Storage = std::array<int, count * size>;
  using View = Ids<count* static_cast<int>(size)>;
  using One = Ids<static_cast<int>(size)>;
  static One at(View view, int index) { return One(view.data() + static_cast<std::size_t>(index) * size); }
};

}  // namespace detail

/// The type of a layer's output argument: all of a matrix.
template <class Matrix>
using View = MatrixView<typename Matrix::Scalar, Matrix::rows, Matrix::cols>;
/// The type of a layer's input argument: a matrix, or ids.
template <class Matrix>
using ConstView = typename detail::Stacked<Matrix, 1>::One;

namespace detail {

/// The sink for `dx`: a View<Matrix>, or NoGradient.
template <class Matrix>
ATTUNE_INLINE View<Matrix> sink(View<Matrix> dx) {
  return dx;
}
template <class Matrix>
ATTUNE_INLINE NoGradient sink(NoGradient) {
  return {};
}
/// Calls body(View<Matrix>) with `dx`, unless it is NoGradient.
template <class Matrix, class Body>
ATTUNE_INLINE void if_wanted(View<Matrix> dx, const Body& body) {
  body(dx);
}
template <class Matrix, class Body>
ATTUNE_INLINE void if_wanted(NoGradient, const Body&) {}

/// The rows of Matrix in a larger one, starting at row `first`; ids of ids, and NoGradient of itself.
template <class Matrix>
ATTUNE_INLINE constexpr auto part_of(const auto& rows, int first) {
  return rows.template rows_at<Matrix::rows>(first);
}
template <class Matrix>
  requires(std::is_same_v<typename Matrix::value_type, int>)
ATTUNE_INLINE constexpr auto part_of(const auto& ids, int first) {
  return ConstView<Matrix>(ids.data() + first);
}
template <class Matrix>
ATTUNE_INLINE constexpr NoGradient part_of(NoGradient none, int) {
  return none;
}

/// Whether a layer's input is ids.
template <class Layer>
concept TakesIds = std::is_same_v<typename Layer::Input::value_type, int>;

template <class First, class... Rest>
std::type_identity<First> first_of(LayerList<First, Rest...>);
template <class Layer>
using FirstPart = typename decltype(first_of(typename Layer::Parts{}))::type;

/// Whether a layer says its number of ids of each token.
template <class Layer>
concept SaysIdsPerToken = requires {
  Layer::kIdsPerToken;
};
/// Number of ids of each token, in a model whose input is ids; else 1.
template <class Layer>
inline constexpr int kIdsOfToken = 1;
template <TakesIds Layer>
  requires(!SaysIdsPerToken<Layer> && requires { typename FirstPart<Layer>; })
inline constexpr int kIdsOfToken<Layer> = kIdsOfToken<FirstPart<Layer>>;
template <TakesIds Layer>
  requires SaysIdsPerToken<Layer>
inline constexpr int kIdsOfToken<Layer> = Layer::kIdsPerToken;

/// How many ids a table of a layer has. Known of embeddings; of other layers, any id may be one.
template <class Layer>
struct Vocabulary {
  static constexpr int of(int /*table*/) { return (std::numeric_limits<int>::max)(); }
};
template <class Layer>
  requires requires { typename FirstPart<Layer>; }
struct Vocabulary<Layer> : Vocabulary<FirstPart<Layer>> {};

/// The result of a layer's forward: a Status for ids, else void.
template <class Layer>
using ForwardResult = std::conditional_t<TakesIds<Layer>, Status, void>;

/// The Status of a call; kOk if it returns nothing.
ATTUNE_INLINE Status status_of(const auto& call) {
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    return Status::kOk;
  } else {
    return call();
  }
}

// Calls first(), then rest() unless first refuses its input. Returns first's result.
ATTUNE_INLINE auto then(const auto& first, const auto& rest) {
  const Status status = status_of(first);
  if (status == Status::kOk) rest();
  return decltype(first())(status);
}

template <class Layer>
concept Infers = requires(const typename Layer::Parameters& parameters, ConstView<typename Layer::Input> x,
                          View<typename Layer::Output> y, typename Layer::InferenceScratch& scratch) {
  Layer::forward(parameters, x, y, scratch);
};
template <class Layer>
concept RunsForward = requires(const typename Layer::Parameters& parameters,
                               ConstView<typename Layer::Input> x, View<typename Layer::Output> y,
                               typename Layer::Tape& tape, typename Layer::Scratch& scratch) {
  Layer::forward(parameters, x, y, tape, scratch);
};
template <class Layer, class Dx>
concept RunsBackwardTo = requires(const typename Layer::Parameters& parameters,
                                  ConstView<typename Layer::Input> x, typename Layer::Tape& tape,
                                  ConstView<typename Layer::Output> dy, Dx dx,
                                  typename Layer::Parameters& gradients, typename Layer::Scratch& scratch) {
  Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
};
template <class Layer>
concept RunsBackward = RunsBackwardTo<Layer, NoGradient> &&
    (TakesIds<Layer> || RunsBackwardTo<Layer, View<typename Layer::Input>>);

template <class L>
concept NamesItsMemory = requires {
  typename L::Scalar;
  typename L::Input;
  typename L::Output;
  typename L::Parameters;
  typename L::Tape;
  typename L::Scratch;
  typename L::InferenceScratch;
};

}  // namespace detail

/// A layer, as used by Trainers, Sequential, Repeat and Residual: see the top of this file.
template <class L>
concept IsLayer =
    detail::NamesItsMemory<L> && detail::RunsForward<L> && detail::RunsBackward<L> && detail::Infers<L>;

namespace detail {

struct AnyVisitor {
  void operator()(const TensorPath&, auto&&...) const {}
};

/// The first thing that L lacks to be a layer, by the number of its message in check_layer(); 0 if it has
/// all.
template <class L>
constexpr int lacking_in_layer() {
  if (!requires { typename L::Scalar; }) return 1;
  if (
      requires { L::kTakesLength; } || requires { L::kTakesMask; } || requires { L::kRunsInLockstep; } ||
      requires { L::kRunsPerSequence; } || requires { L::kOutputMayBeInput; } ||
      requires { L::kGradientMayBeInput; } || requires { L::kUpdatesInBackward; }) {
    return 2;
  }
  if (
      requires { typename L::template WithLength<1>; } ||
      requires { typename L::template Stream<CacheShape{.capacity = 1}>; }) {
    return 3;
  }
  if (!requires {
        typename L::Input;
        typename L::Output;
      })
    return 4;
  if (!requires { typename L::Parameters; }) return 5;
  if (!requires(typename L::Parameters & set) {
        L::Parameters::visit(AnyVisitor{}, static_cast<const TensorPath*>(nullptr), set);
      }) {
    return 6;
  }
  if (!NamesItsMemory<L>) return 7;
  if (!RunsForward<L>) return 8;
  if (!RunsBackward<L>) return 9;
  return Infers<L> ? 0 : 10;
}
/// Whether L is a layer. If not, one error names the missing member.
template <class L>
constexpr bool check_layer() {
  constexpr int kLacks = lacking_in_layer<L>();
  static_assert(Holds<(kLacks != 1)>,
                "attune::IsLayer: the type has no Scalar; execution/layer.hpp shows a layer's members");
  static_assert(Holds<(kLacks != 2)>,
                "attune::IsLayer: declare abilities in static constexpr attune::Abilities "
                "kAbilities{.takes_length = …}; constants such as kTakesLength have no effect");
  static_assert(
      Holds<(kLacks != 3)>,
      "attune::IsLayer: the type has no Stream<tokens, cache>: the same layer for that many tokens if "
      "tokens do not mix, else a Memory and a step (execution/stream.hpp)");
  static_assert(Holds<(kLacks != 4)>,
                "attune::IsLayer: the type has no Input and Output, each a Tensor (or an Input of ids, a "
                "std::array of int)");
  static_assert(Holds<(kLacks != 5)>,
                "attune::IsLayer: the type has no Parameters; use NoParameters if it has none");
  static_assert(
      Holds<(kLacks != 6)>,
      "attune::IsLayer: its Parameters have no ATTUNE_FIELDS(Weight(w), ...) that lists their members "
      "(core/fields.hpp)");
  static_assert(
      Holds<(kLacks != 7)>,
      "attune::IsLayer: the type has no Tape, Scratch or InferenceScratch; each may be an empty struct");
  static_assert(Holds<(kLacks != 8)>,
                "attune::IsLayer: there is no forward(parameters, x, y, tape, scratch[, mask]) for "
                "ConstView<Input> x and "
                "View<Output> y; a layer with two inputs needs a struct that splits one");
  static_assert(
      Holds<(kLacks != 9)>,
      "attune::IsLayer: there is no backward(parameters, x, tape, dy, dx, gradients, scratch[, mask]) "
      "for a dx of View<Input> and of NoGradient");
  static_assert(Holds<(kLacks != 10)>,
                "attune::IsLayer: there is no forward(parameters, x, y, inference_scratch[, mask])");
  return IsLayer<L>;
}
/// Requires a layer.
template <class L>
concept CheckedLayer = check_layer<L>();

/// The Stream of a layer that cannot run token by token. It says why in a static assertion.
struct NoStream {
  struct Memory {};
  struct Scratch {};
  static void step(const auto&...) {}
};
template <int tokens>
constexpr bool needs_whole_sequence() {
  static_assert(
      Holds<(tokens < 0)>,
      "attune: a layer that needs the whole sequence, such as a pooling, EachGroup or ReducedAttention, "
      "cannot run token by token; leave it out, or use the output at the last token");
  return true;
}
/// The Stream of a layer that needs the whole sequence.
template <int tokens>
struct NeedsWholeSequence : NoStream {
  static_assert(needs_whole_sequence<tokens>());
};
/// A layer in which tokens do not meet, for another number of tokens.
template <class Layer, int tokens>
using OfLength = typename Layer::template Stream<tokens, CacheShape{.capacity = 1}>;
/// Whether tokens do not meet in a layer: its Stream for its own number of tokens is the layer itself.
template <class Layer>
concept RunsOnAnyTokens = std::is_same_v<OfLength<Layer, Layer::Output::rows>, Layer>;

template <class Layer>
concept HasOneRow = (Layer::Input::rows == 1);
// A layer's declared abilities. By default, tokens do not meet in a layer whose Stream is a layer.
template <class Layer>
inline constexpr Abilities kAbilities{.mixes_tokens =
                                          TakesIds<Layer> || !(HasOneRow<Layer> || RunsOnAnyTokens<Layer>)};
template <class Layer>
  requires requires { Layer::kAbilities; }
inline constexpr Abilities kAbilities<Layer> = Layer::kAbilities;

/// Whether a layer uses a mask.
template <class Layer>
concept TakesMask = (kAbilities<Layer>.mask != MaskUse::kNone);
/// Whether a layer without slices can run on some of its tokens (own_layer.hpp): tokens do not meet, and it
/// keeps nothing for them in memory.
template <class Layer>
concept RunsByToken =
    !TakesIds<Layer> && (!kAbilities<Layer>.mixes_tokens && !kAbilities<Layer>.takes_context) &&
    RunsOnAnyTokens<Layer> && std::is_empty_v<typename OfLength<Layer, 1>::Tape> &&
    std::is_empty_v<typename OfLength<Layer, 1>::Scratch> &&
    std::is_empty_v<typename OfLength<Layer, 1>::InferenceScratch>;
/// Whether a layer computes only the tokens from slices, so that its time depends on their number.
template <class Layer>
concept TakesLength = (kAbilities<Layer>.takes_length || RunsByToken<Layer> ||
                       HasOneRow<Layer>);  // which needs no length
/// Whether backward adds at most once to each gradient for each sequence.
template <class Layer>
concept AddsOnce = std::is_empty_v<typename Layer::Parameters> ||
    (kAbilities<Layer>.additions == Additions::kOnce);
/// The additions of a layer that does not pass on its context: of its parts, as a whole.
template <class... Layers>
inline constexpr Additions kAdditionsOfAll = (AddsOnce<Layers> && ...) ? Additions::kOnce : Additions::kMany;
constexpr ScoreShape first_scores(std::initializer_list<ScoreShape> layers) {
  for (const ScoreShape& scores : layers) {
    if (scores.num_heads > 0) return scores;
  }
  return {};
}
/// The abilities of a layer that is called in a context.
template <class Layer>
inline constexpr Abilities kAbilitiesInContext = with(kAbilities<Layer>, &Abilities::takes_context, true,
                                                      &Abilities::takes_length, TakesLength<Layer>);
/// The abilities of a layer made of other layers, which have their own slices.
template <class... Layers>
inline constexpr Abilities kAbilitiesOfAll{
    .mixes_tokens = (kAbilities<Layers>.mixes_tokens || ...),
    .mask = largest({kAbilities<Layers>.mask...}),
    .takes_context = true,
    .takes_length = (TakesLength<Layers> && ...),
    .scores = first_scores({kAbilities<Layers>.scores...}),
    .lanes = ((kAbilities<Layers>.lanes == Lanes::kAll) && ...) ? Lanes::kAll : Lanes::kBetweenParts,
    .additions = (AddsOnce<Layers> && ...) ? Additions::kOnce : Additions::kByParts};

// ---- Optional members of a layer, or their defaults. ----

/// The same layer with another scalar. A layer needs WithScalar only if another scalar is used.
template <class Layer, class Other>
struct WithScalarOf {
  using type = typename Layer::template WithScalar<Other>;
};
template <class Layer, class Other>
  requires(std::is_same_v<typename Layer::Scalar, Other>)
struct WithScalarOf<Layer, Other> {
  using type = Layer;
};
/// Whether a scalar has lanes of several sequences (kernels/simd/lanes.hpp).
template <class Scalar>
concept InLanes = !std::is_same_v<kernels::Real<Scalar>, Scalar>;
template <class Layer>
inline constexpr Lanes kLanesOf = kAbilities<Layer>.lanes;
/// Whether any part of the layer uses lanes. Ignores the declaration of a base class.
template <class Layer>
concept IsInLanes = std::is_same_v<typename Layer::template WithScalar<typename Layer::Scalar>, Layer> &&
    (kLanesOf<Layer> != Lanes::kNone);
template <class Layer, class Lanes>
struct PerSequence;
/// With lanes as scalars: the layer itself, or one sequence after the other (layers/per_sequence.hpp).
template <class Layer, class Other>
  requires(InLanes<Other> && !IsInLanes<Layer>)
struct WithScalarOf<Layer, Other> {
  using type = PerSequence<Layer, Other>;
};

// A layer's set with other storage of its tensors (parameters.hpp).
template <class Layer, template <class, int, int> class Matrix, template <class, int, int> class Vector>
struct SetOfLayer {
  using type = typename Layer::Parameters;
};
template <class Layer, template <class, int, int> class Matrix, template <class, int, int> class Vector>
  requires requires { typename Layer::template ParametersOf<Matrix, Vector>; }
struct SetOfLayer<Layer, Matrix, Vector> {
  using type = typename Layer::template ParametersOf<Matrix, Vector>;
};
template <class Layer, template <class, int, int> class Matrix, template <class, int, int> class Vector>
using SetOf = typename SetOfLayer<Layer, Matrix, Vector>::type;
/// A fingerprint of the names and shapes of a layer's tensors.
template <class Layer>
constexpr std::uint32_t fingerprint_of_tensors() {
  std::uint32_t state = fingerprint();
  visit_leaves(
      [&state](const TensorPath& path, const auto& tensor) {
        using Leaf = std::remove_cvref_t<decltype(tensor)>;
        for (const TensorPath* part = &path; part != nullptr; part = part->parent) {
          state = fingerprint(state, part->name);
        }
        state = fingerprint(state, Leaf::rows, Leaf::cols);
      },
      SetOf<Layer, Extents, Extents>{});
  return state;
}
/// Whether a layer and all layers inside it support sets with other storage than tensors.
template <class Layer>
concept HasSets = std::is_empty_v<SetOf<Layer, Untrained, Untrained>>;

// A layer's tape and scratch, for a backward to such gradients.
template <class Layer, class Gradients>
struct LayerMemory {
  using Tape = typename Layer::Tape;
  using Scratch = typename Layer::Scratch;
};
template <class Layer, class Gradients>
  requires requires { typename Layer::template TapeOf<Gradients>; }
struct LayerMemory<Layer, Gradients> {
  using Tape = typename Layer::template TapeOf<Gradients>;
  using Scratch = typename Layer::template ScratchOf<Gradients>;
};
template <class Layer, class Gradients>
using TapeOf = typename LayerMemory<Layer, Gradients>::Tape;
template <class Layer, class Gradients>
using ScratchOf = typename LayerMemory<Layer, Gradients>::Scratch;

/// Whether a backward to such gradients reads the layer's input.
template <class Layer, class Gradients>
concept ReadsInput = !requires {
  requires !Layer::template kReadsInput<Gradients>;
};
/// The base of layers whose backward does not read x.
struct InputUnread {
  template <class Gradients>
  static constexpr bool kReadsInput = false;
};
/// Whether a set of gradients has a weight that is trained.
template <class Gradients>
concept TrainsWeight = IsTrained<decltype(Gradients::weight)>;
/// The base of layers whose backward reads x to train the weight.
struct InputReadForWeight {
  template <class Gradients>
  static constexpr bool kReadsInput = TrainsWeight<Gradients>;
};

/// Whether the layer computes the function that its members declare, by `using SteppedAs = itself`. A derived
/// type inherits the members, and may compute another function.
template <class Layer>
concept IsItself = std::is_same_v<typename Layer::SteppedAs, Layer>;
/// Whether models may rely on output_may_be_input and gradient_may_be_input.
template <class Layer>
concept WorksInPlace = IsItself<Layer> || RunsOnAnyTokens<Layer>;
template <class Layer>
concept OutputMayBeInput = (kAbilities<Layer>.output_may_be_input && WorksInPlace<Layer>);
template <class Layer>
concept GradientMayBeInput = (kAbilities<Layer>.gradient_may_be_input && WorksInPlace<Layer>);
template <class Layer>
concept UpdatesInPlace = (kAbilities<Layer>.updates_in_place && IsItself<Layer>);
template <class Layer>
concept RecomputesTape = (kAbilities<Layer>.recomputes_tape && IsItself<Layer>);

/// Whether a layer's parameters are constants (models/frozen.hpp).
template <class Layer>
concept IsFrozen = requires {
  requires Layer::kFrozen;
};

/// Calls body.operator()<Part>() for each layer listed as a part.
template <class Layer>
constexpr void for_each_part([[maybe_unused]] const auto& body) {
  if constexpr (requires { typename Layer::Parts; }) {
    [&body]<class... Parts>(LayerList<Parts...>) {
      (body.template operator()<Parts>(), ...);
    }(typename Layer::Parts{});
  }
}
/// Whether any of them has a property: holds.operator()<Part>().
template <class Layer>
constexpr bool any_part(const auto& holds) {
  bool any = false;
  for_each_part<Layer>([&]<class Part>() { any = any || holds.template operator()<Part>(); });
  return any;
}
/// Whether a layer or a part of it has constants (models/frozen.hpp).
template <class Layer>
inline constexpr bool kHasConstants = requires {
  Layer::constants();
}
|| any_part<Layer>([]<class Part>() { return kHasConstants<Part>; });
/// Hashes the bits of all constants, part by part; about 15 instructions per float.
template <class Layer>
std::uint32_t hash_constants(HashedPrecision precision, std::uint32_t before = fingerprint()) {
  if constexpr (requires { Layer::constants(); }) before = hash_set(Layer::constants(), before, precision);
  for_each_part<Layer>([&]<class Part>() { before = hash_constants<Part>(precision, before); });
  return before;
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
