// Attention of the next tokens of a stream (execution/stream.hpp) to all tokens so far, and to an encoder's
// memory. key_value_blocks.hpp keeps values, and keys rotated by their positions. Keys and values of the
// memory are projected once.
//
// Tokens of one call attend one by one. Each token's key and value are stored before it attends, so a ring
// needs no spare room. The cost depends on the number of stored keys, not on the capacity.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include <attune/attention/attention_heads.hpp>
#include <attune/attention/attention_operands.hpp>
#include <attune/attention/attention_shape.hpp>
#include <attune/attention/bias_kv.hpp>
#include <attune/attention/key_value_blocks.hpp>
#include <attune/attention/option_masks.hpp>
#include <attune/attention/rotary_positions.hpp>
#include <attune/attention/scaled_dot_product_attention.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/finite.hpp>
#include <attune/kernels/ops/int8_kv_attention.hpp>
#include <attune/kernels/ops/softcap.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Parts of MultiHeadAttention that both streams below use.
template <class Attention>
struct AttentionParts {
  static constexpr AttentionShape kShape = Attention::kShape;
  static_assert(Holds<(kShape.offset == 0)>,
                "attune: a stream counts positions itself; leave offset out of AttentionShape");
  using Scalar = typename Attention::Scalar;
  static constexpr int kHeads = kShape.num_heads, kKvHeads = kShape.num_kv_heads;
  static constexpr int kDk = kShape.d_k, kDv = kShape.d_v;
  using Heads = AttentionHeads<kShape, Scalar>;
  using Operands = AttentionOperands<kShape, Scalar>;
  using Options = typename Operands::Parts;
  static constexpr Scalar kScoreScale = Scalar(Heads::kScoreScale);
  static constexpr auto scores() { return Heads::scores(); }

  /// The options of Q, K and V for so many tokens.
  template <int tokens>
  using OperandsOf =
      AttentionOperands<with(kShape, &AttentionShape::seq_len, tokens, &AttentionShape::kv_len, tokens),
                        Scalar>;
  /// The rotation by position, or no option.
  using Rotation = typename Operands::Rotation;
};

/// The cache that a layer keeps: smaller if the layer has its own window.
template <AttentionShape shape, CacheShape cache>
constexpr CacheShape kept_of() {
  constexpr AttentionWindow kOwn = shape.window;
  if constexpr (kOwn.left == kUnlimited || (cache.window == 0 && kOwn.left >= cache.capacity)) {
    return cache;
  } else {
    constexpr bool kOwnIsWithin =
        cache.window == 0 || (kOwn.left < cache.window && kOwn.sinks <= cache.sinks);
    static_assert(Holds<(kOwnIsWithin || (kOwn.left >= cache.window - 1 && kOwn.sinks >= cache.sinks))>,
                  "attune: the cache must cover the layer's window and its sinks; enlarge both in "
                  "CacheShape, or set a capacity");
    return kOwnIsWithin
               ? CacheShape{.window = kOwn.left + 1, .sinks = kOwn.sinks, .precision = cache.precision}
               : cache;
  }
}

/// sums += weights[count] · rows[count, …].
template <class Scalar>
using AddRows = void(int count, const Scalar* weights, const Scalar* rows, Scalar* sums);

/// Weights of one query in one head, on the axis of the visible keys. `scores` has room for one score per
/// slot. score_blocks(blocks, first, to) writes the products of the query with the keys of whole blocks.
/// largest() returns a bound of |q|²·|k|²; nullptr if unknown. `biases` is the mask of the layer's biases by
/// position, or NoMask.
template <class Parts, CacheShape kept, class Scalar, class ScoreBlocks, class Largest, class Biases>
ATTUNE_INLINE void weigh_cached_keys(const VisibleKeys<kept>& visible, int head, Scalar* const scores,
                                     const ScoreBlocks& score_blocks, [[maybe_unused]] const Largest& largest,
                                     const Biases& biases) {
  constexpr int kBlock = kernels::kCacheBlock;
  // Softcap and biases need scaled scores; else softmax scales them.
  constexpr bool kScalesScores = Parts::kShape.softcap > 0 || !std::is_same_v<Biases, NoMask>;
  const auto blocks_before = [](int slots) ATTUNE_INLINE_LAMBDA {
    return static_cast<int>(static_cast<unsigned>(slots) / kBlock);
  };
  int end = 0, seen_from = 0;  // the first block after all gaps before `end`
  const auto hide_up_to = [&](int axis) {
    if (end < axis) seen_from = blocks_before(axis - 1) + 1;
    for (; end < axis; ++end) scores[end] = kHidden<Scalar>;
  };
  for (const auto& run : visible) {
    const int block = blocks_before(run.slot), blocks = blocks_before(run.slot + run.count - 1) + 1 - block;
    Scalar* const to = scores + blocks_before(run.axis) * kBlock;
    score_blocks(blocks, block, to);
    if (kScalesScores) {
      for (int i = 0; i < blocks; ++i) kernels::scale<kBlock>(to + i * kBlock, Parts::kScoreScale);
      Parts::scores().limit(blocks * kBlock, to);
      for (int i = 0; i < blocks; ++i) {
        biases.template bias<kBlock>(head, run.distance - i * kBlock, to + i * kBlock);
      }
    }
    hide_up_to(run.axis);
    end = run.axis + run.count;
  }
  kernels::BoundedBlocks bounded{};
  if constexpr (kernels::kLooksAtBounds<Scalar> && !kScalesScores &&
                !std::is_null_pointer_v<Largest>) {  // |q·k|² ≤ |q|²·|k|²
    constexpr double kMax = kernels::kMaxScore / double(Parts::kScoreScale);
    if (largest() <= Scalar(kMax * kMax)) {
      bounded = {seen_from, larger(seen_from, blocks_before(end))};
    }
  }
  hide_up_to(visible.blocks() * kBlock);
  kernels::block_softmax(visible.blocks(), scores, kScalesScores ? Scalar(1) : Parts::kScoreScale, bounded);
}

