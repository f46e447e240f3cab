// Gradients: how backward adds to them, and what is asked of them before an update: are they finite, how long
// are they, must they be clipped.
//
// A layer's backward takes a set of the shape of its Parameters and adds to the view of each tensor in it,
// through add_product() and add_column_sums(). The set may be another than tensors: what updates a parameter
// at once (update_in_backward.hpp) has those two functions, too, and nothing is added to what is Untrained.
#pragma once

#include <attune/kernels/product.hpp>
#include <attune/kernels/rows.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// gradient[rows, cols] += a·b.
template <class A, class B, class Scalar, int kRows, int kCols, int kRowStride>
ATTUNE_INLINE void add_product(const A& a, const B& b,
                               const MatrixView<Scalar, kRows, kCols, kRowStride>& gradient) {
  kernels::product(a, b, gradient, kernels::Accumulate{});
}

/// gradient[1, cols] += Σ_rows dy[rows, cols].
template <class Gradient, class Scalar>
ATTUNE_INLINE void add_column_sums(const Gradient& dy,
                                   const MatrixView<Scalar, 1, Gradient::cols>& gradient) {
  kernels::add_column_sums<Gradient::rows, Gradient::cols, Gradient::row_stride>(dy.data, gradient.data);
}

/// Nothing: a part of the parameters that is not trained.
template <class A, class B, class Scalar, int rows, int cols>
ATTUNE_INLINE void add_product(const A&, const B&, Untrained<Scalar, rows, cols>) {}
template <class Gradient, class Scalar, int cols>
ATTUNE_INLINE void add_column_sums(const Gradient&, Untrained<Scalar, 1, cols>) {}

namespace detail {

/// Whether what stands for a tensor's gradient changes the parameter at once: backward then uses that first.
template <class Leaf>
inline constexpr bool kUpdatesAtOnce = requires {
  std::remove_cvref_t<Leaf>::kUpdatesAtOnce;
};

/// Whether a layer's backward goes through each parameter once, and reads none whose gradient it has given
/// away: then they may change at once.
template <class Layer>
inline constexpr bool kUpdatesInBackward = std::is_empty_v<typename Layer::Parameters> || requires {
  requires Layer::kUpdatesInBackward;
};

template <class Scalar>
[[gnu::noinline]] bool all_finite(int size, const Scalar* values) {
  // 0·x is 0 for a finite x and NaN otherwise, and a NaN stays in the sum.
  Scalar total = 0;
  kernels::for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    Scalar lanes[kernels::kLanes<P>];
    kernels::store(lanes, kernels::multiply(kernels::load<P>(values + i), kernels::broadcast<P>(Scalar(0))));
    for (const Scalar lane : lanes) total += lane;
  });
  return total == 0;
}

template <int kSize, class Scalar>
[[gnu::noinline]] Scalar largest_magnitude(const Scalar* values) {
  return kernels::largest<Scalar, kSize>(
      [&]<class P>(int i) ATTUNE_INLINE_LAMBDA { return kernels::magnitude(kernels::load<P>(values + i)); });
}

template <int kSize, class Scalar>
[[gnu::noinline]] Scalar sum_of_scaled_squares(const Scalar* values, Scalar scale) {
  return kernels::sum<Scalar, kSize>([&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    const P scaled = kernels::multiply(kernels::load<P>(values + i), kernels::broadcast<P>(scale));
    return kernels::multiply(scaled, scaled);
  });
}

}  // namespace detail

/// Whether no scalar of a set is infinite or NaN.
template <class Set>
[[nodiscard]] bool all_finite(const Set& set) {
  bool finite = true;
  for_each_tensor(
      [&finite](const TensorPath&, const auto& tensor) {
        finite = finite && detail::all_finite(tensor.size, tensor.data());
      },
      set);
  return finite;
}

/// The Euclidean norm over all tensors of a finite set, √Σg². Scaled by the largest magnitude, so g² does not
/// overflow.
template <class Scalar, class Set>
[[nodiscard]] Scalar gradient_norm(const Set& set) {
  Scalar largest = 0;
  for_each_tensor(
      [&largest](const TensorPath&, const auto& tensor) {
        largest = kernels::maximum(
            detail::largest_magnitude<std::remove_cvref_t<decltype(tensor)>::size>(tensor.data()), largest);
      },
      set);
  if (!(largest >= std::numeric_limits<Scalar>::min())) return largest;
  const Scalar scale = 1 / largest;
  Scalar total = 0;
  for_each_tensor(
      [&total, scale](const TensorPath&, const auto& tensor) {
        total +=
            detail::sum_of_scaled_squares<std::remove_cvref_t<decltype(tensor)>::size>(tensor.data(), scale);
      },
      set);
  return largest * kernels::square_root(total);
}

/// No bound on the gradient, and no code for one.
struct NoClipping {
  [[nodiscard]] static constexpr Status check() { return Status::kOk; }
  template <class Scalar, class Set>
  [[nodiscard]] static constexpr Scalar factor(const Set&) {
    return 1;
  }
};

/// Clipping by the norm over all gradients (Pascanu et al., 2013): longer ones are scaled to `max_norm`. As
/// torch.nn.utils.clip_grad_norm_, the divisor is norm + 1e-6.
struct GradientClipping {
  float max_norm;

  [[nodiscard]] constexpr Status check() const {
    return max_norm > 0 ? Status::kOk : Status::kInvalidMaxNorm;
  }

  /// What to multiply every gradient by: 1, or less.
  template <class Scalar, class Set>
  [[nodiscard]] Scalar factor(const Set& gradients) const {
    const Scalar factor = static_cast<Scalar>(max_norm) / (gradient_norm<Scalar>(gradients) + Scalar(1e-6));
    return factor < 1 ? factor : Scalar(1);
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
