// Ids of tokens and classes: input from outside that is not a matrix.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <attune/kernels/matrix_view.hpp>

namespace ATTUNE_NAMESPACE {

/// `n` ids in the caller's storage. Converts implicitly from int[n], std::array<int, n>, std::span<const int,
/// n>, {{1, 2, 3}}, nested arrays with n ids in all, and from one int if n is 1. Copies nothing: Ids of a
/// temporary or a literal live until the end of the call.
template <int n>
class Ids {
  static_assert(detail::Holds<(n > 0)>, "attune::Ids: at least one id is required");

 public:
  /// Views the n ids at `first`.
  template <detail::PointerTo<const int> Pointer>
  constexpr explicit Ids(const Pointer& first) : first_(first) {}
  /// A pointer alone is a compile error: it has no number of ids.
  template <detail::Pointer Pointer>
  constexpr Ids(const Pointer&) : first_(nullptr) {
    static_assert(detail::Holds<!detail::Pointer<Pointer>>,
                  "attune::Ids: a pointer has no size; check it with attune::checked_view, or promise the "
                  "size with Ids{pointer}");
  }

  /// One id.
  constexpr Ids(const int& id ATTUNE_LIFETIME_BOUND) requires(n == 1) : first_(&id) {}
  /// One where there are several, or one of another type, is a compile error.
  template <detail::PlainNumber Id>
    requires(n > 1 || std::is_floating_point_v<Id> || !std::is_convertible_v<Id, int>)
  constexpr Ids(Id) : first_(nullptr) {
    static_assert(detail::Holds<(n == 1)>,
                  "attune::Ids: one id is required for each token, or each sequence of a batch; accumulate() "
                  "takes a single sequence");
    static_assert(detail::Holds<(n > 1 || (!std::is_floating_point_v<Id> && std::is_convertible_v<Id, int>))>,
                  "attune::Ids: an id is an int; convert an enumerator with static_cast<int>");
  }

  /// An array of n ids, also in braces. Another number is a compile error.
  template <std::size_t count>
  constexpr Ids(const int (&ids ATTUNE_LIFETIME_BOUND)[count]) : first_(ids) {
    static_assert(detail::Holds<(count == n)>,
                  "attune::Ids: the number of ids must equal the number of tokens or rows");
  }
  // Takes any container, so that the error can name the mistake.
  /// A std::array or std::span of n ids. Another number is a compile error.
  template <detail::Stored Source>
  constexpr Ids(const Source& source) : first_(first_of(source)) {}
  /// A temporary; valid until the end of the call.
  template <detail::Stored Source>
    requires(!std::is_reference_v<Source> && detail::Storage<std::remove_const_t<Source>>::kOwns)
  constexpr Ids(Source&& source ATTUNE_LIFETIME_BOUND) : first_(first_of(source)) {}
  /// Another number of ids is a compile error.
  template <int count>
    requires(count != n)
  constexpr Ids(const Ids<count>&) : first_(nullptr) {
    static_assert(detail::Holds<(count == n)>,
                  "attune::Ids: the number of ids must equal the number of tokens or rows");
  }

  /// The id of a token. The index is checked in checked mode only.
  [[nodiscard]] constexpr const int& operator[](std::integral auto index) const {
    ATTUNE_ASSERT(index >= 0 && index < n, "Ids: index out of range");
    return first_[index];
  }
  [[nodiscard]] constexpr const int* data() const { return first_; }
  /// The first id.
  [[nodiscard]] constexpr const int* begin() const { return first_; }
  /// One past the last id.
  [[nodiscard]] constexpr const int* end() const { return first_ + n; }
  [[nodiscard]] static constexpr std::size_t size() { return n; }

  /// The ids as a span.
  constexpr operator std::span<const int, std::size_t{n}>() const {
    return std::span<const int, std::size_t{n}>(first_, std::size_t{n});
  }

 private:
  template <class Source>
  static constexpr const int* first_of(const Source& source) {
    using From = detail::Storage<Source>;  // any shape: only the number of ids counts
    constexpr int kCount = From::rows == 0 ? From::cols : From::rows * From::cols;
    constexpr bool kInts = std::is_same_v<std::remove_const_t<detail::ElementOf<const Source>>, int>;
    static_assert(detail::Holds<kInts>, "attune::Ids: ids are ints; copy others into a std::array<int, n>");
    static_assert(
        detail::Holds<(kCount > 0)>,
        "attune::Ids: the number of ids is known only at run time; check it with attune::checked_view");
    static_assert(detail::Holds<(kCount == 0 || kCount == n)>,
                  "attune::Ids: the number of ids must equal the number of tokens or rows");
    if constexpr (kInts) {
      return From::first(source);
    } else {
      return nullptr;
    }
  }

  const int* first_;
};

}  // namespace ATTUNE_NAMESPACE
