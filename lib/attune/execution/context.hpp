// The context of a call of a layer: its mask, its valid tokens and its slices. It is the last argument of
// every forward and backward. Layers pass it on to the layers inside them.
//
//   context.stage([&] { … });                                     // a stage
//   context.template rows<n, work>([&]<int count>(int first) { … });  // n rows, in portions
//   context.template elements<n, work>([&](int first, int count) { … });
//   context.template tokens<n, work>([&]<int count>(auto first) { … });  // n rows that are tokens
//   context.template each_token<n, work>([&](int t) { … });       // the same, token by token
//   context.template tokens_at_once<n, most, work>(…)             // the same, at most `most` together
//   context.template token_elements<n, cols, work>([&](int first, int count) { … });
//   context.answer([&] { return …; })                             // a stage that returns a Status
//   context.inside([&] { … });                                    // a layer within: a stage made of stages
//   context.template repeat<n>([&](int i) { … });                 // n of them
//
// A context is made once, when a trainer or a user calls a model (execution/pass.hpp). A mask with a length
// then becomes the number of valid tokens, and the layers compute only these. `first` above is then a
// RowRange, rows_at<count>(first) are the valid rows, and
//
//   context.first(matrix)            the valid tokens of a matrix
//   context.template count<rows>()   the number of its valid rows
//   context.keys()                   the context of keys and values
//   context.skipping_zeros(x, …)     with a mask: products whose factors of zero have no influence
//   context.zeros().gemm(a, b, c)    a product of two matrices that are not weights
//
// slices.hpp has the rules for stages, and the unit of `work`.
#pragma once

#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/core/status.hpp>
#include <attune/execution/attention_mask.hpp>
#include <attune/execution/slices.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// All rows are valid.
struct AllTokens {
  template <int rows>
  static constexpr std::integral_constant<int, rows> count() {
    return {};
  }
  template <int>
  static constexpr AllTokens parts() {
    return {};
  }
};
/// The first `length` of seq_len tokens are valid. In a matrix with another number of rows, rows are not
/// tokens.
template <int seq_len>
struct FirstTokens {
  int length;

  template <int rows>
  [[nodiscard]] constexpr auto count() const {
    ATTUNE_ASSERT(rows != seq_len || (length >= 0 && length <= seq_len),
                  "Context: more tokens are valid than there are");
    return first_if<rows == seq_len>(length, std::integral_constant<int, rows>{});
  }
  /// The same for of_token rows per token.
  template <int of_token>
  [[nodiscard]] constexpr auto parts() const {
    return FirstTokens<seq_len * of_token>{length * of_token};
  }
};

/// A mask: a copy if it is small, else a reference, so the mask must outlive this.
template <class Mask>
struct MaskReference {
  const Mask* mask;
  constexpr explicit MaskReference(const Mask& of) : mask(&of) {}
  [[nodiscard]] constexpr const Mask& get() const { return *mask; }
};
template <class Mask>
  requires(sizeof(Mask) <= 2 * sizeof(void*) && std::is_trivially_copyable_v<Mask>)
struct MaskReference<Mask> {
  [[no_unique_address]] Mask mask;
  constexpr MaskReference() : mask{} {}
  constexpr explicit MaskReference(const Mask& of) : mask(of) {}
  [[nodiscard]] constexpr const Mask& get() const { return mask; }
};

/// The treatment of factors of zero in products. With a mask they have no influence, even beside NaN or
/// infinity (kernels/ops/zero_skipping.hpp). Without a mask they are ordinary factors.
template <class Mask, class Products = kernels::FloatProducts>
using ZerosOf =
    std::conditional_t<kMasks<Mask>, kernels::OwnZeroSkippingOf<Products>, kernels::DenseTermsOf<Products>>;

}  // namespace detail

/// The context of a call. Slices are RunToCompletion, InBatchOrder, OneSlice or CrewSlices. Tokens and Keys
/// give the number of valid rows of queries, and of keys and values. Zeros is the treatment of factors of
/// zero. The mask must outlive the context.
template <AttentionMask MaskType = NoMask, class SlicesType = RunToCompletion,
          class TokensType = detail::AllTokens, class KeysType = TokensType,
          class ZerosType = detail::ZerosOf<MaskType>>
