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
// With .numbers = CacheNumbers::kInt8, the cache keeps keys and values in 8 bits, and attention multiplies
// integers. `y` then equals the row of attune::infer<Model>(parameters, x, y, scratch, CausalMask{},
// Int8CacheProducts{}).
//
// A layer declares how it runs on some tokens. If tokens do not meet in it:
//
//   WithLength<tokens>     the same layer for that many tokens, on the same parameters
//
// If they meet, or if the number of earlier tokens matters:
//
//   template <CacheShape cache>
//   struct Stream {
//     struct Memory { … };                            // kept from earlier tokens; zeros: none.
//                                                     // A kFingerprint identifies its layout in a saved
//                                                     // cache, if its type does not
//     static constexpr std::uint64_t kMostTokens = …; // most tokens in all; default: any number
//     static Status ready(const Memory&);             // whether a step can run; default: always
//     template <int tokens>
//     struct Scratch { … };                           // dead after every call
//     /// y[tokens, …] of x[tokens, …], which do not overlap; `position` tokens came before.
//     template <int tokens>
//     static void step(std::uint64_t position, const auto& parameters, x, y, Memory&, Scratch<tokens>&);
//   };
//
// Neither is inherited, as a derived layer may compute another function: it declares its own. If it computes
// the same function, it declares `using SteppedAs = itself`.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// The storage of kept keys and values.
enum class CacheNumbers {
  kScalar,  // the model's scalar
  kInt8,    // 8 bits with a scale per token and head, and integer attention; float models only
};

/// The kept keys and values: of all tokens, at most `capacity`; or, endlessly, of the last `window` tokens,
/// including the newest, and of the first `sinks` tokens (Xiao et al., "Efficient Streaming Language Models
/// with Attention Sinks", 2024).
struct CacheShape {
  int capacity = 0;                              // largest number of tokens; 0: a ring
  int window = 0;                                // number of last tokens that a ring keeps; 0: no ring
  int sinks = 0;                                 // number of first tokens that a ring keeps
  CacheNumbers numbers = CacheNumbers::kScalar;  // storage of keys and values
};

namespace detail {

inline constexpr int kMostCached = 1 << 28;

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
using StepInput = typename OfTokens<typename Layer::Input, ids_per_token<Layer>() * tokens>::type;
template <class Layer, int tokens>
using StepOutput = typename OfTokens<typename Layer::Output, tokens>::type;

template <class Layer, CacheShape cache>
concept SaysStream = requires {
  typename Layer::template Stream<cache>;
};

// Whether the layer declares Stream itself. An inherited one may compute another function.
template <class Layer, CacheShape cache>
inline constexpr bool kSaysOwnStream = [] {
  if constexpr (requires { typename Layer::SteppedAs; }) {
    using Said = typename Layer::SteppedAs;
    return std::is_same_v<Said, Layer> ||
           !std::is_same_v<typename Layer::template Stream<cache>, typename Said::template Stream<cache>>;
  } else {
    return true;
  }
}();

// A layer whose tokens do not meet.
template <class Layer>
struct TokenwiseStream {
  struct Memory {};

  template <int tokens>
  static constexpr auto of_tokens() {
    constexpr bool kHasLength = requires { typename Layer::template WithLength<tokens>; };
    static_assert(
        kHasLength,
        "attune: a layer of the model does not say how it runs token by token: give it WithLength<tokens>, "
        "the layer of as many tokens, where they do not meet in it, else Stream (execution/stream.hpp)");
    if constexpr (kHasLength) {
      static_assert(
          sizeof(typename Layer::template WithLength<tokens>) > 0 &&  // its own error comes first
              std::is_same_v<typename Layer::template WithLength<Layer::Output::rows>, Layer>,
          "attune: a layer of the model would run token by token as another one: WithLength of its own "
          "number "
          "of tokens has to be the layer itself; one that inherits from another needs its own");
      return std::type_identity<typename Layer::template WithLength<tokens>>{};
    } else {
      return std::type_identity<Layer>{};
    }
  }
  template <int tokens>
  using Of = decltype(of_tokens<tokens>());
  template <int tokens>
  using Scratch = typename Of<tokens>::type::InferenceScratch;

  template <int tokens>
  ATTUNE_INLINE static Outcome<Layer> step(std::uint64_t, const auto& parameters,
                                           ConstView<StepInput<Layer, tokens>> x,
                                           View<StepOutput<Layer, tokens>> y, Memory&,
                                           Scratch<tokens>& scratch) {
    return Of<tokens>::type::forward(parameters, x, y, scratch);
  }
};
template <class Layer, CacheShape cache>
struct StreamOfLayer : std::type_identity<TokenwiseStream<Layer>> {};
template <class Layer, CacheShape cache>
  requires SaysStream<Layer, cache>
struct StreamOfLayer<Layer, cache> {
  static_assert(
      kSaysOwnStream<Layer, cache>,
      "attune: a layer of the model would run token by token as the one that it inherits from: give it "
      "a Stream of its own, or `using SteppedAs` of its own type where both are the same function");
  using type = typename Layer::template Stream<cache>;
};

/// A layer's Stream, or the one derived from its WithLength.
template <class Layer, CacheShape cache>
using StreamOf = typename StreamOfLayer<Layer, cache>::type;

/// Whether a stream can have more than `tokens` tokens.
constexpr bool goes_beyond(CacheShape cache, int tokens) {
  return cache.window > 0 || cache.capacity > tokens;
}

inline constexpr std::uint64_t kAnyNumber = (std::numeric_limits<std::uint64_t>::max)();
/// The largest number of tokens that a layer takes in all.
template <class Layer, CacheShape cache>
inline constexpr std::uint64_t kMostTokens = [] {
  if constexpr (requires { StreamOf<Layer, cache>::kMostTokens; }) {
    return StreamOf<Layer, cache>::kMostTokens;
  } else {
    return kAnyNumber;
  }
}();

}  // namespace detail

