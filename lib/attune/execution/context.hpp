// How a call of a layer runs: its mask, its tokens, its slices. The last argument of every forward and
// backward; layers hand it on to the layers in them.
//
//   context.stage([&] { … });                                     // a stage
//   context.template rows<n, work>([&]<int count>(int first) { … });  // n rows, in portions
//   context.template elements<n, work>([&](int first, int count) { … });
//   context.template tokens<n, work>([&]<int count>(auto first) { … });  // n rows that are tokens
//   context.template each_token<n, work>([&](int t) { … });       // the same, token by token
//   context.template tokens_at_once<n, most, work>(…)             // the same, at most `most` together
//   context.template token_elements<n, cols, work>([&](int first, int count) { … });
//   context.answer([&] { return …; })                             // a stage that may refuse its input
//   context.inside([&] { … });                                    // a layer within: a stage made of stages
//   context.template repeat<n>([&](int i) { … });                 // n of them
//
// A context is made once, where a trainer or a user enters a model (execution/pass.hpp): there a mask that
// says how long the sequence is becomes the number of valid tokens, and the layers compute no others. Then
// `first` above is a RowRange, rows_at<count>(first) are the valid rows, and
//
//   context.first(matrix)            the valid tokens of a matrix
//   context.template count<rows>()   how many of its rows are valid
//   context.keys()                   the context of the tokens that are attended to: keys and values
//   context.skipping_zeros(x, …)     with a mask: products whose factors of zero have no influence
//   context.zeros().gemm(a, b, c)    a product of two matrices that are no weights
//
// slices.hpp has the rules for stages, and the unit of `work`.
#pragma once

#include <algorithm>
#include <type_traits>

#include <attune/core/status.hpp>
#include <attune/execution/attention_mask.hpp>
#include <attune/execution/slices.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

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
/// The first `length` of seq_len tokens are. A matrix of another number of rows has no tokens.
template <int seq_len>
struct FirstTokens {
  int length;

  template <int rows>
  [[nodiscard]] constexpr auto count() const {
    if constexpr (rows == seq_len) {
      ATTUNE_ASSERT(length >= 0 && length <= seq_len, "Context: more tokens are valid than there are");
      return length;
    } else {
      return std::integral_constant<int, rows>{};
    }
  }
  /// The same for of_token rows of every token.
  template <int of_token>
  [[nodiscard]] constexpr auto parts() const {
    return FirstTokens<seq_len * of_token>{length * of_token};
  }
};

/// A mask: a copy of a small one, else a reference, so that the mask has to outlive this.
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

/// How products treat factors of zero. Without a mask: like all others. With one: they have no influence,
/// even beside NaN or infinity (kernels/ops/zero_skipping.hpp).
template <class Mask, class Products = kernels::FloatProducts>
using ZerosOf =
    std::conditional_t<kMasks<Mask>, kernels::OwnZeroSkippingOf<Products>, kernels::DenseTermsOf<Products>>;

}  // namespace detail

/// How a call of a layer runs. Slices are RunToCompletion, OneSlice or host::SharedSlices. Tokens and Keys
/// say how many rows of queries, and of keys and values, are valid. Zeros choose the treatment of factors of
/// zero. The mask has to outlive the context.
template <AttentionMask MaskType = NoMask, class SlicesType = RunToCompletion,
          class TokensType = detail::AllTokens, class KeysType = TokensType,
          class ZerosType = detail::ZerosOf<MaskType>>
class Context {
 public:
  /// The mask.
  using Mask = MaskType;
  /// Which stages run.
  using Slices = SlicesType;
  /// How many rows of queries are valid.
  using Tokens = TokensType;
  /// How many rows of keys and values are valid.
  using Keys = KeysType;
  /// The treatment of factors of zero.
  using Zeros = ZerosType;
  /// How two matrices that are no weights are multiplied.
  using Products = typename Zeros::Products;
  /// Whether all stages run, one after the other.
  static constexpr bool kRunsToCompletion = Slices::kRunsToCompletion;
  /// Whether something is hidden, so that factors of zero must have no influence.
  static constexpr bool kSkipsZeros = Zeros::kSkips;
  /// Whether some rows of queries may not be valid.
  static constexpr bool kHasLength = !std::is_same_v<Tokens, detail::AllTokens>;
  /// Whether some rows of keys and values may not be valid.
  static constexpr bool kKeysHaveLength = !std::is_same_v<Keys, detail::AllTokens>;

