// The base of layers that add a row of a table to every token: positions.hpp, token_type.hpp.
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {
namespace detail {

/// x[seq_len, d_model] to y[seq_len, d_model] token by token, and dx = dy. No tape.
template <class Self, int seq_len, int d_model, class ScalarType>
struct AddedRows : Tapeless<Self>, InputUnread {
  using Scalar = ScalarType;
  using Input = Tensor<Scalar, at_least_one(seq_len), at_least_one(d_model)>;
  using Output = Input;
  static constexpr Abilities kAbilities = kInPlaceByToken;

 protected:
  /// y = x of the first `tokens`. `y` may be `x`.
  static void copy(auto tokens, const Scalar* x, Scalar* y) {
    if (x == y) return;
    for (int i = 0; i < tokens * d_model; ++i) y[i] = x[i];
  }
  /// dx = dy of the first `tokens`, unless NoGradient. `dx` may be `dy`.
  static void pass_on(auto tokens, ConstView<Output> dy, auto&& dx) {
    if_wanted<Input>(dx, [&](View<Input> to) { copy(tokens, dy.data, to.data); });
  }
};

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE
