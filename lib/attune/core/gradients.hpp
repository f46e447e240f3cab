// What is asked of gradients before an update: are they finite, how long are they, must they be clipped.
#pragma once

#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/kernels/finite.hpp>
#include <attune/kernels/reduce.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

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
        finite = finite && kernels::finite(tensor.size, tensor.data());
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
