// Token by token: a causal model that was trained on windows runs on a stream, with the same parameters and
// the same bits.
//
//   using Cache = attune::KeyValueCache<Model, attune::CacheShape{.capacity = 256}>;  // or {.window = 64}
//   static Cache cache;                                                // zeros: no token yet
//   static Cache::Scratch<> scratch;
//   attune::Status status = Model::step(parameters, token, y, cache, scratch);
//
// `y` of every token equals its row of Model::forward with CausalMask, for the sequence of all tokens since
// the cache was empty. A ring adds the sliding window of its `window` and `sinks` keys. This holds on every
// target, for any length. Cache::Scratch<tokens> takes several tokens at once, as in a prompt. Calls with
// different numbers of tokens may follow each other.
//
// With .precision = CachePrecision::kInt8, the cache keeps keys and values in 8 bits, and attention
// multiplies integers. `y` then equals the row of attune::infer<Model>(parameters, x, y, scratch,
// CausalMask{}, Int8CacheProducts{}).
//
// A layer declares its Stream<tokens, cache>, itself on the next `tokens` tokens. If tokens do not meet in
// it, that is the layer of as many tokens, on the same parameters:
//
//   template <int tokens, CacheShape>
//   using Stream = Own<tokens, …>;
//
// If they meet, or if the number of earlier tokens matters:
//
//   template <int tokens, CacheShape cache>
//   struct Stream {
//     struct Memory { … };  // kept from earlier tokens; zeros: none. Its layout does not depend on `tokens`.
//                           // A kFingerprint identifies it in a saved cache, if its type does not
//     struct Scratch { … };                           // dead after every call
//     static constexpr std::uint64_t kMaxTokens = …;  // most tokens in all; default: any number
//     static Status ready(const auto& memory);        // whether a step can run; default: always
//     /// y[tokens, …] of x[tokens, …], which do not overlap; `position` tokens came before. `memory` is the
//     /// Memory of Stream<1, cache>.
//     static void step(std::uint64_t position, const auto& parameters, x, y, auto& memory, Scratch&);
//   };
//
// It is not inherited, as a derived layer may compute another function: it declares its own. If it computes
// the same function, it declares `using SteppedAs = itself`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/kernels/ops/finite.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

inline constexpr int kMaxCached = 1 << 28;

/// A layer's input or output with another number of rows.
template <class Matrix, int tokens>
struct OfTokens {
  using type = Tensor<typename Matrix::Scalar, tokens, Matrix::cols>;
};
template <std::size_t size, int tokens>
struct OfTokens<std::array<int, size>, tokens> {
  using type = std::array<int, std::size_t{tokens}>;
};
template <class Layer, int tokens>
using StepInput = typename OfTokens<typename Layer::Input, kIdsOfToken<Layer> * tokens>::type;
template <class Layer, int tokens>
using StepOutput = typename OfTokens<typename Layer::Output, tokens>::type;

// Whether the layer declares its Stream itself. An inherited one may compute another function.
template <class Layer, int tokens, CacheShape cache>
concept SaysOwnStream = IsItself<Layer> || !requires {
  requires(std::is_same_v<typename Layer::template Stream<tokens, cache>,
                          typename Layer::SteppedAs::template Stream<tokens, cache>>);
};

// The Stream of a layer whose tokens do not meet.
template <class Layer>
struct StreamByToken {
  static constexpr bool kOutputMayBeInput = detail::OutputMayBeInput<Layer>;
  struct Memory {};
  using Scratch = typename Layer::InferenceScratch;

  ATTUNE_INLINE static ForwardResult<Layer> step(std::uint64_t, const auto& parameters,
                                                 ConstView<typename Layer::Input> x,
                                                 View<typename Layer::Output> y, auto& /*memory*/,
                                                 Scratch& scratch) {
    return Layer::forward(parameters, x, y, scratch);
  }
};

