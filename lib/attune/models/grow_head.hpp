// A head for classes that come later: a Linear with more outputs than the one it starts from.
//
//   using Grown = Sequential<Frozen<Front, kFront>, Linear<LinearShape{1, 32, 12}>>;
//   grow_head(kHead, parameters.layer<1>());           // kHead has 10 classes
//
// Old classes keep their outputs; new ones begin at zero. Train the new classes beside old ones, which a
// ReplayMemory replays: without them cross-entropy would unlearn the old classes. ClosedFormHead grows by
// itself, and keeps old classes by its sums.
#pragma once

#include <attune/kernels/checked.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Starts the head `to` with the first `classes` outputs of `from`, a head in any storage, with or without
/// bias. The other outputs are zero. `from` may be `to` itself.
template <class From, class To>
constexpr void grow_head(const From& from, To& to, int classes = decltype(From::weight)::cols) {
  using Weight = decltype(To::weight);
  using Scalar = typename Weight::Scalar;
  static_assert(detail::Holds<(decltype(From::weight)::rows == Weight::rows)>,
                "attune::grow_head: both heads must have the same features");
  static_assert(detail::Holds<(decltype(From::weight)::cols <= Weight::cols)>,
                "attune::grow_head: the head has fewer classes than the one it starts from");
  ATTUNE_ASSERT(classes >= 0 && classes <= decltype(From::weight)::cols,
                "grow_head: more classes than the head has");
  for (int label = 0; label < Weight::cols; ++label) {
    const bool old = label < classes;
    for (int i = 0; i < Weight::rows; ++i)
      to.weight(i, label) = old ? detail::element_of(from.weight, i, label) : Scalar(0);
    if constexpr (requires { to.bias(0, label); }) {
      to.bias(0, label) = Scalar(0);
      if constexpr (requires { from.bias(0, label); }) {
        if (old) to.bias(0, label) = detail::element_of(from.bias, 0, label);
      }
    }
  }
}

}  // namespace ATTUNE_NAMESPACE
