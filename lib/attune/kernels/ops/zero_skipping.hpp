// Arithmetic in which a factor of zero makes a product zero, even next to NaN or infinity. Masked values, and
// values without a gradient, then have no influence, whatever they are.
//
// If all values are finite, this is the arithmetic of the other kernels, with the same bits, at the cost of a
// check. Otherwise terms with a factor of zero are left out of the same sums.
#pragma once

#include <concepts>

#include <attune/kernels/ops/finite.hpp>
#include <attune/kernels/ops/partial_gemm.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// `value`; zero for a zero `factor`, and NaN for a NaN `factor`.
template <class P>
ATTUNE_INLINE P unless_zero(const P& factor, const P& value) {
  return select_less(broadcast<P>(ScalarOf<P>(0)), magnitude(factor), value, factor);
}
/// The same with kZeroStays; `value` without.
template <bool kZeroStays, class P>
ATTUNE_INLINE P unless_zero([[maybe_unused]] const P& factor, const P& value) {
  if constexpr (kZeroStays) return unless_zero(factor, value);
  return value;
}
/// The same for `size` scalars, in place.
template <class Scalar>
[[gnu::noinline]] void clear_where_zero(int size, const Scalar* factors, Scalar* values) {
  for_each_packet<Scalar>(size, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
    store(values + i, unless_zero(load<P>(factors + i), load<P>(values + i)));
  });
}

/// Whether a row has only zeros. Lanes (simd/lanes.hpp) are not checked: false.
template <class Scalar>
constexpr bool is_zero_row(int, const Scalar*) {
  return false;
}
template <std::floating_point Scalar>
[[gnu::noinline]] bool is_zero_row(int size, const Scalar* row) {
  int j = 0;
  while (j < size && row[j] == 0) ++j;
  return j == size;
}
/// Clears the rows of `to` that are zero in `from`.
template <class From, class To>
void clear_zero_rows(const From& from, const To& to) {
  static_assert(From::rows == To::rows && From::col_stride == 1);
  for (int i = 0; i < From::rows; ++i) {
    if (!is_zero_row(From::cols, from.data + i * From::row_stride)) continue;
    for (int j = 0; j < To::cols; ++j) to(i, j) = typename To::Scalar(0);
  }
}

namespace detail {

// The start of a product's sums.
enum class SumsFrom { kZero, kZeroThenAdded, kResult };
template <class Epilogue>
inline constexpr SumsFrom kSumsFrom =
    std::is_same_v<Epilogue, Accumulate>                                        ? SumsFrom::kZeroThenAdded
    : std::is_same_v<Epilogue, Continue> || std::is_same_v<Epilogue, NextBlock> ? SumsFrom::kResult
                                                                                : SumsFrom::kZero;

// The sums of gemm(), in its order, without terms with a factor of zero. Not for speed.
template <class Scalar, class ElementOfB>
[[gnu::noinline]] void zero_skipping_gemm(const Scalar* a, const ElementOfB* b, Scalar* c,
                                          const GemmShape& extents, SumsFrom from) {
  for (int i = 0; i < extents.rows; ++i) {
    for (int j = 0; j < extents.cols; ++j) {
      Scalar& total = c[i * extents.c_row + j];
      for (int first = 0; first < extents.depth; first += kDepthBlock) {
        Scalar sum = from == SumsFrom::kResult ? total : Scalar(0);
        for (int k = first; k < extents.depth && k < first + kDepthBlock; ++k) {
          const Scalar x = a[i * extents.a_row + k * extents.a_col];
          const Scalar y = b[k * extents.b_row + j * extents.b_col];
          if (x != 0 && y != 0) sum = multiply_add(x, y, sum);
        }
        total = first > 0 || from == SumsFrom::kZeroThenAdded ? add(total, sum) : sum;
      }
    }
  }
}

}  // namespace detail

