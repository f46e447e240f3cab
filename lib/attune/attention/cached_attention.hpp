// Self-attention of the next tokens of a stream (core/stream.hpp) to those before them, of which
// key_value_blocks.hpp keeps the keys, rotated by their positions, and the values.
//
// Token by token, also where several come at once: each one's key and value are kept before it attends, so a
// ring needs no room for more. The cost is that of the keys there are, not of the capacity.
#pragma once

#include <cstdint>
#include <limits>

#include <attune/attention/key_value_blocks.hpp>
#include <attune/attention/rotary_positions.hpp>
#include <attune/attention/scaled_dot_product_attention.hpp>
#include <attune/kernels/finite.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

/// context[d_v] of one query[d_k] in one head. `scores` has room for as many as there are slots.
template <class Scalar, int d_k, int d_v, CacheShape shape, class Head>
[[gnu::noinline]] void attend_to_cache(const VisibleKeys<shape>& visible, const Head& head,
                                       const Scalar* query, Scalar scale, Scalar* scores, Scalar* context) {
  constexpr int kBlock = kernels::kCacheBlock;
  int end = 0;
  const auto hide_up_to = [&](int axis) {
    for (; end < axis; ++end) scores[end] = -std::numeric_limits<Scalar>::infinity();
  };
  for (const auto& run : visible) {
    const int block = run.slot / kBlock, blocks = (run.slot + run.count - 1) / kBlock + 1 - block;
    kernels::block_scores<d_k>(blocks, query, head.keys.data() + block * d_k * kBlock, scale,
                               scores + run.axis / kBlock * kBlock);
    hide_up_to(run.axis);
    end = run.axis + run.count;
  }
  hide_up_to(visible.blocks() * kBlock);
  kernels::block_softmax(visible.blocks(), scores);

  // Sums begin at zero and add up from zero: neither is ever −0, so adding the first is having it.
  const auto add_values = [&](const auto& add_rows) ATTUNE_INLINE_LAMBDA {
    Scalar sum[std::size_t{d_v}] = {};
    for (int j = 0; j < d_v; ++j) context[j] = 0;
    for (const auto& run : visible) {
      if (run.begins_sum) {
        for (int j = 0; j < d_v; ++j) context[j] = kernels::add(context[j], sum[j]), sum[j] = 0;
      }
      add_rows(run.count, scores + run.axis, head.values.data() + run.slot * d_v, sum);
    }
    for (int j = 0; j < d_v; ++j) context[j] = kernels::add(context[j], sum[j]);
  };
  add_values(kernels::add_weighted_rows<d_v, Scalar>);
  // As behind every mask, a weight of zero has no influence beside NaN or infinity.
  if (!kernels::finite<Scalar>(d_v, context)) add_values(kernels::add_nonzero_weighted_rows<d_v, Scalar>);
}

/// What both of the following ask of MultiHeadAttention.
template <class Attention>
struct AttentionParts {
  static constexpr auto kShape = Attention::kShape;
  using Scalar = typename Attention::Scalar;
  static constexpr int kHeads = kShape.num_heads, kDk = kShape.d_k, kDv = kShape.d_v;
  static constexpr int kKvHeads = Attention::KeyProjection::Output::cols / kDk;
  static constexpr Scalar kScoreScale = Scalar(Attention::kScoreScale);
  template <class Linear, int tokens>
  using Projection = typename Linear::template WithLength<tokens>;

  static constexpr bool kRotates = kShape.rotary_dim > 0;
  static constexpr int kRotaryDim = kRotates ? kShape.rotary_dim : 2;
  template <int tokens, int heads>
  using Rotation = RotaryPositions<RotaryShape{.seq_len = tokens,
                                               .num_heads = heads,
                                               .d_k = kDk,
                                               .rotary_dim = kRotaryDim,
                                               .pairs = kShape.rotary_pairs,
                                               .base = kShape.rotary_base},
                                   Scalar>;
  struct NoAngles {};
  /// Of the positions of a step.
  template <int tokens>
  using Angles = std::conditional_t<kRotates, kernels::SineTable<Scalar, tokens, kRotaryDim / 2>, NoAngles>;
  template <int tokens>
  static void find_angles([[maybe_unused]] std::uint64_t position, [[maybe_unused]] Angles<tokens>& angles) {
    if constexpr (kRotates) Rotation<kShape.seq_len, kHeads>::angles_from(position, angles);
  }
  /// Queries or keys of `heads` heads, as they are multiplied.
  template <int heads, int tokens>
  static void rotate_and_scale(Tensor<Scalar, tokens, heads * kDk>& operand,
                               [[maybe_unused]] const Angles<tokens>& angles) {
    if constexpr (kRotates) Rotation<tokens, heads>::forward(operand, operand, angles);
    if constexpr (Attention::kScaleOperands) {
      kernels::scale<tokens * heads * kDk>(operand.data(), Scalar(Attention::kOperandScale));
    }
  }
};

/// How MultiHeadAttention runs token by token.
template <class Attention, CacheShape cache>
struct AttentionStream : AttentionParts<Attention> {
  static_assert(Attention::kSelfAttention,
                "attune: attention to other tokens than its own does not run token by token by itself; "
                "DecoderLayer remembers the keys and values of its memory");
  using Parts = AttentionParts<Attention>;
  using Parts::kShape, Parts::kHeads, Parts::kKvHeads, Parts::kDk, Parts::kDv;
  using typename Parts::Scalar;
  template <class Linear, int tokens>
  using Projection = typename Parts::template Projection<Linear, tokens>;