/// context[d_v] of one query[d_k] in one head. `scores` has room for one score per slot.
template <class Parts, CacheShape kept, class Scalar, class HeadBlocks>
[[gnu::noinline]] void attend_to_blocks(const VisibleKeys<kept>& visible, const HeadBlocks& blocks_of_head,
                                        int head, const Scalar* query, Scalar* scores, Scalar* context,
                                        const auto& biases, AddRows<Scalar>& add_rows) {
  constexpr int kBlock = kernels::kCacheBlock, kDk = Parts::kDk, kDv = Parts::kDv;
  weigh_cached_keys<Parts>(
      visible, head, scores,
      [&](int blocks, int first, Scalar* to) ATTUNE_INLINE_LAMBDA {
        kernels::block_scores<kDk>(blocks, query, blocks_of_head.keys.data() + first * kDk * kBlock, to);
      },
      [&]() ATTUNE_INLINE_LAMBDA {
        return kernels::sum_of_few_squares<kDk>(query) * blocks_of_head.most_squares;
      },
      biases);

  // The first sum of products is computed in `context`; the others are computed in `beside` and added to it.
  Scalar beside[std::size_t{kDv}];
  Scalar* sum = context;
  const auto finish = [&]() ATTUNE_INLINE_LAMBDA {
    if (sum == context) return;
    for (int j = 0; j < kDv; ++j) context[j] = kernels::add(context[j], beside[j]);
  };
  for (const auto& run : visible) {
    if (run.begins_sum) {
      finish();
      if (&run != visible.begin()) sum = beside;
      kernels::clear_sums<kDv>(sum);
    }
    add_rows(run.count, scores + run.axis, blocks_of_head.values.data() + run.slot * kDv, sum);
  }
  finish();
}

/// The same. As with every mask, a weight of zero has no influence, even beside NaN or infinity.
template <class Parts, CacheShape kept, class Scalar>
ATTUNE_INLINE void attend_to_cache(const VisibleKeys<kept>& visible, const auto& blocks_of_head, int head,
                                   const Scalar* query, Scalar* scores, Scalar* context, const auto& biases) {
  attend_to_blocks<Parts>(visible, blocks_of_head, head, query, scores, context, biases,
                          kernels::add_weighted_rows<Parts::kDv, Scalar>);
  if (kernels::finite<Scalar>(Parts::kDv, context)) return;
  attend_to_blocks<Parts>(visible, blocks_of_head, head, query, scores, context, biases,
                          kernels::add_nonzero_weighted_rows<Parts::kDv, Scalar>);
}

/// The same in integers, for keys and values in 8 bits.
template <class Parts, CacheShape kept, class Head>
  requires requires(const Head& head_view) { head_view.key_scales; }