template <class Layer, int tokens, CacheShape cache>
constexpr auto stream_of() {
  if constexpr (RunsOnAnyTokens<Layer>) {
    return std::type_identity<StreamByToken<OfLength<Layer, tokens>>>{};
  } else if constexpr (requires { typename Layer::template Stream<tokens, cache>; }) {
    using Declared = typename Layer::template Stream<tokens, cache>;
    if constexpr (std::is_base_of_v<NoStream, Declared>) {  // which says why
      return std::type_identity<NoStream>{};
    } else {
      constexpr bool kSteps = sizeof(Declared) > 0 && requires { typename Declared::Memory; };
      static_assert(Holds<kSteps>,
                    "attune: a layer's Stream is another layer: for its own number of tokens it must be the "
                    "layer itself, or have a Memory and a step; a layer that inherits needs its own Stream");
      static_assert(
          Holds<(!kSteps || SaysOwnStream<Layer, tokens, cache>)>,
          "attune: a layer would inherit its base's Stream: give it its own, or `using SteppedAs` of "
          "its own type if both compute the same function");
      return std::type_identity<std::conditional_t<kSteps, Declared, StreamByToken<Layer>>>{};
    }
  } else {
    static_assert(Holds<(tokens < 0)>,
                  "attune: a layer of the model has no Stream<tokens, cache>: the same layer for that many "
                  "tokens if tokens do not mix, else a Memory and a step (execution/stream.hpp)");
    return std::type_identity<StreamByToken<Layer>>{};
  }
}
/// A layer's Stream: its Memory, Scratch and step.
template <class Layer, int tokens, CacheShape cache>
using StreamOf = typename decltype(stream_of<Layer, tokens, cache>())::type;
/// Whether y of a step may be x: the stream says so.
template <class Layer, int tokens, CacheShape cache>
concept StepsInPlace = WorksInPlace<Layer> && StreamOf<Layer, tokens, cache>::kOutputMayBeInput;
/// The memory of a layer's stream, for steps of any number of tokens.
template <class Layer, CacheShape cache>
using StreamMemoryOf = typename StreamOf<Layer, 1, cache>::Memory;

/// Whether a stream can have more than `tokens` tokens.
constexpr bool goes_beyond(CacheShape cache, int tokens) {
  return cache.window > 0 || cache.capacity > tokens;
}

inline constexpr std::uint64_t kAnyNumber = (std::numeric_limits<std::uint64_t>::max)();
/// The largest number of tokens that a layer takes in all.
template <class Layer, CacheShape cache>
inline constexpr std::uint64_t kMaxTokens = kAnyNumber;
template <class Layer, CacheShape cache>
  requires requires { StreamOf<Layer, 1, cache>::kMaxTokens; }
inline constexpr std::uint64_t kMaxTokens<Layer, cache> = StreamOf<Layer, 1, cache>::kMaxTokens;

}  // namespace detail

/// Scratch for steps of `tokens` tokens, dead after every step. Several can share memory in a union.
template <class Model, CacheShape shape, int tokens = 1>
struct StepScratch {
  static_assert(detail::Holds<(tokens > 0)>, "attune::StepScratch: a step takes at least one token");
  typename detail::StreamOf<Model, tokens, shape>::Scratch layers;
};

/// The memory of a stream: keys and values of all attention layers of a model. Plain memory, initially zero,
/// trivially copyable, without pointers: a copy is a checkpoint.
template <class ModelType, CacheShape shape>
struct KeyValueCache {
  static_assert(
      detail::Holds<((shape.capacity > 0) != (shape.window > 0) && shape.capacity >= 0 && shape.window >= 0)>,
      "attune::KeyValueCache: set either a capacity or a window in CacheShape, to a positive "
      "number of tokens");
  static_assert(detail::Holds<(shape.sinks >= 0 && (shape.sinks == 0 || shape.window > 0))>,
                "attune::KeyValueCache: sinks need a window; set .window as well");
  static_assert(detail::Holds<(shape.capacity <= detail::kMaxCached && shape.window <= detail::kMaxCached &&
                               shape.sinks <= detail::kMaxCached)>,
                "attune::KeyValueCache: a cache keeps at most 2^28 tokens and 2^28 sinks");
  static_assert(
      detail::Holds<(shape.precision == CachePrecision::kScalar ||
                     std::is_same_v<typename ModelType::Scalar, float>)>,
      "attune::KeyValueCache: an 8-bit cache needs a model in float; leave .precision out of CacheShape");
  using Model = ModelType;
  static constexpr CacheShape kShape = shape;
  /// Identifies the model's type, the shape, the layout of memory and the arithmetic, but not the values of
  /// parameters: store their version beside a saved cache.
  static constexpr std::uint32_t kFingerprint =
      fingerprint("cache", sizeof(typename Model::Scalar), shape.capacity, shape.window, shape.sinks,
                  kFingerprintOf<Model>, detail::fingerprint_of_tensors<Model>(),
                  kFingerprintOf<detail::StreamMemoryOf<Model, shape>>, kArithmeticName);
  /// The largest number of tokens in all.
  static constexpr std::uint64_t kMaxTokens = detail::kMaxTokens<Model, shape>;
  template <int tokens = 1>
  using Scratch = StepScratch<Model, shape, tokens>;

