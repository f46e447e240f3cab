// A constant weight plus a trained product of low rank (Hu et al., "LoRA: Low-Rank Adaptation of Large
// Language Models", 2021).
//
//   y = x·W + (s·(x·A))·B,      s = α/r,   W[in, out] constant, A[in, r] and B[r, out] trained
//
//   u = s·(dy·Bᵀ),   t = s·(x·A),      dx = dy·Wᵀ + u·Aᵀ,   dA += xᵀ·u,   dB += tᵀ·dy
//
// Products with A and B keep the arithmetic of their scalars, even if other products are integers. Sums run
// in the order written: first the product with W by its storage, with its epilogue; then the other product is
// added to y or dx. A row of x or dy gives the same bits in any group of rows. Backward recomputes t. The
// caller owns the memory for t and u, which take turns in it. If A and B are updated at once, B is first: u
// of the old B is computed before its update. A rank above 8 then takes twice the memory.
#pragma once

#include <attune/execution/own_layer.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/roles.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// The rank of LoRA, and the parameters that it trains.
struct LowRank {
  int rank;                                     // r
  Role roles = Role::kQueries | Role::kValues;  // the weights that have A and B
  double alpha = rank;                          // α
  bool biases_and_norms = false;                // whether biases and norms are trained, too
};

/// A and B of a weight [kRows, kCols], in the given storage.
template <LowRank low_rank, class ScalarType, int kRows, int kCols,
          template <class, int, int> class Matrix = Tensor>
struct LowRankFactors {
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  /// Rank, roles and α.
  static constexpr const LowRank& kLowRank = low_rank;
  /// The rank.
  static constexpr int kRank = low_rank.rank;
  /// The type of the scale, and of factors that hold numbers.
  using Real = kernels::Real<Scalar>;
  /// α / r.
  static constexpr Real kScale = static_cast<Real>(low_rank.alpha / low_rank.rank);

  [[no_unique_address]] Matrix<Scalar, rows, kRank> a;  // A
  [[no_unique_address]] Matrix<Scalar, kRank, cols> b;  // B

  template <class Visitor, class... Sets>
  static constexpr void visit(const Visitor& visitor, const TensorPath* weight, Sets&&... sets) {
    visitor(TensorPath{"lora_A", weight}, sets.a...);
    visitor(TensorPath{"lora_B", weight}, sets.b...);
  }
};

namespace detail {

template <class Leaf>
concept IsLowRank = requires {
  Leaf::kLowRank;
};

}  // namespace detail

/// A weight with factors: `base` refers to the constant in its storage. `room` has memory for `tokens` rows
/// of x·A.
template <class Base, class Factors, int tokens>
struct LowRankWeight {
  using Scalar = typename Factors::Scalar;
  static constexpr int rows = Factors::rows;
  static constexpr int cols = Factors::cols;
  static constexpr int size = rows * cols;

  Base base;  // refers to the constant
  const Factors* factors;
  Scalar* room;

  /// Element (row, col) of W + s·(A·B).
  [[nodiscard]] constexpr Scalar operator()(int row, int col) const {
    Scalar sum = 0;
    for (int k = 0; k < Factors::kRank; ++k) {
      sum = kernels::multiply_add(Scalar(factors->a(row, k)), Scalar(factors->b(k, col)), sum);
    }
    return kernels::multiply_add(sum, Scalar(Factors::kScale), detail::element_of(base, row, col));
  }
};

/// The gradient of such a weight, or of kRows of its rows: adds to the gradients of A and B.
template <class Factors, int tokens, class Gradients = Factors, int kRows = Factors::rows>
struct LowRankGradient {
  static constexpr bool kUpdatesAtOnce = detail::UpdatesAtOnce<decltype(Gradients::a)>;
  const Factors* factors;
  Gradients* gradients;
  typename Factors::Scalar* room;
  int first_row = 0;  // row of the weight at which these rows begin

  /// Itself: it is a view.
  friend constexpr LowRankGradient view(const LowRankGradient& gradient) { return gradient; }
  template <int kCount>
  [[nodiscard]] constexpr LowRankGradient<Factors, tokens, Gradients, kCount> rows_at(int row) const {
    return {factors, gradients, room, first_row + row};
  }
  /// A compile error: factors take products only.
  template <class Row>
  [[nodiscard]] constexpr detail::Dropped operator()(Row, int) const {
    static_assert(
        detail::Holds<(sizeof(Row) == 0)>,
        "attune::Adapted: factors take the gradient of a weight as a product; use add_product(), or "
        "store the weight as TableOf, which has no factors");
    return {};
  }
};

