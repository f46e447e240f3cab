// Normalization of each head's queries and keys over d_k, between projection and rotation.
#pragma once

#include <type_traits>

#include <attune/attention/attention_shape.hpp>
#include <attune/core/initialize.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/weights/roles.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Parameters and tape of the normalization, within MultiHeadAttention's. `kept` has Q[seq_len,
/// num_heads·d_k] as `query`, and K, whose first kv_len rows are normalized, as `key`. A tape also has
/// StoredIn<Tensor>, as `norms`.
template <AttentionShape shape, class ScalarType>
struct QueryKeyNorms {
  using Scalar = ScalarType;
  // A row of unit length is one of unit mean square, over √d_k: AttentionHeads has both factors in its scale.
  static constexpr bool kUnit = shape.query_key_norm == QueryKeyNorm::kUnitLength;
  static constexpr double kEpsilon = kUnit ? shape.query_key_epsilon / shape.d_k : shape.query_key_epsilon;
  template <int rows>
  using Norm = std::conditional_t<shape.query_key_norm == QueryKeyNorm::kLayerNorm,
                                  LayerNorm<NormShape{rows, shape.d_k, kEpsilon, true, shape.bias}, Scalar>,
                                  RmsNorm<NormShape{rows, shape.d_k, kEpsilon, !kUnit, false}, Scalar>>;
  using QueryNorm = Norm<shape.seq_len * shape.num_heads>;
  using KeyNorm = Norm<shape.kv_len * shape.num_kv_heads>;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] SetOfMember<QueryNorm, 0, Matrix, Vector> query_norm;
    [[no_unique_address]] SetOfMember<KeyNorm, 1, Matrix, Vector> key_norm;
    ATTUNE_FIELDS(Set(query_norm), Set(key_norm))
  };
  using Parameters = ParametersOf<Tensor>;

  /// A projected operand, and the statistics of its rows.
  template <class Norm, template <class, int, int> class Matrix>
  struct StoredOperand {
    Matrix<Scalar, Norm::Input::rows, shape.d_k> rows;
    typename Norm::Tape statistics;
  };
  template <template <class, int, int> class Matrix>
  struct StoredIn {
    StoredOperand<QueryNorm, Matrix> query;
    StoredOperand<KeyNorm, Matrix> key;

    /// Visits the members of some tapes (attention_memory.hpp).
    static void visit(const auto& visitor, const auto& context, auto&... kept) {
      visitor.rows(context.template parts<shape.num_heads>(), kept.query.rows...);
      visitor.rows(context.keys().template parts<shape.num_kv_heads>(), kept.key.rows...);
      visitor.member(context, kept.query.statistics...);
      visitor.member(context, kept.key.statistics...);
    }
  };

  static void forward_queries(const auto& parameters, auto& kept, const auto& context) {
    with_stored(kept, [&](auto&... stored) {
      forward<QueryNorm>(parameters.query_norm, kept.query.data(), context.template parts<shape.num_heads>(),
                         stored.query...);
    });
  }
  static void forward_keys(const auto& parameters, auto& kept, const auto& context) {
    with_stored(kept, [&](auto&... stored) {
      forward<KeyNorm>(parameters.key_norm, kept.key.data(),
                       context.keys().template parts<shape.num_kv_heads>(), stored.key...);
    });
  }

  /// Overwrites dQ and dK with the gradients before normalization.
  static void backward(const auto& parameters, auto& tape, auto& gradients, const auto& context) {
    typename QueryNorm::Scratch of_query;
    typename KeyNorm::Scratch of_key;
    const View<typename QueryNorm::Input> query(tape.query.data());
    const View<typename KeyNorm::Input> key(tape.key.data());
    QueryNorm::backward(parameters.query_norm, tape.norms.query.rows, tape.norms.query.statistics, query,
                        query, gradients.query_norm, of_query, context.template parts<shape.num_heads>());
    KeyNorm::backward(parameters.key_norm, tape.norms.key.rows, tape.norms.key.statistics, key, key,
                      gradients.key_norm, of_key, context.keys().template parts<shape.num_kv_heads>());
  }

 private:
  // body(kept.norms) with a tape, else body().
  static void with_stored(auto& kept, const auto& body) {
    if constexpr (requires { kept.norms; }) {
      body(kept.norms);
    } else {
      body();
    }
  }
  // An operand, in place. Inference.
  template <class Norm>
  static void forward(const auto& parameters, Scalar* operand, const auto& context) {
    typename Norm::InferenceScratch none;
    const View<typename Norm::Input> rows(operand);
    Norm::forward(parameters, rows, rows, none, context);
  }
  // Training.
  template <class Norm>
  static void forward(const auto& parameters, Scalar* operand, const auto& context, auto& stored) {
    typename Norm::Scratch none;
    context.stage([&] {
      copy_n(operand, context.template count<Norm::Input::rows>() * shape.d_k, stored.rows.data());
    });
    Norm::forward(parameters, stored.rows, View<typename Norm::Input>(operand), stored.statistics, none,
                  context);
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
