// Parameters of MultiHeadAttention: projections of queries, keys, values and outputs, and the tensors of
// options.
#pragma once

#include <type_traits>

#include <attune/attention/attention_shape.hpp>
#include <attune/attention/bias_kv.hpp>
#include <attune/attention/query_key_norm.hpp>
#include <attune/attention/relative_bias.hpp>
#include <attune/attention/score_scale.hpp>
#include <attune/core/initialize.hpp>
#include <attune/layers/linear.hpp>
#include <attune/weights/roles.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The projections of MultiHeadAttention, and its set of parameters.
template <AttentionShape shape, class ScalarType>
struct AttentionParameters {
  using Scalar = ScalarType;
  static constexpr const AttentionShape& kShape = shape;
  using QueryProjection =
      Linear<LinearShape{shape.seq_len, shape.d_model, shape.num_heads* shape.d_k, shape.bias}, Scalar>;
  using KeyProjection =
      Linear<LinearShape{shape.kv_len, shape.d_key, shape.num_kv_heads* shape.d_k, shape.bias}, Scalar>;
  using ValueProjection =
      Linear<LinearShape{shape.kv_len, shape.d_value, shape.num_kv_heads* shape.d_v, shape.bias}, Scalar>;
  using OutputProjection =
      Linear<LinearShape{shape.seq_len, shape.num_heads* shape.d_v, shape.d_out, shape.output_bias}, Scalar>;
  using Norms = std::conditional_t<shape.query_key_norm != QueryKeyNorm::kNone, QueryKeyNorms<shape, Scalar>,
                                   NoOption<shape, Scalar, 0>>;
  using Appended = std::conditional_t<shape.add_bias_kv, BiasKv<shape, Scalar>, NoOption<shape, Scalar, 1>>;
  using Scale = std::conditional_t<shape.score_scale != ScoreScale::kNone, ScoreScales<shape, Scalar>,
                                   NoOption<shape, Scalar, 2>>;
  using Relative = std::conditional_t<shape.relative_bias.kind != RelativePositions::kNone,
                                      RelativeBiases<shape, Scalar>, NoOption<shape, Scalar, 3>>;

  /// W_q, b_q, …, W_o, b_o and the tensors of options, each in the given storage.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    /// The role of keys: their bias counts only where positions rotate them.
    static constexpr Role kKeyRole = shape.key_bias_counts() ? Role::kRotatedKeys : Role::kKeys;
    /// W_q [d_model, num_heads·d_k], b_q.
    [[no_unique_address]] SetOfMember<QueryProjection, Role::kQueries, Matrix, Vector> query;
    /// W_k [d_key, num_kv_heads·d_k], b_k.
    [[no_unique_address]] SetOfMember<KeyProjection, kKeyRole, Matrix, Vector> key;
    /// W_v [d_value, num_kv_heads·d_v], b_v.
    [[no_unique_address]] SetOfMember<ValueProjection, Role::kValues, Matrix, Vector> value;
    [[no_unique_address]] SetOfMember<OutputProjection, Role::kAttentionOutput, Matrix, Vector>
        output;                                                         // W_o [num_heads·d_v, d_out], b_o
    [[no_unique_address]] SetOfMember<Norms, 4, Matrix, Vector> norms;  // of queries and keys
    [[no_unique_address]] SetOfMember<Appended, 5, Matrix, Vector> appended;
    [[no_unique_address]] SetOfMember<Scale, 6, Matrix, Vector> scores;  // their trained factor
    [[no_unique_address]] SetOfMember<Relative, 7, Matrix, Vector> relative;
    ATTUNE_VISITED_FIELDS(Set(query), Set(key), Set(value), Set(output), Inline(norms), Inline(appended),
                          Inline(scores), Inline(relative))
    template <class Initializer>
    void initialize(const Initializer& initializer, Rng& rng) {
      const auto initialize = [&](auto& set, const auto& over_fans) {
        attune::initialize(
            set, first_if<std::is_same_v<Initializer, MultiheadAttentionDefault>>(over_fans, initializer),
            rng);
      };
      initialize(query, UniformOverFans{kFans<QueryProjection>});
      initialize(key, UniformOverFans{kFans<KeyProjection>});
      initialize(value, UniformOverFans{kFans<ValueProjection>});
      initialize(output, UniformInverseSqrt{});
      norms.initialize(initializer, rng);
      appended.initialize(initializer, rng);
      scores.initialize(initializer, rng);
      relative.initialize(initializer, rng);
    }
  };

 private:
  // fan_in + fan_out of W_q, W_k and W_v: as one matrix if their inputs have one width, else of each alone.
  template <class Projection>
  static constexpr int kFans = shape.d_key == shape.d_model&& shape.d_value == shape.d_model
                                   ? shape.d_model + shape.num_heads* shape.d_k +
                                         shape.num_kv_heads*(shape.d_k + shape.d_v)
                                   : Projection::Input::cols + Projection::Output::cols;
};

}  // namespace ATTUNE_NAMESPACE::detail
