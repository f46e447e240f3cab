// BERT's token type embedding (Devlin et al., 2019), for inputs of one segment: adds the table's row of one
// type to every token. EmbeddingSum (embedding_sum.hpp) takes a type for each token.
//
//   yᵢ = xᵢ + W[type];      dW[type] += Σᵢ dyᵢ,  dx = dy
//
//   using Embeddings = attune::Sequential<attune::Embedding<kWords>, attune::TokenType<kTypes>,
//                                         attune::LearnedPositions<kPositions>, attune::LayerNorm<kNorm>>;
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/layers/added_rows.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `TokenType`.
struct TokenTypeShape {
  int seq_len;    // tokens
  int d_model;    // features of a token
  int types = 2;  // rows of the table
  int type = 0;   // the type of every token
};

/// y[seq_len, d_model] of x[seq_len, d_model]. No tape.
template <TokenTypeShape shape, class ScalarType = float>
struct TokenType : detail::AddedRows<TokenType<shape, ScalarType>, shape.seq_len, shape.d_model, ScalarType> {
  static_assert(detail::Holds<(shape.seq_len > 0 && shape.d_model > 0)>,
                "attune::TokenType: seq_len and d_model must be positive; set both in TokenTypeShape");
  static_assert(detail::Holds<(shape.type >= 0 && shape.type < shape.types)>,
                "attune::TokenType: type must be a row of the table, 0 to types - 1");

  using Scalar = ScalarType;
  using typename detail::AddedRows<TokenType, shape.seq_len, shape.d_model, ScalarType>::Tape;
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Input;
  template <class Other>
  using WithScalar = TokenType<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = TokenType<TokenTypeShape{tokens, shape.d_model, shape.types, shape.type}, Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("TokenType", shape.type);
  static constexpr Abilities kAbilities =  // adds token by token
      detail::with(detail::kInPlaceByToken, &Abilities::lanes, Lanes::kNone, &Abilities::additions,
                   Additions::kMany);
  struct Scratch {
    Tensor<Scalar, 1, shape.d_model> row;
  };
  using InferenceScratch = Scratch;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    /// The storage of the table: never transposed.
    using Table = TableOf<Matrix, Scalar, shape.types, shape.d_model>;
    [[no_unique_address]] typename detail::FloatForm<Table>::type weight;  // [types, d_model]
    ATTUNE_FIELDS(Weight(weight))
  };
  using Parameters = ParametersOf<Tensor>;

  /// y[seq_len, d_model] = x + the row of `type`. `y` may be `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, Scratch& scratch,
                      const Call& context = {}) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      const int tokens = context.template count<shape.seq_len>();
      look_up(parameters.weight, shape.type, scratch.row.data());
      TokenType::copy(tokens, x.data, y.data);
      for (int i = 0; i < tokens; ++i)
        kernels::add_to(shape.d_model, scratch.row.data(), y.data + i * shape.d_model);
    });
  }
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, Tape&, Scratch& scratch,
                      const Call& context = {}) {
    forward(parameters, x, y, scratch, context);
  }
  /// dx[seq_len, d_model] = dy; adds to the gradients. `dx` may be `dy`.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set&, ConstView<Input>, const Tape&, ConstView<Output> dy, Dx&& dx,
                       [[maybe_unused]] Gradients& gradients, Scratch&, const Call& context = {}) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      const int tokens = context.template count<shape.seq_len>();
      add_rows(view(gradients.weight), [&](int first, const auto& rows) ATTUNE_INLINE_LAMBDA {
        if (shape.type < first || shape.type >= first + rows.rows) return;
        Scalar* row = rows.data + (shape.type - first) * shape.d_model;
        for (int i = 0; i < tokens; ++i) kernels::add_to(shape.d_model, dy.data + i * shape.d_model, row);
      });
      TokenType::pass_on(tokens, dy, dx);
    });
  }
};

}  // namespace ATTUNE_NAMESPACE