  /// All tokens, in one go, with the mask as it is by default.
  constexpr Context() requires std::is_default_constructible_v<detail::MaskReference<Mask>> {}
  /// All tokens, with a mask, or slice by slice.
  constexpr explicit Context(const Mask& mask ATTUNE_LIFETIME_BOUND, const Slices& slices = {})
      : slices_(slices), mask_(mask) {
    static_assert(!detail::kSaysLength<Mask>,
                  "attune::Context: the mask says how long a sequence is; make the context for a layer, by "
                  "context_for<Layer>(mask), or call attune::infer, forward or backward");
  }
  /// Valid tokens, as context_for<Layer>(mask) counts them.
  constexpr Context(const Mask& mask ATTUNE_LIFETIME_BOUND, const Slices& slices, const Tokens& tokens,
                    const Keys& keys, const Zeros& zeros = {})
      : slices_(slices), mask_(mask), tokens_(tokens), keys_(keys), zeros_(zeros) {}

  /// The mask.
  [[nodiscard]] constexpr const Mask& mask() const { return mask_.get(); }
  /// Which stages run.
  [[nodiscard]] constexpr const Slices& slices() const { return slices_; }
  /// The treatment of factors of zero: gemm(a, b, c, epilogue) multiplies accordingly.
  [[nodiscard]] constexpr const Zeros& zeros() const { return zeros_; }

  // ---- Stages. ----