[[gnu::noinline]] void attend_to_cache(const VisibleKeys<kept>& visible, const Head& head_view, int head,
                                       const float* query, float* scores, float* context,
                                       const auto& biases) {
  constexpr int kBlock = kernels::kCacheBlock, kDk = Parts::kDk, kDv = Parts::kDv;
  std::int8_t integers[std::size_t{kDk}];
  const float query_scale = kernels::quantize_row(
      kDk, [query](int k) ATTUNE_INLINE_LAMBDA { return query[k]; }, integers);
  weigh_cached_keys<Parts>(
      visible, head, scores,
      [&](int blocks, int first, float* to) ATTUNE_INLINE_LAMBDA {
        kernels::int8_scores<kDk>(blocks * kBlock, integers, query_scale,
                                  head_view.keys + first * kBlock * kDk,
                                  head_view.key_scales + first * kBlock, to);
      },
      nullptr, biases);

  using Sum = std::conditional_t<(CachePlaces<kept>::kSlots > 131072), std::int64_t, std::int32_t>;
  std::uint32_t largest = 0;
  for (const auto& run : visible) {
    largest = kernels::largest_folded_weight(run.count, scores + run.axis, head_view.value_scales + run.slot,
                                             largest);
  }
  const kernels::RowScale row = kernels::row_scale(largest);
  Sum sums[std::size_t{kDv}] = {};
  for (const auto& run : visible) {
    kernels::add_int8_rows<kDv>(run.count, scores + run.axis, head_view.value_scales + run.slot, row.inverse,
                                head_view.values + run.slot * kDv, sums);
  }
  for (int j = 0; j < kDv; ++j) context[j] = kernels::multiply(static_cast<float>(sums[j]), row.scale);
}

/// Runs MultiHeadAttention token by token.
template <class Attention, int tokens, CacheShape cache>
struct AttentionStream : AttentionParts<Attention> {
  using Parts = AttentionParts<Attention>;
  using Parts::kShape, Parts::kHeads, Parts::kKvHeads, Parts::kDk, Parts::kDv;
  using typename Parts::Scalar;

  static constexpr bool kOutputMayBeInput = true;
  static constexpr CacheShape kKept = [] {
    static_assert(
        Holds<Attention::kSelfAttention>,
        "attune: cross-attention alone does not run token by token; use a DecoderLayer, which caches "
        "the keys and values of its memory");
    static_assert(
        Holds<(!Attention::kShape.add_bias_kv && !Attention::kShape.add_zero_attn)>,
        "attune: a stream has no last token to append keys to; leave out add_bias_kv and add_zero_attn");
    static_assert(Holds<(Attention::kShape.window.own_key == OwnKey::kSeen)>,
                  "attune: the first token of a stream sees no key but its own; leave out OwnKey::kHidden");
    static_assert(
        Holds<!Attention::kShape.relative_bias.on_grid()>,
        "attune: a stream has no grid of tokens; use the distances or buckets of RelativePositions");
    return kept_of<kShape, cache>();
  }();
  using Tokens = std::conditional_t<cache.precision == CachePrecision::kInt8,
                                    Int8KeyValueBlocks<kKvHeads, kDk, kDv, kKept>,
                                    KeyValueBlocks<Scalar, kKvHeads, kDk, kDv, kKept>>;
  struct Memory : Tokens {
    static constexpr std::uint32_t kFingerprint =
        fingerprint("keys rotated and scaled", Tokens::kFingerprint);
    [[no_unique_address]] typename Parts::Rotation::template ExtendedAngles<cache> beyond;
  };
  static constexpr std::uint64_t kMaxTokens = cache.window > 0 ? kAnyNumber : std::uint64_t{cache.capacity};

  struct Scratch {
    Tensor<Scalar, tokens, kHeads * kDk> query;
    Tensor<Scalar, tokens, kKvHeads * kDk> key;
    Tensor<Scalar, tokens, kKvHeads * kDv> value;
    Tensor<Scalar, tokens, kHeads * kDv> outputs;
    Tensor<Scalar, 1, Tokens::Places::kSlots> scores;  // of one head
    [[no_unique_address]] typename Parts::Rotation::template Angles<tokens> angles;
  };

  static void step(std::uint64_t position, const auto& parameters,
                   ConstView<Tensor<Scalar, tokens, kShape.d_model>> x,
                   View<Tensor<Scalar, tokens, kShape.d_out>> y, auto& memory, Scratch& scratch) {
    Parts::Rotation::compute_angles(position, scratch.angles, memory.beyond);
    using Operands = typename Parts::template OperandsOf<tokens>;
    OfLength<typename Attention::QueryProjection, tokens>::forward(parameters.query, x, scratch.query);
    OfLength<typename Attention::KeyProjection, tokens>::forward(parameters.key, x, scratch.key);
    OfLength<typename Attention::ValueProjection, tokens>::forward(parameters.value, x, scratch.value);
    Operands::finish_queries(parameters, scratch, Context<>{}, scratch.angles);
    Operands::finish_keys(parameters, scratch, Context<>{}, scratch.angles);
    const auto biases = both_masks(alibi_of<kShape>(), Parts::Options::Relative::mask(parameters.relative));
    for (int i = 0; i < tokens; ++i) {
      const std::uint64_t at = position + static_cast<std::uint64_t>(i);
      memory.append(at, &scratch.key(i, 0), &scratch.value(i, 0));
      const VisibleKeys<kKept> visible(at);
      for (int head = 0; head < kHeads; ++head) {
        attend_to_cache<Parts>(visible, memory.heads[kShape.kv_head_of(head)], head,
                               static_cast<const Scalar*>(&scratch.query(i, head * kDk)),
                               scratch.scores.data(), &scratch.outputs(i, head * kDv), biases);
      }
    }
    OfLength<typename Attention::OutputProjection, tokens>::forward(parameters.output, view(scratch.outputs),
                                                                    y);
  }
};

