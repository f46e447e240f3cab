// The input itself: PyTorch's nn.Identity, as a factor of a Product (models/product.hpp).
//
//   y = x,   dx = dy
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {

/// y[kRows, kCols] is x[kRows, kCols]. No tape. A Product reads x in place.
template <int kRows, int kCols, class ScalarType = float>
struct Identity : detail::Unparameterized<Identity<kRows, kCols, ScalarType>>, detail::InputUnread {
  static_assert(detail::Holds<(kRows > 0 && kCols > 0)>,
                "attune::Identity: rows and features must be positive");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Identity<kRows, kCols, Other>;
  template <int tokens, CacheShape>
  using Stream = Identity<tokens, kCols, Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Identity");
  using Input = Tensor<Scalar, detail::at_least_one(kRows), detail::at_least_one(kCols)>;
  using Output = Input;
  static constexpr Abilities kAbilities = detail::kInPlaceByToken;
  using Base = detail::Unparameterized<Identity>;
  using Base::forward, Base::backward;

  /// `y` may be `x`.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    copy(x.data, y.data, context);
  }
  /// Overwrites dx[kRows, kCols], from dy. `dx` may be `dy` or `x`.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Input>, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    copy(dy.data, dx.data, context);
  }

 private:
  static void copy(const Scalar* from, Scalar* to, const auto& context) {
    context.in_any_order().template token_elements<Input::rows, Input::cols, 1>(
        [&](int first, int count) ATTUNE_INLINE_LAMBDA {
          for (int i = first; i < first + count; ++i) to[i] = from[i];
        });
  }
};

namespace detail {

template <class Layer>
inline constexpr bool kIsIdentity = false;
template <int kRows, int kCols, class Scalar>
inline constexpr bool kIsIdentity<Identity<kRows, kCols, Scalar>> = true;

/// The memory of a layer's output, unless that is its input.
template <class Layer>
struct OutputMemory {
  typename Layer::Output values;
};
template <class Layer>
  requires kIsIdentity<Layer>
struct OutputMemory<Layer> {
};
/// The layer's output, in `memory` unless it is x.
template <class Layer>
ATTUNE_INLINE auto output_of(ConstView<typename Layer::Input> x, auto& memory) {
  if constexpr (kIsIdentity<Layer>) {
    return x;
  } else {
    return ConstView<typename Layer::Output>(memory.values);
  }
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