/// Products in the arithmetic of their scalars. Int8Products (int8_products.hpp) is the alternative.
struct FloatProducts {
  /// Whether A·B is computed in integers.
  template <class A, class B, class C>
  static consteval bool in_integers() {
    return false;
  }
  template <class A, class B, class C, class Epilogue = Assign>
  ATTUNE_INLINE static void gemm(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
    kernels::gemm(a, b, c, epilogue);
  }
  ATTUNE_INLINE static void gemm(const auto& a, const auto& b, const auto& c, NextBlock) {
    kernels::gemm(a, b, c, Continue{});
  }
};

/// Sums with all terms. in_floats() has the same terms in the arithmetic of their scalars.
template <class ProductsType>
struct DenseTermsOf {
  using Products = ProductsType;
  static constexpr bool kSkips = false;
  static constexpr bool needed() { return false; }
  [[nodiscard]] static constexpr DenseTermsOf<FloatProducts> in_floats() { return {}; }
  template <class A, class B, class C, class Epilogue = Assign>
  ATTUNE_INLINE static void gemm(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
    Products::gemm(a, b, c, epilogue);
  }
};
using DenseTerms = DenseTermsOf<FloatProducts>;

/// Sums without terms with a factor of zero, if `operands` are not all finite.
template <class ProductsType>
class ZeroSkippingOf {
 public:
  using Products = ProductsType;
  static constexpr bool kSkips = true;
  template <class... Operands>
  ATTUNE_INLINE explicit ZeroSkippingOf(const Operands&... operands) : needed_(!(finite(operands) && ...)) {}
  /// The same with other products.
  template <class Other>
  explicit ZeroSkippingOf(const ZeroSkippingOf<Other>& other) : needed_(other.needed()) {}

  [[nodiscard]] bool needed() const { return needed_; }
  [[nodiscard]] auto in_floats() const { return ZeroSkippingOf<FloatProducts>(*this); }

  /// C = A·B, += with Accumulate, or continued with Continue or NextBlock. Products of lanes use all terms.
  template <class A, class B, class C, class Epilogue = Assign>
  ATTUNE_INLINE void gemm(const A& a, const B& b, const C& c, Epilogue epilogue = {}) const {
    if constexpr (std::is_floating_point_v<typename C::Scalar>) {
      if constexpr (requires { Products::gemm_without_zeros(a, b, c, epilogue); }) {
        if (needed_) return Products::gemm_without_zeros(a, b, c, epilogue);
      } else if (needed_) {
        const detail::UsedExtents used = detail::used_extents(a, b, c);
        const GemmShape extents =
            kGemmShape<A, B, C>.with_extents(used.rows, used.cols).with_depth(used.depth);
        return detail::zero_skipping_gemm<typename C::Scalar>(a.data, b.data, c.data, extents,
                                                              detail::kSumsFrom<Epilogue>);
      }
    }
    Products::gemm(a, b, c, epilogue);
  }

 private:
  bool needed_;
};
using ZeroSkipping = ZeroSkippingOf<FloatProducts>;

/// The same, with a check of each product's own operands, for operands that change in between.
template <class ProductsType>
struct OwnZeroSkippingOf {
  using Products = ProductsType;
  static constexpr bool kSkips = true;
  static constexpr bool needed() { return true; }
  [[nodiscard]] static constexpr OwnZeroSkippingOf<FloatProducts> in_floats() { return {}; }
  template <class A, class B, class C, class Epilogue = Assign>
  ATTUNE_INLINE static void gemm(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
    ZeroSkippingOf<Products>(contiguous(a), contiguous(b)).gemm(a, b, c, epilogue);
  }

 private:
  template <class View>
  static auto contiguous(const View& view) {
    return view.transpose();
  }
  template <class View>
    requires(View::col_stride == 1)
  static auto contiguous(const View& view) { return view; }
};
using OwnZeroSkipping = OwnZeroSkippingOf<FloatProducts>;

}  // namespace ATTUNE_NAMESPACE::kernels
