// Epilogues of products, applied to finished sums. `c` points at the element, `col` is its column.
#pragma once

#include <attune/kernels/portable/gemm_shape.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// C = A·B
struct Assign {
  template <class P, class Scalar>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar*, int) const {
    return sum;
  }
};

/// C += A·B
struct Accumulate {
  template <class P, class Scalar>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar* c, int) const {
    return add(load<P>(c), sum);
  }
};

/// Continues C's sums, for at most kDepthBlock terms. Sums of floats have the same bits in any such parts.
struct Continue : Assign {};
/// Adds the next block of terms to C's sums. Sums of floats continue; sums of integers quantize each block by
/// itself, so the algorithm chooses its size, the same on every target.
struct NextBlock {};

/// C = alpha · A·B
template <class Scalar>
struct Scale {
  Scalar alpha;
  template <class P>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar*, int) const {
    return multiply(sum, broadcast<P>(alpha));
  }
};

/// C = A·B + 1·bias, bias one row of N
template <class Scalar>
struct AddBias {
  const Scalar* bias;
  template <class P>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar*, int col) const {
    return add(sum, load<P>(bias + col));
  }
};

/// C = epilogue(A·B·diag(scale)); with lanes, scales are numbers.
template <class Scalar, class Epilogue>
struct ScaleColumns {
  const Scalar* scale;
  Epilogue epilogue;
  template <class P>
  ATTUNE_INLINE P operator()(const P& sum, const auto* c, int col) const {
    if constexpr (std::is_same_v<ScalarOf<P>, Scalar>) {
      return epilogue(multiply(sum, load<P>(scale + col)), c, col);
    } else {
      return epilogue(multiply(sum, broadcast<P>(scale[col])), c, col);
    }
  }
};

namespace detail {

// Sums of several blocks: the epilogue of the first block, and the one that adds the others to it.
template <class Epilogue>
  requires(std::is_same_v<Epilogue, Assign> || std::is_same_v<Epilogue, Accumulate>)
ATTUNE_INLINE Accumulate adding(const Epilogue&) { return {}; }
template <class Scalar, class Epilogue>
ATTUNE_INLINE auto adding(const ScaleColumns<Scalar, Epilogue>& first)
    -> ScaleColumns<Scalar, decltype(adding(first.epilogue))> {
  return {first.scale, {}};
}
template <class Epilogue>
concept AddsUp = requires(const Epilogue& first) {
  adding(first);
};

// The start of sums: zero, or C's with Continue.
template <class P, class Scalar>
ATTUNE_INLINE P first_sum(const auto&, const Scalar*, float zero) {
  return broadcast<P>(Scalar(zero));
}
template <class P, class Scalar>
ATTUNE_INLINE P first_sum(const Continue&, const Scalar* c, float) {
  return load<P>(c);
}

// Whether a sum may be computed twice: the epilogue does not read C.
template <class Epilogue>
inline constexpr bool kMayRepeat = std::is_same_v<Epilogue, Assign> || kIsSpecialization<Epilogue, Scale> ||
                                   kIsSpecialization<Epilogue, AddBias>;

// Whether the sums of a weight gradient have so few terms that they begin with the first one instead of +0. A
// difference shows only where C is −0 and all terms are.
inline constexpr int kFewTerms = 3;
template <class Epilogue>
constexpr bool begins_with_a_term(const GemmShape& shape) {
  return std::is_same_v<Epilogue, Accumulate> && shape.depth <= kFewTerms && shape.a_row == 1 &&
         shape.b_col == 1;
}

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE::kernels
