// Skips blocks of keys that a mask hides from all queries of a block. The skipped terms are zero, so the bits
// stay the same.
#pragma once

#include <type_traits>

#include <attune/attention/mask.hpp>
#include <attune/core/tensor.hpp>
#include <attune/execution/slices.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/gemm.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/kernels/ops/softmax.hpp>

namespace ATTUNE_NAMESPACE::detail {

// Whether a mask tells the end of visible keys, and there are enough keys to skip some.
template <class Mask, int kKeys>
concept LeavesOut = SaysEnd<Mask, kKeys> &&(kKeys > kernels::kKeyBlock);
// The end of visible keys: these queries see none from here on. NoEnd if unknown.
template <int kKeys, class Mask>
ATTUNE_INLINE kernels::NoEnd end_of_keys(const Mask&, int, int) {
  return {};
}
template <int kKeys, class Mask>
requires LeavesOut<Mask, kKeys> ATTUNE_INLINE int end_of_keys(const Mask& mask, int first_query,
                                                              int queries) {
  return kv_end<kKeys>(mask, first_query, queries);
}
/// body<count>(key) for kCount keys, starting at `first`: all at once without an end. With an end, in blocks:
/// body for blocks before the end, left_out<count>(key) for the others.
template <int kCount, class Body, class LeftOut>
ATTUNE_INLINE void for_keys(int first, kernels::NoEnd, const Body& body, const LeftOut&) {
  body.template operator()<kCount>(first);
}
template <int kCount, class Body, class LeftOut>
ATTUNE_INLINE void for_keys(int first, int end, const Body& body, const LeftOut& left_out) {
  in_blocks<kCount, kernels::kKeyBlock>([&]<int count>(int at) ATTUNE_INLINE_LAMBDA {
    if (first + at < end) {
      body.template operator()<count>(first + at);
    } else {
      left_out.template operator()<count>(first + at);
    }
  });
}

template <class Rows>
void set_zero(const Rows& rows) {
  for (int i = 0; i < Rows::rows; ++i) {
    for (int j = 0; j < Rows::cols; ++j) rows(i, j) = typename Rows::Scalar(0);
  }
}

// The terms from the first to the last block with counts(first, count).
template <int kTerms, class Counts>
ATTUNE_INLINE RowRange counted_terms(const Counts& counts) {
  int first = kTerms, end = 0;
  in_blocks<kTerms, kernels::kKeyBlock>([&]<int count>(int at) ATTUNE_INLINE_LAMBDA {
    if (!counts(at, count)) return;
    first = smaller(first, at);
    end = at + count;
  });
  return {first, end - first};
}

// The product below in integers, as one sum: a part of the terms would have scales of its own.
template <class A, class B, class C, class Terms, class Counts, class Sum>
ATTUNE_INLINE void integer_product_of_some(const A& a, const B& b, const C& c, const Terms& terms,
                                           const Counts& counts, Sum sum) {
  const RowRange some = counted_terms<A::cols>(counts);
  if (some.count > 0) {
    terms.gemm(a.transpose().template rows_at<A::cols>(some).transpose(), b.template rows_at<A::cols>(some),
               c, sum);
  } else if (std::is_same_v<Sum, kernels::Assign>) {
    set_zero(c);
  }
}

// The product below in floats, block by block: the next block continues the sums.
template <class A, class B, class C, class Terms, class Counts, class Sum>
ATTUNE_INLINE void float_product_of_some(const A& a, const B& b, const C& c, const Terms& terms,
                                         const Counts& counts, Sum) {
  constexpr bool kContinues = std::is_same_v<Sum, kernels::NextBlock>;
  static_assert(!kContinues || A::cols <= kernels::kDepthBlock);
  in_blocks<A::cols, kernels::kDepthBlock>([&]<int kTerms>(int from) ATTUNE_INLINE_LAMBDA {
    const auto block = [&](const auto& to, bool begun = false) ATTUNE_INLINE_LAMBDA {
      in_blocks<kTerms, kernels::kKeyBlock>([&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
        if (!counts(from + first, count)) return;
        const auto columns = a.template columns<count>(from + first);
        const auto rows = b.template rows_at<count>(from + first);
        if (begun) {
          terms.gemm(columns, rows, to, kernels::Continue{});
        } else {
          terms.gemm(columns, rows, to);
        }
        begun = true;
      });
      return begun;
    };
    if (kContinues || (std::is_same_v<Sum, kernels::Assign> && from == 0)) {
      if (!block(c, kContinues)) set_zero(c);
      return;
    }
    if constexpr (A::cols > kernels::kDepthBlock || std::is_same_v<Sum, kernels::Accumulate>) {
      Tensor<typename C::Scalar, C::rows, C::cols> sums;
      if (!block(view(sums))) return;
      for (int i = 0; i < C::rows; ++i) {
        kernels::add_to(C::cols, sums.data() + i * C::cols, c.data + i * C::row_stride);
      }
    }
  });
}

// C = A·B, C += A·B with Accumulate, or a continued sum with NextBlock. Skips blocks of terms if
// counts(first, count) is false: their factors in A are zero. In fused arithmetic, a zero may change its sign
// if all other terms vanish.
template <class A, class B, class C, class Terms, class Counts, class Sum>
ATTUNE_INLINE void product_of_some(const A& a, const B& b, const C& c, const Terms& terms,
                                   const Counts& counts, Sum sum) {
  if constexpr (Terms::Products::template in_integers<A, B, C>()) {
    return integer_product_of_some(a, b, c, terms, counts, sum);
  } else {
    float_product_of_some(a, b, c, terms, counts, sum);
  }
}

}  // namespace ATTUNE_NAMESPACE::detail