namespace detail {

// Tables have no products, so they have no factors.
template <LowRank low_rank, class Scalar, int rows, int cols, template <class, int, int> class Matrix>
struct TableForm<LowRankFactors<low_rank, Scalar, rows, cols, Matrix>> {
  using type = Untrained<Scalar, rows, cols>;
};
template <class Base, class Factors, int tokens>
struct TableForm<LowRankWeight<Base, Factors, tokens>> : TableForm<Base> {};
template <class Factors, int tokens, class Gradients>
struct TableForm<LowRankGradient<Factors, tokens, Gradients>> {
  using type = Untrained<typename Factors::Scalar, Factors::rows, Factors::cols>;
};

// The gradients of factors that are used at once (execution/own_layer.hpp).
template <class Factors, int tokens, class Gradients, class Scalar, int rows, int cols>
struct CollectedLeaf<LowRankGradient<Factors, tokens, Gradients>, Scalar, rows, cols> {
  using Storage = LowRankFactors<Factors::kLowRank, Scalar, rows, cols>;
  using Sink = LowRankGradient<Factors, tokens, Storage>;

  static void clear(Storage& storage) {
    storage.a.set_zero();
    storage.b.set_zero();
  }
  static Sink sink(Storage& storage, const auto& updated) {
    return {updated.factors, &storage, updated.room};
  }
  static void pass_on(const Storage& storage, const auto& updated) {
    pass_on_factor(storage.a, updated.gradients->a);
    pass_on_factor(storage.b, updated.gradients->b);
  }

 private:
  template <int count, int length>
  static void pass_on_factor(const Tensor<Scalar, count, length>& storage, const auto& updated) {
    CollectedLeaf<std::remove_cvref_t<decltype(updated)>, Scalar, count, length>::pass_on(storage, updated);
  }
};

template <class Epilogue>
concept OnlyAdds = std::is_same_v<Epilogue, kernels::Assign> ||
    std::is_same_v<Epilogue, kernels::Accumulate> || kIsSpecialization<Epilogue, kernels::AddBias>;

/// room[rows, r] = s·(x·a), over the terms that count.
template <class Factors, int tokens, class X, class A, class Terms = kernels::DenseTerms>
ATTUNE_INLINE auto narrowed(const X& x, const A& a, typename Factors::Scalar* room, const Terms& terms = {}) {
  static_assert(Holds<(X::rows <= tokens)>,
                "attune::Adapted: a layer multiplies more tokens than its input and output have; list it in "
                "the adapted Sequential");
  const MatrixView<typename Factors::Scalar, X::rows, Factors::kRank> narrow(room);
  terms.gemm(x, a, narrow);
  if constexpr (Factors::kScale != 1) {
    kernels::scale<X::rows * Factors::kRank>(room, typename Factors::Scalar(Factors::kScale));
  }
  return narrow;
}
/// How many matrices of t or u exist at a time, if A and B are updated at once: u takes the place of t if all
/// of B is updated together.
template <int rank>
inline constexpr int kRoomsOfUpdates = rank <= kMinUpdatedRows ? 1 : 2;
/// Updates B with dB = tᵀ·dy. Returns u of the old B, for the update of A.
template <class Factors, int tokens, class X, class Dy, class Gradients, class Terms>
ATTUNE_INLINE auto update_second_factor(const X& x, const Dy& dy, const Factors& factors,
                                        Gradients& gradients, typename Factors::Scalar* room,
                                        const Terms& terms) {
  constexpr int kRoomOfT = (kRoomsOfUpdates<Factors::kRank> - 1) * tokens * Factors::kRank;
  const auto t = narrowed<Factors, tokens>(x, view(factors.a), room + kRoomOfT, terms);
  add_rows(view(gradients.b), [&]<class Rows>(int first, const Rows& rows) ATTUNE_INLINE_LAMBDA {
    terms.gemm(t.transpose().template rows_at<Rows::rows>(first), dy, rows);
    if (first == 0) (void)narrowed<Factors, tokens>(dy, view(factors.b).transpose(), room, terms);
  });
  return MatrixView<typename Factors::Scalar, Dy::rows, Factors::kRank>(room);
}

}  // namespace detail