class Context : public SlicesType {
 public:
  /// The mask.
  using Mask = MaskType;
  /// The slices, which choose the stages to run.
  using Slices = SlicesType;
  /// The number of valid rows of queries.
  using Tokens = TokensType;
  /// The number of valid rows of keys and values.
  using Keys = KeysType;
  /// The treatment of factors of zero.
  using Zeros = ZerosType;
  /// The kind of products between matrices that are not weights.
  using Products = typename Zeros::Products;
  /// Whether all stages run, one after the other.
  using Slices::kRunsToCompletion;
  /// Whether the mask hides anything, so that factors of zero must have no influence.
  static constexpr bool kSkipsZeros = Zeros::kSkips;
  /// Whether some rows of queries may be invalid.
  static constexpr bool kHasLength = !std::is_same_v<Tokens, detail::AllTokens>;
  /// Whether some rows of keys and values may be invalid.
  static constexpr bool kKeysHaveLength = !std::is_same_v<Keys, detail::AllTokens>;

  /// All tokens, to completion, with a default-constructed mask.
  constexpr Context() requires std::is_default_constructible_v<detail::MaskReference<Mask>> {}
  /// All tokens, with a mask, or slice by slice.
  constexpr explicit Context(const Mask& mask ATTUNE_LIFETIME_BOUND, const Slices& slices = {})
      : Slices(slices), mask_(mask) {
    static_assert(detail::Holds<!detail::SaysLength<Mask>>,
                  "attune::Context: the mask gives a sequence's length; create the context with "
                  "context_for<Layer>(mask), or call attune::infer, forward or backward");
  }
  /// Valid tokens, as counted by context_for<Layer>(mask).
  constexpr Context(const Mask& mask ATTUNE_LIFETIME_BOUND, const Slices& slices, const Tokens& tokens,
                    const Keys& keys, const Zeros& zeros = {})
      : Slices(slices), mask_(mask), tokens_(tokens), keys_(keys), zeros_(zeros) {}

  /// The mask.
  [[nodiscard]] constexpr const Mask& mask() const { return mask_.get(); }
  /// The slices, which choose the stages to run.
  [[nodiscard]] constexpr const Slices& slices() const { return *this; }
  /// The treatment of factors of zero: gemm(a, b, c, epilogue) multiplies accordingly.
  [[nodiscard]] constexpr const Zeros& zeros() const { return zeros_; }

  // ---- Stages; the slices have the others. ----