  /// Runs a body that is a stage.
  template <class Body>
  ATTUNE_INLINE void stage(Body&& body) const {
    if constexpr (kRunsToCompletion) {
      body();
    } else {
      slices_.stage(body);
    }
  }
  /// The same for a body that returns a Status.
  template <class Body>
  ATTUNE_INLINE Status answer(Body&& body) const {
    return slices_.answer(body);
  }
  /// Runs a body that consists of stages, and returns its result.
  template <class Body>
  ATTUNE_INLINE decltype(auto) inside(Body&& body) const {
    if constexpr (kRunsToCompletion) {
      return body();
    } else {
      return slices_.inside(body);
    }
  }
  /// Runs body(i) for i from 0 to times - 1, each of them stages.
  template <int times, class Body>
  ATTUNE_INLINE void repeat(Body&& body) const {
    slices_.template repeat<times>(body);
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void rows(Body&& body) const {
    if constexpr (kRunsToCompletion) {
      body.template operator()<count>(0);
    } else {
      slices_.template rows<count, count, work>(std::integral_constant<int, count>{}, body);
    }
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void elements(Body&& body) const {
    if constexpr (kRunsToCompletion) {
      body(0, count);
    } else {
      slices_.template elements<count, work>(std::integral_constant<int, count>{}, body);
    }
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void tokens(Body&& body) const {
    if constexpr (kHasLength) {
      tokens_at_once<count, count, work>(body);
    } else {
      rows<count, work>(body);
    }
  }
  template <int rows, int at_once, int work, class Body>
  ATTUNE_INLINE void tokens_at_once(Body&& body) const {
    slices_.template rows<rows, at_once, work>(count<rows>(), body);
  }
  template <int rows, int cols, int work, class Body>
  ATTUNE_INLINE void token_elements(Body&& body) const {
    if constexpr (std::is_same_v<decltype(count<rows>()), int>) {
      slices_.template elements<rows * cols, work>(count<rows>() * cols, body);
    } else {
      elements<rows * cols, work>(body);
    }
  }
  /// Runs body(t) for each of n rows that are tokens.
  template <int rows, int work, class Body>
  ATTUNE_INLINE void each_token(const Body& body) const {
    tokens<rows, work>([&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
      for (int t = first; t < first + rows_in<count>(first); ++t) body(t);
    });
  }
  /// Memory for data that one portion alone reads.
  template <class Scalar>
  ATTUNE_INLINE Scalar* own(Scalar* scratch) const {
    return slices_.own(scratch);
  }

  // ---- Valid tokens. ----

  /// How many of `rows` rows are computed.
  template <int rows>
  [[nodiscard]] constexpr auto count() const {
    return tokens_.template count<rows>();
  }
  /// Whether token `token` of `rows` may be read: it is one of the valid tokens, and no padding.
  template <int rows>
  [[nodiscard]] constexpr bool is_valid(int token) const {
    return token >= 0 && token < count<rows>() && detail::keeps_key<rows>(mask(), token);
  }
  /// The valid tokens of a matrix; a matrix that has no tokens as it is.
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

  /// The same for of_token rows of every token.
  template <int of_token>
  [[nodiscard]] constexpr auto parts() const {
    return of(mask(), tokens_.template parts<of_token>(), keys_.template parts<of_token>(), zeros_);
  }
  /// Of keys and values.
  [[nodiscard]] constexpr auto keys() const { return of(mask(), keys_, keys_, zeros_); }
  /// The same with as many keys.
  template <class OtherKeys>
  [[nodiscard]] constexpr auto with_keys(const OtherKeys& keys) const {
    return of(mask(), tokens_, keys, zeros_);
  }
  /// The same with another mask, which hides as much or more.
  template <AttentionMask Other>
  [[nodiscard]] constexpr auto with_mask(const Other& mask) const {
    if constexpr (kSkipsZeros || !kMasks<Other>) {
      return of(mask, tokens_, keys_, zeros_);
    } else {
      return of(mask, tokens_, keys_, detail::ZerosOf<Other, Products>{});
    }
  }
  /// The same without a mask, for a layer that reads none. Factors of zero stay what they are.
  [[nodiscard]] constexpr auto without_mask() const { return of(NoMask{}, tokens_, keys_, zeros_); }
  /// The same where nothing is hidden.
  [[nodiscard]] constexpr auto unmasked() const {
    return of(NoMask{}, tokens_, keys_, kernels::DenseTermsOf<Products>{});
  }
  /// The same whose products of two matrices that are no weights are of such a kind: kernels::Int8Products.
  template <class Other>
  [[nodiscard]] constexpr auto with_products() const {
    return of(mask(), tokens_, keys_, detail::ZerosOf<Mask, Other>{});
  }
  /// The same with another treatment of factors of zero.
  template <class Other>
  [[nodiscard]] constexpr auto with_zeros(const Other& zeros) const {
    return of(mask(), tokens_, keys_, zeros);
  }
  /// The same whose products skip factors of zero if not all of `operands` are finite: one look for several
  /// products. In slices each product looks for itself, as operands may be overwritten between two of them.
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
    return Context<OtherMask, Slices, OtherTokens, OtherKeys, OtherZeros>(mask, slices_, tokens, keys, zeros);
  }

  [[no_unique_address]] Slices slices_ = {};
  [[no_unique_address]] detail::MaskReference<Mask> mask_;
  [[no_unique_address]] Tokens tokens_ = {};
  [[no_unique_address]] Keys keys_ = {};
  [[no_unique_address]] Zeros zeros_ = {};
};

namespace detail {

template <class>
inline constexpr bool kIsContext = false;
template <class Mask, class Slices, class Tokens, class Keys, class Zeros>
inline constexpr bool kIsContext<Context<Mask, Slices, Tokens, Keys, Zeros>> = true;

// A mask in the place of a context.
template <class Type>
constexpr bool refuse_mask() {
  static_assert(!AttentionMask<Type>,
                "attune: a layer's forward and backward take a Context, not a mask; call "
                "attune::infer<Layer>(parameters, x, y, scratch, mask), or attune::forward or backward");
  return false;
}

}  // namespace detail

/// The last argument of a layer's forward and backward.
template <class Type>
concept AnyContext = detail::kIsContext<std::remove_cvref_t<Type>> ||
    detail::refuse_mask<std::remove_cvref_t<Type>>();

}  // namespace attune::inline ATTUNE_ARITHMETIC