template <class X, class Base, class Factors, int tokens, class Y, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply(const X& x, const LowRankWeight<Base, Factors, tokens>& weight, const Y& y,
                            Epilogue epilogue = {}) {
  static_assert(detail::Holds<detail::OnlyAdds<Epilogue>>,
                "attune::LowRankWeight: LoRA supports only epilogues that add to x·W");
  multiply(x, weight.base, y, epilogue);
  const auto t = detail::narrowed<Factors, tokens>(x, view(weight.factors->a), weight.room);
  kernels::gemm(t, view(weight.factors->b), y, kernels::Accumulate{});
}
template <class Dy, class Base, class Factors, int tokens, class Dx, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply_transposed(const Dy& dy, const LowRankWeight<Base, Factors, tokens>& weight,
                                       const Dx& dx, Epilogue epilogue = {}) {
  static_assert(detail::Holds<detail::OnlyAdds<Epilogue>>,
                "attune::LowRankWeight: LoRA supports only epilogues that add to dy·Wᵀ");
  multiply_transposed(dy, weight.base, dx, epilogue);
  const auto u = detail::narrowed<Factors, tokens>(dy, view(weight.factors->b).transpose(), weight.room);
  kernels::gemm(u, view(weight.factors->a).transpose(), dx, kernels::Accumulate{});
}
/// dx[rows, n] = dy[rows, out]·Wᵀ, for n rows of W, starting at row `first`.
template <class Dy, class Base, class Factors, int tokens, class Dx>
ATTUNE_INLINE void multiply_transposed_rows(const Dy& dy, const LowRankWeight<Base, Factors, tokens>& weight,
                                            int first, const Dx& dx) {
  multiply_transposed_rows(dy, weight.base, first, dx);
  const auto u = detail::narrowed<Factors, tokens>(dy, view(weight.factors->b).transpose(), weight.room);
  kernels::gemm(u, view(weight.factors->a).template rows_at<Dx::cols>(first).transpose(), dx,
                kernels::Accumulate{});
}

/// `x_transposed` has some rows of xᵀ, as the gradient has rows of dW. The last rows also add dB, which needs
/// all of x; so its sums are the same in every context. If A and B are updated at once, all rows come in one
/// call.
template <class XTransposed, class Dy, class Factors, int tokens, class Gradients, int kRows,
          class Terms = kernels::DenseTerms>
ATTUNE_INLINE void add_product(const XTransposed& x_transposed, const Dy& dy,
                               const LowRankGradient<Factors, tokens, Gradients, kRows>& gradient,
                               const Terms& sums = {}) {
  const auto terms = sums.in_floats();
  const Factors& factors = *gradient.factors;
  Gradients& gradients = *gradient.gradients;
  using X = MatrixView<typename XTransposed::Scalar, XTransposed::cols, Factors::rows,
                       XTransposed::col_stride, XTransposed::row_stride, Major::kRow>;
  const X x(x_transposed.data - gradient.first_row * XTransposed::row_stride);
  const auto add_to_a = [&](const auto& u) ATTUNE_INLINE_LAMBDA {
    add_product(x_transposed, u, view(gradients.a).template rows_at<kRows>(gradient.first_row), terms);
  };
  if constexpr (LowRankGradient<Factors, tokens, Gradients>::kUpdatesAtOnce) {
    static_assert(kRows == Factors::rows);
    add_to_a(detail::update_second_factor<Factors, tokens>(x, dy, factors, gradients, gradient.room, terms));
  } else {
    add_to_a(detail::narrowed<Factors, tokens>(dy, view(factors.b).transpose(), gradient.room, terms));
    if (gradient.first_row + kRows == Factors::rows) {
      const auto t = detail::narrowed<Factors, tokens>(x, view(factors.a), gradient.room, terms);
      add_product(t.transpose(), dy, view(gradients.b), terms);
    }
  }
}
/// A compile error, as for an element.
template <class Factors, int tokens, class Gradients, int kRows, class Add>
void add_rows(const LowRankGradient<Factors, tokens, Gradients, kRows>& gradient, const Add&) {
  (void)gradient(Factors{}, 0);
}
/// Overwrites x with dx of the old weight (weights/gradient_rows.hpp).
template <class X, class Dy, class Base, class Factors, int tokens, class Gradients, class Terms>
ATTUNE_INLINE void update_in_place(const X& x, const Dy& dy,
                                   const LowRankWeight<Base, Factors, tokens>& weight,
                                   const LowRankGradient<Factors, tokens, Gradients>& gradient,
                                   const Terms& sums) {
  const auto terms = sums.in_floats();
  const Factors& factors = *gradient.factors;
  const auto u = detail::update_second_factor<Factors, tokens>(x, dy, factors, *gradient.gradients,
                                                               gradient.room, terms);
  add_rows(view(gradient.gradients->a), [&]<class Rows>(int first, const Rows& rows) ATTUNE_INLINE_LAMBDA {
    const auto features = x.template columns<Rows::rows>(first);
    add_product(features.transpose(), u, rows, terms);
    multiply_transposed_rows(dy, weight.base, first, features);
    kernels::gemm(u, view(factors.a).template rows_at<Rows::rows>(first).transpose(), features,
                  kernels::Accumulate{});
  });
}

}  // namespace ATTUNE_NAMESPACE
