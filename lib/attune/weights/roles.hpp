// Roles of weights within a layer, for storage that depends on the role.
//
// A layer made of layers declares the set of each part as a member: detail::SetOfMember<Projection,
// Role::kQueries, …>. Storage that is the same in every role, like Tensor, ignores roles. ByRole<Forms>
// chooses storage by role.
#pragma once

#include <attune/execution/own_layer.hpp>

namespace ATTUNE_NAMESPACE {

/// One role, or several: Role::kQueries | Role::kValues.
enum class Role : unsigned {
  kProjections = 1,       // of Linear, and of layers without roles
  kQueries = 2,           // W_q
  kKeys = 4,              // W_k
  kValues = 8,            // W_v
  kAttentionOutput = 16,  // W_o
  kFeedForwardIn = 32,    // to d_ff
  kFeedForwardOut = 64,   // from d_ff
  // Special cases; a request for the general role includes them.
  kRotatedKeys = kKeys | 128,    // rotated by position, or with biases that count for another reason
  kGate = kFeedForwardIn | 256,  // of a gated network: the gate

  kAttention = kQueries | kKeys | kValues | kAttentionOutput,  // all of attention
  kFeedForward = kFeedForwardIn | kFeedForwardOut,             // all of a feed-forward network
  kEverything = kProjections | kAttention | kFeedForward,      // every weight
};
/// The union of two roles.
[[nodiscard]] constexpr Role operator|(Role a, Role b) {
  return static_cast<Role>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Whether `several` includes a role.
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
// No tensor has these extents. They only ask whether storage depends on roles.
template <class Forms, class Scalar>
struct InNoRole<Forms, Scalar, 0, 0> {
  using OfMatrix = ByRole<Forms>;
  using OfVector = ByRole<Forms>;  // for sets with vectors only
};

// Gives an empty type in each member of a set its own type, so that all can share an address.
template <class Outer, auto member>
struct Place {};
template <class Leaf, auto member>
struct Placed {
  using type = Leaf;
};
template <class Scalar, int rows, int cols, class Outer, auto member>
struct Placed<detail::UntrainedIn<Scalar, rows, cols, Outer>, member> {
  using type = detail::UntrainedIn<Scalar, rows, cols, Place<Outer, member>>;
};
template <class Forms, auto member>
struct FormsOfMember {
  template <Role role>
  struct In {
    using Of = typename Forms::template In<role>;
    template <class Scalar, int rows, int cols>
    using Matrix = typename Placed<typename Of::template Matrix<Scalar, rows, cols>, member>::type;
    template <class Scalar, int rows, int cols>
    using Vector = typename Placed<typename Of::template Vector<Scalar, rows, cols>, member>::type;
  };
};

template <class Layer, auto member, template <class, int, int> class Matrix,
          template <class, int, int> class Vector, class Asked>
struct SetOfMemberLayer {
  using type = SetOf<Layer, Matrix, Vector>;
};
template <class Layer, Role role, template <class, int, int> class Matrix,
          template <class, int, int> class Vector, class Forms>
struct SetOfMemberLayer<Layer, role, Matrix, Vector, ByRole<Forms>> {
  using In = typename FormsOfMember<Forms, role>::template In<role>;
  using type = SetOf<Layer, In::template Matrix, In::template Vector>;
};
template <class Layer, int member, template <class, int, int> class Matrix,
          template <class, int, int> class Vector, class Forms>
struct SetOfMemberLayer<Layer, member, Matrix, Vector, ByRole<Forms>> {
  using InPlace = ByRole<FormsOfMember<Forms, member>>;
  using type = SetOf<Layer, InPlace::template Matrix, InPlace::template Vector>;
};

/// The set of a layer that is a member of another layer's set: with a role, or as part number `member`, with
/// its own roles.
template <class Layer, auto member, template <class, int, int> class Matrix,
          template <class, int, int> class Vector>
using SetOfMember =
    typename SetOfMemberLayer<Layer, member, Matrix, Vector, Matrix<typename Layer::Scalar, 0, 0>>::type;

}  // namespace detail

/// Storage by role: Forms::In<role> has a Matrix and a Vector. Without a role, kProjections applies.
template <class Forms>
struct ByRole {
  template <class Scalar, int rows, int cols>
  using Matrix = typename detail::InNoRole<Forms, Scalar, rows, cols>::OfMatrix;
  template <class Scalar, int rows, int cols>
  using Vector = typename detail::InNoRole<Forms, Scalar, rows, cols>::OfVector;
};

namespace detail {

template <class Forms, Role... roles>
constexpr bool updates_in() {
  return (UpdatesAnyAtOnce<typename Forms::template In<roles>> || ...);
}
template <class Forms>
inline constexpr bool kUpdatesInRole<ByRole<Forms>> =
    updates_in<Forms, Role::kProjections, Role::kQueries, Role::kKeys, Role::kRotatedKeys, Role::kValues,
               Role::kAttentionOutput, Role::kFeedForwardIn, Role::kGate, Role::kFeedForwardOut>();

// A layer's own gradients in place of those that are used at once (execution/own_layer.hpp).
template <class Forms, template <class> class PartOf>
struct CollectedForms {
  template <Role role>
  using In = Collected<typename Forms::template In<role>, PartOf, void>;
};
template <class Form, template <class> class PartOf, class Forms>
struct Collected<Form, PartOf, ByRole<Forms>> : ByRole<CollectedForms<Forms, PartOf>> {};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
