// What a weight is for, where that decides what stands for it.
//
// A layer with several weights asks for each of its sets in a role, detail::SetInRole<Role::kQueries, …>.
// Forms that are the same in every role, as Tensor, know nothing of it; ByRole<Forms> are those that differ.
#pragma once

#include <attune/core/layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Roles, one or several: Role::kQueries | Role::kValues.
enum class Role : unsigned {
  kProjections = 1,  // of Linear, and of layers that name no roles
  kQueries = 2,
  kKeys = 4,
  kValues = 8,
  kAttentionOutput = 16,
  kFeedForwardIn = 32,  // to d_ff, the gate among them
  kFeedForwardOut = 64,
  kRotatedKeys = kKeys | 128,  // keys that are rotated by position

  kAttention = kQueries | kKeys | kValues | kAttentionOutput,
  kFeedForward = kFeedForwardIn | kFeedForwardOut,
  kEverything = kProjections | kAttention | kFeedForward,
};
[[nodiscard]] constexpr Role operator|(Role a, Role b) {
  return static_cast<Role>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Whether a role is one of several.
[[nodiscard]] constexpr bool includes(Role several, Role role) {
  return (static_cast<unsigned>(several) & static_cast<unsigned>(role)) != 0;
}

template <class Forms>
struct ByRole;

namespace detail {

template <class Forms, class Scalar, int rows, int cols>
struct InNoRole {
  using In = typename Forms::template In<Role::kProjections>;
  using OfMatrix = typename In::template Matrix<Scalar, rows, cols>;
  using OfVector = typename In::template Vector<Scalar, rows, cols>;
};
// No tensor has these extents: they ask whether there are roles.
template <class Forms, class Scalar>
struct InNoRole<Forms, Scalar, 0, 0> {
  using OfMatrix = ByRole<Forms>;
};

template <Role role, class Layer, template <class, int, int> class Matrix,
          template <class, int, int> class Vector, class Asked>
struct SetOfLayerInRole {
  using type = SetOf<Layer, Matrix, Vector>;
};
template <Role role, class Layer, template <class, int, int> class Matrix,
          template <class, int, int> class Vector, class Forms>
struct SetOfLayerInRole<role, Layer, Matrix, Vector, ByRole<Forms>> {
  using In = typename Forms::template In<role>;
  using type = SetOf<Layer, In::template Matrix, In::template Vector>;
};
/// A layer's set (core/layer.hpp) in a role.
template <Role role, class Layer, template <class, int, int> class Matrix,
          template <class, int, int> class Vector>
using SetInRole = typename SetOfLayerInRole<role, Layer, Matrix, Vector,
                                            Matrix<typename Layer::Scalar, 0, 0>>::type;

}  // namespace detail

/// Forms by role: Forms::In<role> has a Matrix and a Vector. In no role they are those of kProjections.
template <class Forms>
struct ByRole {
  template <class Scalar, int rows, int cols>
  using Matrix = typename detail::InNoRole<Forms, Scalar, rows, cols>::OfMatrix;
  template <class Scalar, int rows, int cols>
  using Vector = typename detail::InNoRole<Forms, Scalar, rows, cols>::OfVector;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
