// A language model that uses its embedding as head (Press and Wolf, "Using the Output Embedding to Improve
// Language Models", 2017): one table E[vocabulary, d_model] embeds tokens and predicts the next one.
//
//   x_i = E_(id_i),     h = f(x),      y = h·Eᵀ
//
//   dE += dyᵀ·h,        dh = dy·E,     dE_(id_i) += dx_i
//
//   using Block = EncoderLayerOf<MultiHeadAttention<kAttention>, SwiGlu<kNetwork>, RmsNorm<kNorm>,
//                                BranchOptions{.norm = NormPlacement::kBefore}>;
//   using Llama = Tied<Embedding<kTokens>, Sequential<Repeat<5, Block>, RmsNorm<kNorm>>>;
//
// The table is one tensor with one gradient, one set of moments, and one place in a file.
#pragma once

#include <attune/core/memory.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/per_sequence.hpp>
#include <attune/models/composition.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/roles.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The layer that processes one sequence: the layer itself, or the layer inside a PerSequence.
template <class Layer>
struct OfSequence {
  using type = Layer;
};
template <class Layer>
  requires requires { typename Layer::OfSequence; }
struct OfSequence<Layer> {
  using type = typename Layer::OfSequence;
};

}  // namespace detail

/// Token ids to logits [rows, vocabulary]: an Embedding, a Body from [seq_len, d_model] to [rows, d_model],
/// and the transposed embedding. A Body of seq_len rows predicts behind each token; one that ends with a
/// Pooling of the last token predicts once. The table's gradient sums both uses. It is added, or the table
/// updated, after both.
template <class EmbeddingLayer, detail::CheckedLayer BodyLayer>
struct Tied : detail::Steps<Tied<EmbeddingLayer, BodyLayer>>,
              detail::Passes<Tied<EmbeddingLayer, BodyLayer>> {
  using Scalar = typename EmbeddingLayer::Scalar;
  template <class Other>
  using WithScalar = Tied<typename detail::WithScalarOf<EmbeddingLayer, Other>::type,
                          typename detail::WithScalarOf<BodyLayer, Other>::type>;
  using Body = BodyLayer;
  using Tokens = typename EmbeddingLayer::Output;
  /// The body's output and the head's input, [rows, d_model].
  using Hidden = typename Body::Output;
  /// Rows of the table, and columns of the logits.
  static constexpr int kVocabulary =
      decltype(detail::SetOf<EmbeddingLayer, detail::Extents, detail::Extents>::weight)::rows;
  using Input = typename EmbeddingLayer::Input;
  using Output = Tensor<Scalar, Hidden::rows, kVocabulary>;
  using Parts = LayerList<EmbeddingLayer, Body>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("tied", kFingerprintOf<EmbeddingLayer>, kFingerprintOf<Body>);
  static_assert(detail::check_next<EmbeddingLayer, Body>());
  static_assert(
      detail::output_fits_input<Body, Tied, Hidden::rows, Hidden::cols, Hidden::rows, Tokens::cols>());

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    /// The table, [vocabulary, d_model].
    [[no_unique_address]] detail::SetOfMember<EmbeddingLayer, 0, Matrix, Vector> embedding;
    [[no_unique_address]] detail::SetOfMember<Body, 1, Matrix, Vector> body;
    ATTUNE_FIELDS(Set(embedding), Set(body))
  };
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities =  // one sequence at a time uses the table
      detail::with(detail::kAbilitiesOfAll<EmbeddingLayer, Body>, &Abilities::lanes, Lanes::kBetweenParts,
                   &Abilities::additions, Additions::kByParts);

 private:
  // y = x·E with the vocabulary's rows: the head is its transpose. For one sequence, as the table.
  using Head = Linear<LinearShape{Hidden::rows, kVocabulary, Tokens::cols, false}, kernels::Real<Scalar>>;
  using Embeds = typename detail::OfSequence<EmbeddingLayer>::type;
  static constexpr int kSequences = kernels::kSequencesIn<Scalar>;
  using OfIds = detail::SequenceOfIds<std::tuple_size_v<typename Embeds::Input>, kSequences>;
  using OfTokens = detail::SequenceOf<Tokens>;
  using OfHidden = detail::SequenceOf<Hidden>;
  using OfLogits = detail::SequenceOf<Output>;
  // Memory of one sequence, if there are several.
  struct Sequence {
    [[no_unique_address]] typename OfTokens::template Storage<0> tokens;
    [[no_unique_address]] typename OfHidden::template Storage<1> hidden;
    [[no_unique_address]] typename OfLogits::template Storage<2> logits;
  };
  template <class Gradients>
  using OfBody = decltype(Gradients::body);
  template <class Gradients>
  using OfTable = decltype(Gradients::embedding);

 public:
  /// The body's tape, x if its backward reads it, and h if the table is trained.
  template <class Gradients>
  struct TapeOf {
    using OfLayers = detail::TapeOf<Body, OfBody<Gradients>>;
    [[no_unique_address]] OfLayers body;
    [[no_unique_address]] detail::MemberIf<detail::ReadsInput<Body, OfBody<Gradients>>, Tokens, 14> tokens;
    [[no_unique_address]] detail::MemberIf<detail::TrainsWeight<OfTable<Gradients>>, Hidden, 15> hidden;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires detail::DropsIn<OfLayers> {
      body.for_each_dropout(visitor);
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf {
    [[no_unique_address]] detail::ScratchOf<Body, OfBody<Gradients>> body;
    [[no_unique_address]] typename Embeds::Scratch embedding;
    Tokens tokens;  // or their gradient
    Hidden hidden;
    [[no_unique_address]] Sequence sequence;
  };
  using Scratch = ScratchOf<Parameters>;
  struct InferenceScratch {
    [[no_unique_address]] typename Body::InferenceScratch body;
    Tokens tokens;
    Hidden hidden;
    [[no_unique_address]] Sequence sequence;
  };

  /// Token by token (execution/stream.hpp), if the body supports it.
  template <int tokens, CacheShape cache>
  struct Stream {
    /// The body's stream.
    using OfBody = detail::StreamOf<Body, tokens, cache>;
    using Memory = detail::StreamMemoryOf<Body, cache>;
    static constexpr std::uint64_t kMaxTokens = detail::kMaxTokens<Body, cache>;
    struct Scratch {
      [[no_unique_address]] typename OfBody::Scratch body;
      detail::StepOutput<Body, tokens> tokens_in, hidden;
    };
    static Status step(std::uint64_t position, const auto& parameters,
                       ConstView<detail::StepInput<Tied, tokens>> ids,
                       View<detail::StepOutput<Tied, tokens>> y, Memory& memory, Scratch& scratch) {
      const Status status =
          detail::OfLength<EmbeddingLayer, tokens>::forward(parameters.embedding, ids, scratch.tokens_in);
      if (status != Status::kOk) return status;
      OfBody::step(position, parameters.body, scratch.tokens_in, scratch.hidden, memory, scratch.body);
      detail::OfLength<Head, tokens>::backward_input(parameters.embedding, scratch.hidden, y);
      return status;
    }
  };

  /// y[seq_len, vocabulary] for seq_len ids. Returns Status::kInvalidToken, with nothing written, if an id is
  /// outside [0, vocabulary). The mask goes to the body. With a mask, a token with zero dy adds nothing to
  /// gradients.
  using detail::Passes<Tied>::forward, detail::Passes<Tied>::backward;

 private:
  friend detail::Passes<Tied>;
  ATTUNE_INLINE static Status run(const auto& context, const auto& parameters, const auto& ids, const auto& y,
                                  auto& scratch, auto&... tape) {
    const View<Tokens> tokens = detail::on_tape(scratch.tokens, tokens_of(tape, scratch)...);
    const View<Hidden> hidden = detail::on_tape(scratch.hidden, hidden_of(tape, scratch)...);
    Sequence& one = scratch.sequence;
    return detail::then(
        [&]() ATTUNE_INLINE_LAMBDA {
          Status status = Status::kOk;
          for_each_sequence([&](int sequence) ATTUNE_INLINE_LAMBDA {
            if (status != Status::kOk) return;
            typename Embeds::InferenceScratch none;
            status = detail::forward_in<Embeds>(context, parameters.embedding,
                                                OfIds::take(ids, sequence, one, context),
                                                OfTokens::room(tokens, one.tokens), none);
            OfTokens::put(one.tokens, sequence, tokens, context);
          });
          return status;
        },
        [&]() ATTUNE_INLINE_LAMBDA {
          detail::forward_in<Body>(context, parameters.body, ConstView<Tokens>(tokens), hidden, tape.body...,
                                   scratch.body);
          for_each_sequence([&](int sequence) ATTUNE_INLINE_LAMBDA {
            Head::backward_input(parameters.embedding, OfHidden::take(hidden, sequence, one.hidden, context),
                                 OfLogits::room(y, one.logits), kernels::Assign{}, context.unmasked());
            OfLogits::put(one.logits, sequence, y, context);
          });
        });
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& ids,
                                         auto& tape, const auto& dy, NoGradient, auto& gradients,
                                         auto& scratch) {
    const View<Hidden> d_hidden = scratch.hidden;
    const ConstView<Hidden> hidden = hidden_of(tape, scratch);
    for_each_sequence([&](int sequence) ATTUNE_INLINE_LAMBDA {
      Head::forward(parameters.embedding, OfLogits::take(dy, sequence, scratch.sequence.logits, context),
                    OfHidden::room(d_hidden, scratch.sequence.hidden), context.unmasked());
      OfHidden::put(scratch.sequence.hidden, sequence, d_hidden, context);
    });
    const auto backward_body = [&](auto d_tokens) ATTUNE_INLINE_LAMBDA {
      detail::backward_in<Body>(context, parameters.body, ConstView<Tokens>(tokens_of(tape, scratch)),
                                tape.body, ConstView<Hidden>(d_hidden), d_tokens, gradients.body,
                                scratch.body);
    };
    if constexpr (detail::TrainsWeight<decltype(gradients.embedding)>) {
      backward_body(View<Tokens>(scratch.tokens));
      for_each_sequence([&](int sequence) ATTUNE_INLINE_LAMBDA {
        Sequence& one = scratch.sequence;
        detail::add_in_batch_order(
            context, gradients.embedding, [&](const auto& own, auto& of_table) ATTUNE_INLINE_LAMBDA {
              add_to_table(OfIds::take(ids, sequence, one, context),
                           OfHidden::take(hidden, sequence, one.hidden, context),
                           OfLogits::take(dy, sequence, one.logits, context),
                           OfTokens::take(scratch.tokens, sequence, one.tokens, context), of_table, scratch,
                           own);
            });
      });
    } else {
      backward_body(NoGradient{});
    }
  }

  ATTUNE_INLINE static void for_each_sequence(const auto& body) {
    for (int sequence = 0; sequence < kSequences; ++sequence) body(sequence);
  }
  // The gradient of one sequence: from the head, then from the embedding.
  template <AnyContext Call>
  ATTUNE_INLINE static void add_to_table(ConstView<typename Embeds::Input> ids,
                                         ConstView<typename Head::Output> hidden,
                                         ConstView<typename Head::Input> dy,
                                         ConstView<typename Embeds::Output> d_tokens, auto& gradients,
                                         auto& scratch, const Call& context) {
    const auto zero_skipping_context = context.without_mask().skipping_zeros(context.first(hidden));
    if constexpr (detail::UpdatesAtOnce<decltype(gradients.weight)>) {
      add_rows(view(gradients.weight), [&]<class Rows>(int first, const Rows& rows) ATTUNE_INLINE_LAMBDA {
        add_product(context.first(dy).transpose().template rows_at<Rows::rows>(first), context.first(hidden),
                    rows, zero_skipping_context.zeros());
        Embeds::add_to_rows(ids, d_tokens, first, rows, scratch.embedding,
                            context.template count<Tokens::rows>());
      });
    } else {
      Head::backward_parameters(dy, hidden, gradients, zero_skipping_context);
      typename Embeds::Tape none;
      detail::backward_in<Embeds>(context.unmasked(), NoParameters{}, ids, none, d_tokens, NoGradient{},
                                  gradients, scratch.embedding);
    }
  }

  // On the tape if backward reads them, otherwise in scratch, which is overwritten by then.
  static Tokens& tokens_of(auto& tape, auto& scratch) {
    return detail::existing(tape.tokens, scratch.tokens);
  }
  static Hidden& hidden_of(auto& tape, auto& scratch) {
    return detail::existing(tape.hidden, scratch.hidden);
  }
};

}  // namespace ATTUNE_NAMESPACE