/// Scratch for steps of `tokens` tokens, dead after every step. Several can share memory in a union.
template <class Model, CacheShape shape, int tokens = 1>
struct StepScratch {
  static_assert(tokens > 0, "attune::StepScratch: a step takes one token at least");
  typename detail::StreamOf<Model, shape>::template Scratch<tokens> layers;
};

/// The memory of a stream: keys and values of all attention layers of a model. Plain memory, initially zero,
/// trivially copyable, without pointers: a copy is a checkpoint.
template <class ModelType, CacheShape shape>
struct KeyValueCache {
  static_assert((shape.capacity > 0) != (shape.window > 0) && shape.capacity >= 0 && shape.window >= 0,
                "attune::KeyValueCache: a cache has either a capacity or a window; set one in CacheShape, to "
                "a positive number of tokens");
  static_assert(
      shape.sinks >= 0 && (shape.sinks == 0 || shape.window > 0),
      "attune::KeyValueCache: sinks are the first tokens that a window keeps; set .window with them");
  static_assert(shape.capacity <= detail::kMostCached && shape.window <= detail::kMostCached &&
                    shape.sinks <= detail::kMostCached,
                "attune::KeyValueCache: a cache keeps at most 2^28 tokens, and as many sinks");
  static_assert(shape.numbers == CacheNumbers::kScalar || std::is_same_v<typename ModelType::Scalar, float>,
                "attune::KeyValueCache: a cache in 8 bits is one of a model in float; leave .numbers out of "
                "CacheShape");
  using Model = ModelType;
  static constexpr CacheShape kShape = shape;
  /// Identifies the model's type, the shape, the layout of memory and the arithmetic, but not the values of
  /// parameters: store their version beside a saved cache.
  static constexpr std::uint32_t kFingerprint =
      fingerprint("cache", sizeof(typename Model::Scalar), shape.capacity, shape.window, shape.sinks,
                  kFingerprintOf<Model>, detail::fingerprint_of_tensors<Model>(),
                  kFingerprintOf<typename detail::StreamOf<Model, shape>::Memory>, kArithmeticName);
  /// The largest number of tokens in all.
  static constexpr std::uint64_t kMostTokens = detail::kMostTokens<Model, shape>;
  template <int tokens = 1>
  using Scratch = StepScratch<Model, shape, tokens>;

  std::uint64_t tokens;  // so far; the position of the next token
  /// Memory of the layers; initially zeros.
  [[no_unique_address]] typename detail::StreamOf<Model, shape>::Memory memory;

  /// Whether `more` tokens fit.
  [[nodiscard]] constexpr bool has_room(std::uint64_t more = 1) const {
    return tokens <= kMostTokens && more <= kMostTokens - tokens;
  }
  /// Begins a new stream. Keeps a DecoderLayer's memory of the encoder.
  constexpr void reset() { tokens = 0; }
};

/// y[tokens, …] of a stream's next tokens x[tokens, …], or of their ids; parameters in any storage. `y` may
/// not overlap `x`. `more` are a model's own arguments after the scratch. On an error, nothing changes:
/// kCacheFull if the cache lacks room for all tokens or a table of positions ends; kInvalidToken if an id is
/// outside the vocabulary; kNothingRemembered if a decoder layer has no memory yet.
template <class Set, class Model, CacheShape shape, int tokens, class... More>
Status step(const Set& parameters, ConstView<detail::StepInput<Model, tokens>> x,
            View<detail::StepOutput<Model, tokens>> y, KeyValueCache<Model, shape>& cache,
            StepScratch<Model, shape, tokens>& scratch, const More&... more) {
  detail::check_no_trainer<Set>();
  ATTUNE_ASSERT(cache.tokens <= cache.kMostTokens, "KeyValueCache: its position is none; reset() it first");
#if ATTUNE_CHECKED
  detail::check_views<false>(x, y);
#endif
  if (!cache.has_room(std::uint64_t{tokens})) return Status::kCacheFull;
  if constexpr (requires { detail::StreamOf<Model, shape>::ready(cache.memory); }) {
    const Status status = detail::StreamOf<Model, shape>::ready(cache.memory);
    if (status != Status::kOk) return status;
  }
  const auto through = [&] {
    return detail::StreamOf<Model, shape>::template step<tokens>(cache.tokens, parameters, x, y, cache.memory,
                                                                 scratch.layers, more...);
  };
  const auto count = [&] { cache.tokens += std::uint64_t{tokens}; };
  if constexpr (detail::kTakesIds<Model>) {
    const Status status = through();
    if (status == Status::kOk) count();
    return status;
  } else {
    through();
    count();
    return Status::kOk;
  }
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
    static_assert(std::is_base_of_v<Self, Model>,
                  "attune: the cache is of another model; KeyValueCache<Model, shape> names its own");
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

}  // namespace attune::inline ATTUNE_ARITHMETIC
