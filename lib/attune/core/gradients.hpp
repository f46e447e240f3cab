// Norms of gradients, and clipping before an update.
#pragma once

#include <concepts>
#include <limits>

#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/kernels/ops/squares.hpp>

namespace ATTUNE_NAMESPACE {

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

/// A norm in portions of tensors, for an update in slices. It has the bits of the norm in one pass.
template <class Scalar>
struct NormInPortions {
  Scalar largest, total;
  kernels::PartialSquares<Scalar> squares;

  /// Adds elements first … first + count − 1 of a tensor.
  template <bool kRestLast>
  void add_squares(const Scalar* values, int size, int first, int count, Scalar scale) {
    squares.template add<kRestLast>(values, size, first, count, scale);
    if (first + count == size) total += squares.total;
  }
  /// body(values, size, first, count) for the portions of all tensors.
  static void for_each_portion(const auto& set, const auto& context, const auto& body) {
    constexpr int kWork = 4;  // of an element, in multiply-accumulates
    for_each_tensor(
        [&](const TensorPath&, const auto& tensor) {
          constexpr int kSize = std::remove_cvref_t<decltype(tensor)>::size;
          context.template elements<kSize, kWork>(
              [&](int first, int count) { body(tensor.data(), kSize, first, count); });
        },
        set);
  }
};

/// The factor that brings the largest magnitude to 1; 1 for subnormal magnitudes.
template <class Scalar>
Scalar scale_of_norm(Scalar largest) {
  return largest >= (std::numeric_limits<Scalar>::min)() ? 1 / largest : Scalar(1);
}
template <class Scalar>
Scalar norm_of_scaled(Scalar largest, Scalar sum_of_squares) {
  const Scalar root = kernels::square_root(sum_of_squares);
  return largest >= (std::numeric_limits<Scalar>::min)() ? largest * root : root;
}

}  // namespace detail

/// Σg² over all tensors of a set. Not finite if a gradient is not finite, or if squares overflow: in float,
/// above 1e19.
template <class Scalar, class Set>
[[nodiscard]] Scalar sum_of_squares(const Set& set) {
  Scalar total = 0;
  for_each_tensor(
      [&total](const TensorPath&, const auto& tensor) {
        total += kernels::sum_of_squares(tensor.size, tensor.data());
      },
      set);
  return total;
}

/// The Euclidean norm over all tensors of a set, √Σg². Scales by the largest magnitude, so g² neither
/// overflows nor vanishes. Not finite if a gradient is not finite.
template <class Scalar, class Set>
[[nodiscard]] Scalar gradient_norm(const Set& set) {
  Scalar largest = 0;
  for_each_tensor(
      [&largest](const TensorPath&, const auto& tensor) {
        largest = kernels::maximum(
            detail::largest_magnitude<std::remove_cvref_t<decltype(tensor)>::size>(tensor.data()), largest);
      },
      set);
  const Scalar scale = detail::scale_of_norm(largest);
  Scalar total = 0;
  for_each_tensor(
      [&total, scale](const TensorPath&, const auto& tensor) {
        total +=
            detail::sum_of_scaled_squares<std::remove_cvref_t<decltype(tensor)>::size>(tensor.data(), scale);
      },
      set);
  return detail::norm_of_scaled(largest, total);
}

// ---- Clipping: the norm of a step's gradients, and their factor. ----

/// The interface of a clipping. `norm` is not finite if a gradient is not finite; `factor` must accept such a
/// norm. Without norm_in_portions() and norm_of(), the norm of an update in slices is one slice.
template <class C>
concept Clipping = requires(const C& clipping, const NoParameters& gradients, float norm) {
  { clipping.check() } -> std::same_as<Status>;
  { clipping.template norm<float>(gradients) } -> std::same_as<float>;
  { clipping.factor(norm) } -> std::same_as<float>;
};

/// No bound on the gradient. Computes the norm in one pass: in float, norms below 1e-19 lose bits, and norms
/// below 1e-22 are 0. Gradients above 1e19 are refused.
struct NoClipping {
  static constexpr Status check() { return Status::kOk; }
  /// √Σg² of all gradients, in one pass.
  template <class Scalar, class Set>
  [[nodiscard]] static Scalar norm(const Set& gradients) {
    return kernels::square_root(sum_of_squares<Scalar>(gradients));
  }
  /// The same in the portions of a context.
  template <class Scalar>
  static void norm_in_portions(const auto& gradients, detail::NormInPortions<Scalar>& norm,
                               const auto& context) {
    norm.for_each_portion(gradients, context, [&](const Scalar* values, int size, int first, int count) {
      norm.template add_squares<true>(values, size, first, count, 1);
    });
  }
  /// The norm behind the last portion.
  template <class Scalar>
  [[nodiscard]] static Scalar norm_of(const detail::NormInPortions<Scalar>& norm) {
    return kernels::square_root(norm.total);
  }
  /// The factor of every gradient: 1.
  template <class Scalar>
  [[nodiscard]] static constexpr Scalar factor(Scalar) {
    return 1;
  }
};

/// Clipping by the norm of all gradients (Pascanu et al., 2013): scales longer gradients to `max_norm`. As in
/// torch.nn.utils.clip_grad_norm_, the divisor is norm + 1e-6.
struct GradientClipping {
  float max_norm;  // > 0

  constexpr Status check() const { return max_norm > 0 ? Status::kOk : Status::kInvalidMaxNorm; }
  /// √Σg² of all gradients, without overflow.
  template <class Scalar, class Set>
  [[nodiscard]] static Scalar norm(const Set& gradients) {
    return gradient_norm<Scalar>(gradients);
  }
  /// The same in the portions of a context.
  template <class Scalar>
  static void norm_in_portions(const auto& gradients, detail::NormInPortions<Scalar>& norm,
                               const auto& context) {
    norm.for_each_portion(gradients, context, [&](const Scalar* values, int, int first, int count) {
      for (int i = first; i < first + count; ++i) {
        norm.largest = kernels::maximum(kernels::magnitude(values[i]), norm.largest);
      }
    });
    norm.for_each_portion(gradients, context, [&](const Scalar* values, int size, int first, int count) {
      norm.template add_squares<false>(values, size, first, count, detail::scale_of_norm(norm.largest));
    });
  }
  /// The norm behind the last portion.
  template <class Scalar>
  [[nodiscard]] static Scalar norm_of(const detail::NormInPortions<Scalar>& norm) {
    return detail::norm_of_scaled(norm.largest, norm.total);
  }
  /// The factor of every gradient, at most 1.
  template <class Scalar>
  [[nodiscard]] constexpr Scalar factor(Scalar norm) const {
    const Scalar factor = static_cast<Scalar>(max_norm) / (norm + Scalar(1e-6));
    return factor < 1 ? factor : Scalar(1);
  }
};

namespace detail {

/// Other types, such as masks, are a compile error.
template <class C>
constexpr bool check_clipping() {
  static_assert(Clipping<C>,
                "attune::Trainer: the fourth argument is not a clipping rule; call step(inputs, targets, "
                "options, clipping, mask), with NoClipping{} for none");
  return Clipping<C>;
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
