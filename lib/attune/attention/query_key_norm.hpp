// Normalization of each head's queries and keys over d_k, between projection and rotation.
#pragma once

#include <algorithm>
#include <type_traits>

#include <attune/attention/attention_shape.hpp>
#include <attune/core/initialize.hpp>
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

  /// The projected Q and K, and the statistics of their rows.
  template <template <class, int, int> class Matrix>
  struct StoredIn {
    Matrix<Scalar, QueryNorm::Input::rows, shape.d_k> query;
    Matrix<Scalar, KeyNorm::Input::rows, shape.d_k> key;
    typename QueryNorm::Tape of_query;
    typename KeyNorm::Tape of_key;
  };

  /// Visits the members of some tape (attention_memory.hpp).
  static void visit(const auto& visitor, const auto& context, auto&... kept) {
    visitor.rows(context.template parts<shape.num_heads>(), kept.query...);
    visitor.rows(context.keys().template parts<shape.num_kv_heads>(), kept.key...);
    visitor.member(context, kept.of_query...);
    visitor.member(context, kept.of_key...);
  }

  static void forward(const auto& parameters, auto& kept, const auto& context) {
    const auto& query_context = context.template parts<shape.num_heads>();
    const auto& key_context = context.keys().template parts<shape.num_kv_heads>();
    const View<typename QueryNorm::Input> query(kept.query.data());
    const View<typename KeyNorm::Input> key(kept.key.data());
    if constexpr (requires { kept.norms; }) {
      typename QueryNorm::Scratch of_query;
      typename KeyNorm::Scratch of_key;
      context.stage([&] {
        const auto copy = [](auto rows, const auto& from, auto& to) {
          std::copy_n(from.data, rows * shape.d_k, to.data());
        };
        copy(query_context.template count<QueryNorm::Input::rows>(), query, kept.norms.query);
        copy(key_context.template count<KeyNorm::Input::rows>(), key, kept.norms.key);
      });
      QueryNorm::forward(parameters.query_norm, kept.norms.query, query, kept.norms.of_query, of_query,
                         query_context);
      KeyNorm::forward(parameters.key_norm, kept.norms.key, key, kept.norms.of_key, of_key, key_context);
    } else {
      typename QueryNorm::InferenceScratch of_query;
      typename KeyNorm::InferenceScratch of_key;
      QueryNorm::forward(parameters.query_norm, query, query, of_query, query_context);
      KeyNorm::forward(parameters.key_norm, key, key, of_key, key_context);
    }
  }

  /// Overwrites dQ and dK with the gradients before normalization.
  static void backward(const auto& parameters, auto& tape, auto& gradients, const auto& context) {
    typename QueryNorm::Scratch of_query;
    typename KeyNorm::Scratch of_key;
    const View<typename QueryNorm::Input> query(tape.query.data());
    const View<typename KeyNorm::Input> key(tape.key.data());
    QueryNorm::backward(parameters.query_norm, tape.norms.query, tape.norms.of_query, query, query,
                        gradients.query_norm, of_query, context.template parts<shape.num_heads>());
    KeyNorm::backward(parameters.key_norm, tape.norms.key, tape.norms.of_key, key, key, gradients.key_norm,
                      of_key, context.keys().template parts<shape.num_kv_heads>());
  }
};

template <AttentionShape shape, class ScalarType>
  requires(shape.query_key_norm == QueryKeyNorm::kNone)
struct QueryKeyNorms<shape, ScalarType> {
  using Scalar = ScalarType;
  struct Parameters {
    ATTUNE_FIELDS()
  };
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = Parameters;
  template <template <class, int, int> class>
  struct StoredIn {};
  ATTUNE_INLINE static void visit(const auto&, const auto&, const auto&...) {}
  ATTUNE_INLINE static void forward(const auto&, const auto&, const auto&) {}
  ATTUNE_INLINE static void backward(const auto&, const auto&, const auto&, const auto&) {}
};

}  // namespace ATTUNE_NAMESPACE::detail