  template <int count, int work, class Body>
  ATTUNE_INLINE void rows(Body&& body) const {
    if constexpr (kRunsToCompletion) {
      body.template operator()<count>(0);
    } else {
      slices().template rows<count, count, work>(std::integral_constant<int, count>{}, body);
    }
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void elements(Body&& body) const {
    if constexpr (kRunsToCompletion) {
      body(0, count);
    } else {
      slices().template elements<count, work>(std::integral_constant<int, count>{}, body);
    }
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void tokens(Body&& body) const {
    if constexpr (kRunsToCompletion && !kHasLength) {
      body.template operator()<count>(0);
    } else {
      tokens_at_once<count, count, work>(body);
    }
  }
  template <int rows, int at_once, int work, class Body>
  ATTUNE_INLINE void tokens_at_once(Body&& body) const {
    slices().template rows<rows, at_once, work>(count<rows>(), body);
  }
  template <int rows, int cols, int work, class Body>
  ATTUNE_INLINE void token_elements(Body&& body) const {
    slices().template elements<rows * cols, work>(count<rows>() * cols, body);
  }
  /// Runs body(t) for each of n rows that are tokens.
  template <int rows, int work, class Body>
  ATTUNE_INLINE void each_token(const Body& body) const {
    tokens<rows, work>([&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
      for (int t = first; t < first + rows_in<count>(first); ++t) body(t);
    });
  }
  /// The same, where rows and elements run one after the other, and may add to the same sums.
  [[nodiscard]] constexpr auto in_order() const {
    if constexpr (requires { slices().in_order(); }) {
      return with_slices(slices().in_order());
    } else {
      return *this;
    }
  }
  /// The same, where rows and elements are independent, so that several threads may share them, in backward
  /// too.
  [[nodiscard]] constexpr auto in_any_order() const {
    if constexpr (requires { slices().in_any_order(); }) {
      return with_slices(slices().in_any_order());
    } else {
      return *this;
    }
  }
  /// The same, to completion, without slices.
  [[nodiscard]] constexpr auto to_completion() const { return with_slices(RunToCompletion{}); }
  /// The same with other slices.
  template <class Other>
  [[nodiscard]] constexpr auto with_slices(const Other& slices) const {
    return Context<Mask, Other, Tokens, Keys, Zeros>(mask(), slices, tokens_, keys_, zeros_);
  }

  // ---- Valid tokens. ----

  /// The number of computed rows, out of `rows`.
  template <int rows>
  [[nodiscard]] constexpr auto count() const {
    return tokens_.template count<rows>();
  }
  /// Whether token `token` of `rows` may be read: it is valid, and not padding.
  template <int rows>
  [[nodiscard]] constexpr bool is_valid(int token) const {
    return token >= 0 && token < count<rows>() && detail::keeps_key<rows>(mask(), token);
  }
  /// The valid tokens of a matrix. Returns a matrix whose rows are not tokens unchanged.
  template <class View>
  ATTUNE_INLINE constexpr auto first(const View& view) const {
    const auto used = count<View::rows>();
    if constexpr (std::is_same_v<decltype(used), const int>) {
      return PartView<View, int, std::integral_constant<int, View::cols>>(view, used, {});
    } else {
      return view;
    }
  }

  // ---- Contexts of parts of a layer. ----

  /// The context for of_token rows per token.
  template <int of_token>
  [[nodiscard]] constexpr auto parts() const {
    return of(mask(), tokens_.template parts<of_token>(), keys_.template parts<of_token>(), zeros_);
  }
  /// The context of keys and values.
  [[nodiscard]] constexpr auto keys() const { return of(mask(), keys_, keys_, zeros_); }
  /// The same with another number of keys.
  [[nodiscard]] constexpr auto with_keys(const auto& keys) const { return of(mask(), tokens_, keys, zeros_); }
  /// The same with another mask, which hides at least as much.
  template <AttentionMask Other>
  [[nodiscard]] constexpr auto with_mask(const Other& mask) const {
    constexpr bool kSame = kSkipsZeros || !kMasks<Other>;
    return of(mask, tokens_, keys_, detail::first_if<kSame>(zeros_, detail::ZerosOf<Other, Products>{}));
  }
  /// The same without a mask, for a layer that reads none. Keeps the treatment of factors of zero.
  [[nodiscard]] constexpr auto without_mask() const { return of(NoMask{}, tokens_, keys_, zeros_); }
  /// The same with nothing hidden.
  [[nodiscard]] constexpr auto unmasked() const {
    return of(NoMask{}, tokens_, keys_, kernels::DenseTermsOf<Products>{});
  }
  /// The same with another kind of products between matrices that are not weights, such as
  /// kernels::Int8Products.
  template <class Other>
  [[nodiscard]] constexpr auto with_products() const {
    return of(mask(), tokens_, keys_, detail::ZerosOf<Mask, Other>{});
  }
  /// The same with another treatment of factors of zero.
  [[nodiscard]] constexpr auto with_zeros(const auto& zeros) const {
    return of(mask(), tokens_, keys_, zeros);
  }
  /// The same with products that skip factors of zero unless all `operands` are finite: one check for several
  /// products. In slices each product checks its own operands, as they may be overwritten in between.
  template <class... Operands>
  [[nodiscard]] ATTUNE_INLINE auto skipping_zeros([[maybe_unused]] const Operands&... operands) const {
    if constexpr (kSkipsZeros && kRunsToCompletion) {
      return with_zeros(kernels::ZeroSkippingOf<Products>(operands...));
    } else {
      return *this;
    }
  }

 private:
  template <class OtherMask, class OtherTokens, class OtherKeys, class OtherZeros>
  [[nodiscard]] constexpr auto of(const OtherMask& mask, const OtherTokens& tokens, const OtherKeys& keys,
                                  const OtherZeros& zeros) const {
    return Context<OtherMask, Slices, OtherTokens, OtherKeys, OtherZeros>(mask, slices(), tokens, keys,
                                                                          zeros);
  }

  [[no_unique_address]] detail::MaskReference<Mask> mask_;
  [[no_unique_address]] Tokens tokens_ = {};
  [[no_unique_address]] Keys keys_ = {};
  [[no_unique_address]] Zeros zeros_ = {};
};

namespace detail {

// Takes any context.
template <class... Types>
void take_context(const Context<Types...>&);

// A mask in place of a context is a compile error.
template <class Type>
constexpr bool refuse_mask() {
  static_assert(Holds<!AttentionMask<Type>>,
                "attune: a layer's forward and backward take a Context, not a mask; call "
                "attune::infer<Layer>(parameters, x, y, scratch, mask), or attune::forward or backward");
  return false;
}

}  // namespace detail

/// The last argument of a layer's forward and backward.
template <class Type>
concept AnyContext = requires(const Type& context) {
  detail::take_context(context);
}
|| detail::refuse_mask<std::remove_cvref_t<Type>>();

}  // namespace ATTUNE_NAMESPACE