/// Runs attention to a memory token by token. The memory's keys and values stay in the model's scalar.
template <class Attention>
struct MemoryStream : AttentionParts<Attention> {
  using Parts = AttentionParts<Attention>;
  using Parts::kShape, Parts::kHeads, Parts::kKvHeads, Parts::kDk, Parts::kDv;
  using typename Parts::Scalar;
  static constexpr int kKeys = [] {  // with appended keys
    static_assert(
        Holds<!Attention::kShape.relative_bias.on_grid()>,
        "attune: a stream has no grid of tokens; use the distances or buckets of RelativePositions");
    return Attention::kKeys;
  }();

  struct Memory {
    static constexpr std::uint32_t kFingerprint = fingerprint("keys rotated and scaled, in rows");
    Tensor<Scalar, kKeys, kKvHeads * kDk> key;
    Tensor<Scalar, kKeys, kKvHeads * kDv> value;
    std::uint32_t remembered;  // 0: not yet
    // Angles of queries, whose number has no limit.
    [[no_unique_address]] typename Parts::Rotation::template ExtendedAngles<CacheShape{.window = 1}> beyond;
  };
  template <int tokens>
  struct Scratch {
    Tensor<Scalar, tokens, kHeads * kDk> query;
    Tensor<Scalar, tokens, kHeads * kDv> outputs;
    Tensor<Scalar, tokens, kKeys> weights;  // of one head
    [[no_unique_address]] typename Parts::Rotation::template Angles<tokens> angles;
  };

  static void remember(const auto& parameters, ConstView<typename Attention::KeyInput> tokens,
                       Memory& memory) {
    Attention::KeyProjection::forward(parameters.key, tokens, Parts::Operands::of_tokens(memory.key));
    Attention::ValueProjection::forward(parameters.value, tokens, Parts::Operands::of_tokens(memory.value));
    Parts::Operands::finish_keys(parameters, memory, Context<>{});
    memory.remembered = 1;
  }
  static Status ready(const Memory& memory) {
    return memory.remembered != 0 ? Status::kOk : Status::kNothingRemembered;
  }
  /// Products apply to queries and the memory. `mask` covers `most` queries in all. Positions above 2³⁰ count
  /// as 2³⁰, the limit of masks.
  template <int tokens, std::uint64_t most, class Products, class Mask>
  static void step(std::uint64_t position, const auto& parameters,
                   ConstView<Tensor<Scalar, tokens, kShape.d_model>> x,
                   View<Tensor<Scalar, tokens, kShape.d_out>> y, Memory& memory, Scratch<tokens>& scratch,
                   const Mask& mask) {
    Parts::Rotation::compute_angles(position, scratch.angles, memory.beyond);
    OfLength<typename Attention::QueryProjection, tokens>::forward(parameters.query, x, scratch.query);
    Parts::template OperandsOf<tokens>::finish_queries(parameters, scratch, Context<>{}, scratch.angles);
    const auto& masks = with_options<typename Parts::Options>(parameters, mask);
    const auto key = view(std::as_const(memory.key)), value = view(std::as_const(memory.value));
    const auto context = Context(masks).template with_products<Products>().skipping_zeros(value);
    constexpr int kQueries = static_cast<int>(smaller(most, std::uint64_t{kUnlimited}));
    const int first_query = static_cast<int>(smaller(position, std::uint64_t{1} << 30));
    for (int head = 0; head < kHeads; ++head) {
      const int kv_head = kShape.kv_head_of(head);
      attend<kHeads, kQueries>(
          view(scratch.query).template columns<kDk>(head * kDk), key.template columns<kDk>(kv_head * kDk),
          value.template columns<kDv>(kv_head * kDv), view(scratch.outputs).template columns<kDv>(head * kDv),
          view(scratch.weights), Parts::scores(), head, first_query, AllWeights{}, context);
    }
    OfLength<typename Attention::OutputProjection, tokens>::forward(parameters.output, view(scratch.outputs),
                                                                    y);
  }
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