  /// The number of tokens so far, which is the position of the next one. Only step() and reset() set it:
  /// rings and windows forget older tokens, so a smaller number is no earlier state. A copy of the cache is.
  std::uint64_t tokens;
  /// Memory of the layers; initially zeros.
  [[no_unique_address]] detail::StreamMemoryOf<Model, shape> memory;

  /// Whether `more` tokens fit.
  [[nodiscard]] constexpr bool has_room(std::uint64_t more = 1) const {
    return tokens <= kMaxTokens && more <= kMaxTokens - tokens;
  }
  /// Begins a new stream. Keeps a DecoderLayer's memory of the encoder.
  constexpr void reset() { tokens = 0; }
};

/// y[tokens, …] of a stream's next tokens x[tokens, …], or of their ids; parameters in any storage. `y` may
/// not overlap `x`. `more` are a model's own arguments after the scratch. On an error, nothing changes:
/// kCacheFull if the cache lacks room for all tokens or a table of positions ends; kInvalidToken if an id is
/// outside the vocabulary; kNotFinite if a number of x is infinite or NaN, which the cache would keep;
/// kNothingRemembered if a decoder layer has no memory yet.
template <class Set, class Model, CacheShape shape, int tokens, class... More>
Status step(const Set& parameters, ConstView<detail::StepInput<Model, tokens>> x,
            View<detail::StepOutput<Model, tokens>> y, KeyValueCache<Model, shape>& cache,
            StepScratch<Model, shape, tokens>& scratch, const More&... more) {
  ATTUNE_ASSERT(cache.tokens <= cache.kMaxTokens,
                "KeyValueCache: the position is invalid; call reset() first");
#if ATTUNE_CHECKED
  detail::check_views<false>(x, y);
#endif
  if (!cache.has_room(std::uint64_t{tokens})) return Status::kCacheFull;
  using Stream = detail::StreamOf<Model, tokens, shape>;
  if constexpr (requires { Stream::ready(cache.memory); }) {
    const Status status = Stream::ready(cache.memory);
    if (status != Status::kOk) return status;
  }
  if constexpr (!detail::TakesIds<Model>) {
    if (!kernels::finite(x)) return Status::kNotFinite;
  }
  const Status status = detail::status_of([&]() ATTUNE_INLINE_LAMBDA {
    return Stream::step(cache.tokens, detail::checked_parameters(parameters), x, y, cache.memory,
                        scratch.layers, more...);
  });
  if (status == Status::kOk) cache.tokens += std::uint64_t{tokens};
  return status;
}

namespace detail {

/// The base class of models with Model::step(parameters, x, y, cache, scratch).
template <class Self>
struct Steps {
  using SteppedAs = Self;
  template <class Set, class Model, CacheShape shape, int tokens, class... More>
  static Status step(const Set& parameters, ConstView<StepInput<Model, tokens>> x,
                     View<StepOutput<Model, tokens>> y, KeyValueCache<Model, shape>& cache,
                     StepScratch<Model, shape, tokens>& scratch, const More&... more) {
    static_assert(Holds<std::is_base_of_v<Self, Model>>,
                  "attune: the cache belongs to another model; use KeyValueCache<Model, shape>");
    return attune::step(parameters, x, y, cache, scratch, more...);
  }
};

}  // namespace detail

/// Memory of a stream of one model: its parameters (RAM, or flash when const), cache and scratch, and input
/// and output of a step of `tokens` tokens.
template <class Model, CacheShape shape, int tokens = 1>
[[nodiscard]] constexpr MemoryReport stream_memory() {
  return {.parameters = detail::kBytes<typename Model::Parameters>,
          .scratch = detail::kBytes<StepScratch<Model, shape, tokens>>,
          .inputs = sizeof(detail::StepInput<Model, tokens>) + sizeof(detail::StepOutput<Model, tokens>),
          .cache = sizeof(KeyValueCache<Model, shape>)};
}

}  // namespace ATTUNE_NAMESPACE