  using Memory = KeyValueBlocks<Scalar, kKvHeads, kDk, kDv, cache>;
  static constexpr std::uint64_t kMostTokens = cache.window > 0 ? kAnyNumber : std::uint64_t{cache.capacity};

  template <int tokens>
  struct Scratch {
    Tensor<Scalar, tokens, kHeads * kDk> query;
    Tensor<Scalar, tokens, kKvHeads * kDk> key;
    Tensor<Scalar, tokens, kKvHeads * kDv> value;
    Tensor<Scalar, tokens, kHeads * kDv> context;
    Tensor<Scalar, 1, Memory::Places::kSlots> scores;  // of one head
    [[no_unique_address]] typename Parts::template Angles<tokens> angles;
  };

  template <int tokens>
  static void step(std::uint64_t position, const auto& parameters,
                   ConstView<Tensor<Scalar, tokens, kShape.d_model>> x,
                   View<Tensor<Scalar, tokens, kShape.d_out>> y, Memory& memory, Scratch<tokens>& scratch) {
    Projection<typename Attention::QueryProjection, tokens>::forward(parameters.query, x, scratch.query);
    Projection<typename Attention::KeyProjection, tokens>::forward(parameters.key, x, scratch.key);
    Projection<typename Attention::ValueProjection, tokens>::forward(parameters.value, x, scratch.value);
    Parts::template find_angles<tokens>(position, scratch.angles);
    Parts::template rotate_and_scale<kHeads, tokens>(scratch.query, scratch.angles);
    Parts::template rotate_and_scale<kKvHeads, tokens>(scratch.key, scratch.angles);
    for (int i = 0; i < tokens; ++i) {
      const std::uint64_t at = position + std::uint64_t(i);
      memory.append(at, &scratch.key(i, 0), &scratch.value(i, 0));
      const VisibleKeys<cache> visible(at);
      for (int head = 0; head < kHeads; ++head) {
        attend_to_cache<Scalar, kDk, kDv>(visible, memory.heads_of[head / (kHeads / kKvHeads)],
                                          &scratch.query(i, head * kDk), Parts::kScoreScale,
                                          scratch.scores.data(), &scratch.context(i, head * kDv));
      }
    }
    Projection<typename Attention::OutputProjection, tokens>::forward(parameters.output, scratch.context, y);
  }
};

/// How attention to a memory runs token by token: its keys and values are projected once.
template <class Attention>
struct MemoryStream : AttentionParts<Attention> {
  using Parts = AttentionParts<Attention>;
  using Parts::kShape, Parts::kHeads, Parts::kKvHeads, Parts::kDk, Parts::kDv;
  using typename Parts::Scalar;
  template <class Linear, int tokens>
  using Projection = typename Parts::template Projection<Linear, tokens>;

  struct Memory {
    Tensor<Scalar, kShape.kv_len, kKvHeads * kDk> key;
    Tensor<Scalar, kShape.kv_len, kKvHeads * kDv> value;
  };
  template <int tokens>
  struct Scratch {
    Tensor<Scalar, tokens, kHeads * kDk> query;
    Tensor<Scalar, tokens, kHeads * kDv> context;
    Tensor<Scalar, tokens, kShape.kv_len> weights;  // of one head
    [[no_unique_address]] typename Parts::template Angles<tokens> angles;
  };

  static void remember(const auto& parameters, ConstView<typename Attention::KeyInput> tokens,
                       Memory& memory) {
    Attention::KeyProjection::forward(parameters.key, tokens, memory.key);
    Attention::ValueProjection::forward(parameters.value, tokens, memory.value);
    if constexpr (Parts::kRotates) {
      using Rotation = typename Parts::template Rotation<kShape.kv_len, kKvHeads>;
      Parts::template rotate_and_scale<kKvHeads, kShape.kv_len>(memory.key, Rotation::kTable);
    } else {
      Parts::template rotate_and_scale<kKvHeads, kShape.kv_len>(memory.key, {});
    }
  }
  template <int tokens, class Mask>
  static void step(std::uint64_t position, const auto& parameters,
                   ConstView<Tensor<Scalar, tokens, kShape.d_model>> x,
                   View<Tensor<Scalar, tokens, kShape.d_out>> y, const Memory& memory,
                   Scratch<tokens>& scratch, const Mask& mask) {
    Projection<typename Attention::QueryProjection, tokens>::forward(parameters.query, x, scratch.query);
    Parts::template find_angles<tokens>(position, scratch.angles);
    Parts::template rotate_and_scale<kHeads, tokens>(scratch.query, scratch.angles);
    const auto value = view(memory.value);
    const auto terms = terms_of<Mask>(value);
    for (int head = 0; head < kHeads; ++head) {
      const int kv_head = head / (kHeads / kKvHeads);
      attend<kHeads, kShape.seq_len>(
          view(scratch.query).template columns<kDk>(head * kDk),
          view(memory.key).template columns<kDk>(kv_head * kDk), value.template columns<kDv>(kv_head * kDv),
          view(scratch.context).template columns<kDv>(head * kDv), view(scratch.weights), Parts::kScoreScale,
          mask, head, static_cast<int>(position), AllWeights{}, terms);
    }
    Projection<typename Attention::OutputProjection, tokens>::forward(parameters.output, scratch.context, y);
  }
};

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
