// Token embedding: a row of a table for each token id.
//
//   y_i = W_(id_i),      dW_k += Σ of dy_i over the i whose id is k
//
// Ids come from outside, so they are checked before any read or write. Embedding is the first layer of a
// model: the model then takes ids, and its forward returns a Status.
#pragma once

#include <array>
#include <span>

#include <attune/core/rng.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/layers/tapeless.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `Embedding`.
struct EmbeddingShape {
  int seq_len;       // tokens
  int vocabulary;    // ids are 0 … vocabulary − 1
  int d_model;       // features of a token
  int padding = -1;  // the padding id: its row has no gradient (PyTorch: padding_idx); −1: none
};

/// Token embedding: y[seq_len, d_model], a row of the table for each id. An invalid id returns kInvalidToken,
/// and nothing is written.
template <EmbeddingShape shape, class ScalarType = float>
struct Embedding : detail::Tapeless<Embedding<shape, ScalarType>> {
  static_assert(detail::Holds<(shape.seq_len > 0 && shape.vocabulary > 0 && shape.d_model > 0)>,
                "attune::Embedding: seq_len, vocabulary and d_model must be positive; set all three in "
                "EmbeddingShape");
  static_assert(detail::Holds<(shape.padding >= -1 && shape.padding < shape.vocabulary)>,
                "attune::Embedding: padding must be an id below vocabulary, or -1 for none");

  using Scalar = ScalarType;
  static constexpr std::uint32_t kFingerprint = fingerprint("Embedding", shape.padding);
  template <class Other>
  using WithScalar = Embedding<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = Embedding<detail::with(shape, &EmbeddingShape::seq_len, tokens), Scalar>;
  /// Number of ids of a token.
  static constexpr int kIdsPerToken = 1;
  /// The ids of a sequence.
  using Input = std::array<int, std::size_t{shape.seq_len}>;
  using Output = Tensor<Scalar, shape.seq_len, shape.d_model>;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] TableOf<Matrix, Scalar, shape.vocabulary, shape.d_model> weight;
    ATTUNE_VISITED_FIELDS(Weight(weight))
    /// The row of the padding id is initialized with zeros.
    template <class Initializer>
    void initialize(const Initializer& initializer, Rng& rng) {
      initializer.weight(weight, rng);
      for (int j = 0; shape.padding >= 0 && j < shape.d_model; ++j) weight(shape.padding, j) = 0;
    }
  };
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities{.mixes_tokens = false,
                                        .takes_context = true,
                                        .takes_length = true,
                                        .updates_in_backward = true,
                                        .additions = Additions::kOnce};
  using Base = detail::Tapeless<Embedding>;
  using Base::forward;
  using typename Base::Tape, typename Base::InferenceScratch;
  /// The sum of dy over the tokens of one id.
  using Scratch = Tensor<Scalar, 1, shape.d_model>;

  /// y[seq_len, d_model] of seq_len ids. An id outside [0, vocabulary) returns Status::kInvalidToken, and
  /// nothing is written. In slices, the slice that reads the ids returns the error.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static Status forward(const Set& parameters, ConstView<Input> ids, View<Output> y,
                        const Call& context = {}) {
    return context.answer([&]() ATTUNE_INLINE_LAMBDA {
      const auto tokens = context.template count<shape.seq_len>();
      if (!valid(ids, tokens)) return Status::kInvalidToken;
      write(parameters, ids, y, InferenceScratch{}, tokens);
      return Status::kOk;
    });
  }

  /// gradients += dL/dW from dy[seq_len, d_model]; nothing for ids that forward refuses. Adds once to each
  /// row. So the sum over a batch is bit-identical to the sum of its sequences' gradients.
  template <class Set = Parameters, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set&, ConstView<Input> ids, const Tape&, [[maybe_unused]] ConstView<Output> dy,
                       NoGradient, [[maybe_unused]] Gradients& gradients, [[maybe_unused]] Scratch& scratch,
                       const Call& context = {}) {
    if constexpr (detail::TrainsWeight<Gradients>) {
      context.stage([&]() ATTUNE_INLINE_LAMBDA {
        const auto tokens = context.template count<shape.seq_len>();
        if (!valid(ids, tokens)) return;
        add_rows(view(gradients.weight),
                 [&](int first, const auto& rows) { add_to_rows(ids, dy, first, rows, scratch, tokens); });
      });
    }
  }

  /// The same for some rows of the gradient, starting at row `first`. The ids must be valid.
  static void add_to_rows(ConstView<Input> ids, ConstView<Output> dy, int first, const auto& rows,
                          Scratch& scratch, auto tokens) {
    Scalar* total = scratch.data();
    for (int i = 0; i < tokens; ++i) {
      const int id = id_of(ids, i);
      ATTUNE_ASSERT(id >= 0 && id < shape.vocabulary, "Embedding: backward of an id that forward refuses");
      if (id < first || id >= first + rows.rows || id == shape.padding) continue;
      if (first_token(ids, id) < i) continue;
      scratch.set_zero();
      for (int j = i; j < tokens; ++j) {
        if (id_of(ids, j) == id) kernels::add_to(shape.d_model, dy.data + j * shape.d_model, total);
      }
      kernels::add_to(shape.d_model, total, rows.data + (id - first) * shape.d_model);
    }
  }

  /// Whether the ids of the first `tokens` tokens are rows of the table.
  static bool valid(ConstView<Input> ids, auto tokens) {
    for (int i = 0; i < tokens; ++i) {
      if (id_of(ids, i) < 0 || id_of(ids, i) >= shape.vocabulary) return false;
    }
    return true;
  }
  /// Overwrites y[tokens, d_model] with the rows of valid ids. Uses no scratch.
  ATTUNE_INLINE static void write(const auto& parameters, ConstView<Input> ids, View<Output> y, const auto&,
                                  auto tokens) {
    for (int i = 0; i < tokens; ++i) {
      look_up(parameters.weight, id_of(ids, i), y.data + i * shape.d_model);
    }
  }
  /// Adds these rows to y[tokens, d_model].
  static void add(const auto& parameters, ConstView<Input> ids, View<Output> y, Scratch& scratch,
                  auto tokens) {
    for (int i = 0; i < tokens; ++i) {
      look_up(parameters.weight, id_of(ids, i), scratch.data());
      kernels::add_to(shape.d_model, scratch.data(), y.data + i * shape.d_model);
    }
  }

 private:
  static int id_of(ConstView<Input> ids, int i) { return ids[static_cast<std::size_t>(i)]; }
  // The first token with an id that occurs.
  static int first_token(ConstView<Input> ids, int id) {
    int i = 0;
    while (id_of(ids, i) != id) ++i;
    return i;
  }
};

namespace detail {

template <EmbeddingShape shape, class Scalar>
struct Vocabulary<Embedding<shape, Scalar>> {
  static constexpr int of(int) { return shape.vocabulary; }
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
