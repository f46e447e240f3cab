// Sets of tensors: parameters, and gradients and moments of the same type. Visitors see each tensor by name.
//
// A set is a plain struct that lists its fields once: ATTUNE_FIELDS (core/fields.hpp). Its static
// `visit(visitor, path, sets…)` calls `visitor(path, tensor of each set…)` for each of its tensors, always in
// the same order.
//
// Every layer with parameters has `ParametersOf<Matrix, Vector>`: its set with other storage for each tensor.
// Vector is the storage of biases and of factors of normalizations, Matrix of the rest. Its `Parameters` are
// ParametersOf<Tensor, Tensor>. forward and backward take any of these sets.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>

#include <attune/core/bfloat16_tensor.hpp>
#include <attune/core/fields.hpp>
#include <attune/core/fingerprint.hpp>
#include <attune/core/ids.hpp>
#include <attune/core/tensor.hpp>

namespace ATTUNE_NAMESPACE {

/// The kind of a tensor.
enum class TensorKind {
  kWeight = 0,  // multiplies tokens, or is a table that is looked up or added
  kBias = 1,    // added to features
  kNorm = 2,    // multiplies the result of a normalization
};

/// The name of a tensor within its set, innermost part first: {"weight", of "query"}. Lives on the stack of
/// the visit.
struct TensorPath {
  const char* name = nullptr;             // of the tensor or set, within `parent`
  const TensorPath* parent = nullptr;     // path of the set around it
  TensorKind kind = TensorKind::kWeight;  // decides about weight decay, for example
};

namespace detail {

/// Replaces an unused element; drops writes.
struct Dropped {
  constexpr void operator=(const auto&) const {}
  constexpr void operator+=(const auto&) const {}
};

/// Replaces an untrained tensor in a set of gradients, moments or trained parameters. Two empty members of
/// one type cannot share an address; another `Place` makes another type.
template <class ScalarType, int kRows, int kCols, class Place>
struct UntrainedIn {
  static constexpr bool kUntrained = true;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;

  /// Replaces element (row, col); drops additions.
  [[nodiscard]] constexpr detail::Dropped operator()(int, int) const { return {}; }
  /// Itself: it is a view.
  friend constexpr UntrainedIn view(const UntrainedIn& nothing) { return nothing; }
};

/// A reference to the gradient of a tensor.
template <class ScalarType, int kRows, int kCols>
struct GradientReference {
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;

  Scalar* first;  // the first element

  [[nodiscard]] constexpr Scalar* data() const { return first; }
  /// Element (row, col).
  [[nodiscard]] constexpr Scalar& operator()(int row, int col) const { return first[row * cols + col]; }
};

/// Replaces a tensor when only its shape matters.
template <class ScalarType, int kRows, int kCols>
struct Extents {
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
};

}  // namespace detail

/// Replaces an untrained tensor: no gradient, no moment, no code.
template <class Scalar, int rows, int cols>
using Untrained = detail::UntrainedIn<Scalar, rows, cols, void>;

/// A reference to a tensor stored elsewhere.
template <class ScalarType, int kRows, int kCols>
struct Reference {
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int size = kRows * kCols;

  const Scalar* first;  // the first element

  [[nodiscard]] constexpr const Scalar* data() const { return first; }
  /// Element (row, col).
  [[nodiscard]] constexpr const Scalar& operator()(int row, int col) const { return first[row * cols + col]; }
};

/// A reference to a tensor stored elsewhere as its transpose, [cols, rows] row-major, as PyTorch's
/// nn.Linear.weight.
template <class ScalarType, int kRows, int kCols>
struct TransposedReference {
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int size = kRows * kCols;

  const Scalar* first;  // the first element of the transpose

  [[nodiscard]] constexpr const Scalar* data() const requires(kRows == 1) { return first; }
  /// Element (row, col) of the matrix, not of its transpose.
  [[nodiscard]] constexpr const Scalar& operator()(int row, int col) const { return first[col * rows + row]; }
  /// The view of the matrix, in the memory of its transpose.
  friend constexpr auto view(const TransposedReference& source) {
    return MatrixView<const Scalar, rows, cols, 1, rows, Major::kColumn>(source.first);
  }
};

/// A tensor that stores its transpose, [cols, rows] row-major.
template <class ScalarType, int kRows, int kCols>
struct TransposedTensor {
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int size = kRows * kCols;

  /// The elements of the transpose, row-major.
  Scalar values[static_cast<std::size_t>(size)];

  [[nodiscard]] constexpr Scalar* data() requires(kRows == 1) { return values; }
  [[nodiscard]] constexpr const Scalar* data() const requires(kRows == 1) { return values; }
  /// Element (row, col) of the matrix, not of its transpose.
  [[nodiscard]] constexpr Scalar& operator()(int row, int col) { return values[col * rows + row]; }
  /// Element (row, col) of the matrix, not of its transpose.
  [[nodiscard]] constexpr const Scalar& operator()(int row, int col) const {
    return values[col * rows + row];
  }
  constexpr void set_zero() {
    for (Scalar& value : values) value = 0;
  }
  /// The view of the matrix, in the memory of its transpose.
  friend constexpr auto view(TransposedTensor& source) {
    return MatrixView<Scalar, rows, cols, 1, rows, Major::kColumn>(&source.values[0]);
  }
  /// The view of the matrix, in the memory of its transpose.
  friend constexpr auto view(const TransposedTensor& source) {
    return MatrixView<const Scalar, rows, cols, 1, rows, Major::kColumn>(&source.values[0]);
  }
};

namespace detail {

/// The storage of a table (of an embedding, of positions) in a set with weights in `Leaf`. Tables are never
/// transposed, as in PyTorch.
template <class Leaf>
struct TableForm {
  using type = Leaf;
};
template <class Scalar, int rows, int cols>
struct TableForm<TransposedTensor<Scalar, rows, cols>> {
  using type = Tensor<Scalar, rows, cols>;
};
template <class Scalar, int rows, int cols>
struct TableForm<TransposedReference<Scalar, rows, cols>> {
  using type = Reference<Scalar, rows, cols>;
};

/// The storage of a table that is not a weight, such as positions. Storage of 8 and 16 bits specializes it
/// (quantized_weights.hpp).
template <class Table>
struct FloatForm {
  using type = Table;
};

}  // namespace detail

/// A reference to a constant in any storage; copies no scalars. References, and other storage without
/// scalars, are returned as is.
template <class Leaf>
[[nodiscard]] constexpr Leaf reference_to(const Leaf& leaf) {
  return leaf;
}
template <class Scalar, int rows, int cols>
[[nodiscard]] constexpr Reference<Scalar, rows, cols> reference_to(const Tensor<Scalar, rows, cols>& tensor) {
  return {tensor.data()};
}
template <class Scalar, int rows, int cols>
[[nodiscard]] constexpr TransposedReference<Scalar, rows, cols> reference_to(
    const TransposedTensor<Scalar, rows, cols>& tensor) {
  return {tensor.values};
}

/// The storage of a table [rows, cols] in ParametersOf<Matrix, Vector>: a tensor that no product reads as a
/// weight, such as the filters of a depthwise convolution. In 8 bits, each row has a scale.
template <template <class, int, int> class Matrix, class Scalar, int rows, int cols>
using TableOf = typename detail::TableForm<Matrix<Scalar, rows, cols>>::type;

/// The storage of a set's tensors: of ParametersOf<Matrix, Vector>, or the set's own `Form`.
template <template <class, int, int> class MatrixForm, template <class, int, int> class VectorForm>
struct Form {
  template <class Scalar, int rows, int cols>
  using Matrix = MatrixForm<Scalar, rows, cols>;
  template <class Scalar, int rows, int cols>
  using Vector = VectorForm<Scalar, rows, cols>;
};

namespace detail {

/// A trainer in place of parameters is a compile error.
template <class Set>
constexpr void check_no_trainer() {
  static_assert(Holds<(!requires(const Set& owner) { owner.parameters(); })>,
                "attune: this is a trainer, not parameters; pass trainer.parameters()");
}
/// The set. In place of a trainer, which is a compile error, its parameters.
template <class Set>
constexpr const auto& checked_parameters(const Set& set) {
  check_no_trainer<Set>();
  if constexpr (requires { set.parameters(); }) {
    return set.parameters();
  } else {
    return set;
  }
}

/// Whether a sink for a tensor's gradient is in use.
template <class Leaf>
concept IsTrained = !requires {
  requires std::remove_cvref_t<Leaf>::kUntrained;
};
/// Whether a sink for a tensor's gradient updates the parameter at once. backward must then read the
/// parameter first.
template <class Leaf>
concept UpdatesAtOnce = requires {
  requires std::remove_cvref_t<Leaf>::kUpdatesAtOnce;
};
/// The same for any tensor of a set with such storage.
template <class Form>
concept UpdatesAnyAtOnce = UpdatesAtOnce<typename Form::template Matrix<float, 1, 1>> ||
    UpdatesAtOnce<typename Form::template Vector<float, 1, 1>>;

/// Calls visitor(path, leaf of each set…) for every leaf of sets of one layer or model, trained or not.
template <class Visitor, class Set, class... Sets>
constexpr void visit_leaves(const Visitor& visitor, Set&& set, Sets&&... sets) {
  std::remove_cvref_t<Set>::visit(visitor, static_cast<const TensorPath*>(nullptr), set, sets...);
}

}  // namespace detail

/// Calls visitor(path, tensor of each set…) for every tensor of sets of one layer or model. Skips tensors
/// that are untrained in any of the sets.
template <class Visitor, class Set, class... Sets>
constexpr void for_each_tensor(const Visitor& visitor, Set& set, Sets&... sets) {
  detail::visit_leaves(
      [&visitor]<class... Leaves>(const TensorPath& path, Leaves&&... leaves) {
        if constexpr ((detail::IsTrained<Leaves> && ...)) visitor(path, leaves...);
      },
      set, sets...);
}

/// The set of a layer without parameters.
struct NoParameters {
  ATTUNE_FIELDS()
};

namespace detail {

/// The Form of a set: its own, else its template's arguments, else tensors.
template <class Set>
struct FormOf {
  using type = Form<Tensor, Tensor>;
};
template <template <template <class, int, int> class, template <class, int, int> class> class Set,
          template <class, int, int> class Matrix, template <class, int, int> class Vector>
  requires(!requires { typename Set<Matrix, Vector>::Form; })
struct FormOf<Set<Matrix, Vector>> {
  using type = Form<Matrix, Vector>;
};
template <class Set>
  requires requires { typename Set::Form; }
struct FormOf<Set> {
  using type = typename Set::Form;
};

template <class>
inline constexpr bool kIsIds = false;
template <int n>
inline constexpr bool kIsIds<Ids<n>> = true;
template <class Record>
concept Address = std::is_pointer_v<Record> || std::ranges::enable_view<Record> || kIsIds<Record> ||
    requires(typename FormOf<Record>::type::template Matrix<float, 1, 1> reference) {
  reference.first;
};
/// Whether the bytes of a record are an address: a pointer, a view, references, a mask that views a matrix,
/// or an array or a pair of these.
template <class Record>
struct RefersElsewhere : std::bool_constant<Address<Record> || (Stored<Record> && !OwnsStorage<Record>)> {};
template <class Element, std::size_t count>
struct RefersElsewhere<Element[count]> : RefersElsewhere<Element> {};
template <class Record>
  requires(!Address<Record> && requires { typename Record::value_type; })
struct RefersElsewhere<Record> : std::disjunction<std::bool_constant<Stored<Record> && !OwnsStorage<Record>>,
                                                  RefersElsewhere<typename Record::value_type>> {};
template <class Mask>
  requires requires(const Mask& mask) { mask.matrix; }
struct RefersElsewhere<Mask> : RefersElsewhere<std::remove_const_t<decltype(Mask::matrix)>> {};
template <class Both>
  requires requires(const Both& both) { both.first, both.second; }
struct RefersElsewhere<Both>
    : std::disjunction<RefersElsewhere<std::remove_const_t<decltype(Both::first)>>,
                       RefersElsewhere<std::remove_const_t<decltype(Both::second)>>> {};

/// FNV-1a over `count` scalars that are `stride` apart.
template <class Scalar>
[[gnu::noinline]] std::uint32_t hash(int count, const Scalar* values, int stride, std::uint32_t state) {
  using Bits = std::conditional_t<sizeof(Scalar) <= 2,
                                  std::conditional_t<sizeof(Scalar) == 1, std::uint8_t, std::uint16_t>,
                                  std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>>;
  for (int i = 0; i < count; ++i) {
    state = fnv1a(std::bit_cast<Bits>(values[i * stride]), static_cast<int>(sizeof(Scalar)), state);
  }
  return state;
}

/// The precision of products in a hash: the one of the tensors' storage, or the other one for the same
/// integers.
enum class HashedPrecision { kOwn, kOther };

/// The same for a tensor in any storage, row by row. Tensors of 8 and 16 bits count as stored, with their
/// scales.
template <class Leaf>
std::uint32_t hash_leaf(const Leaf& tensor, std::uint32_t state,
                        [[maybe_unused]] HashedPrecision precision = HashedPrecision::kOwn) {
  if constexpr (requires { tensor.stored; }) {
    using Rows = std::remove_cvref_t<decltype(tensor.stored)>;
    // The hash of packed integers differs from the hash of the same integers unpacked.
    constexpr bool kPacked = !requires { tensor.stored.data(); };
    if constexpr (requires { requires Leaf::kHasPackedForm; }) {
      if (kPacked == (precision == HashedPrecision::kOwn)) state = fnv1a(1u, 1, state);
    }
    if constexpr (!kPacked) {
      state = hash(Rows::count * Rows::length, tensor.stored.data(), 1, state);
    } else {  // the layout depends on the target
      for (int row = 0; row < Rows::count; ++row) {
        for (int i = 0; i < Rows::length; ++i) {
          const auto element = tensor.stored.at(row, i);
          state = hash(1, &element, 1, state);
        }
      }
    }
    if constexpr (Rows::Element::kScaled) state = hash(Rows::count, tensor.stored.scale(), 1, state);
  } else {
    const auto all = view(tensor);
    using All = decltype(all);
    for (int row = 0; row < All::rows; ++row) {
      state = hash(All::cols, all.data + row * All::row_stride, All::col_stride, state);
    }
  }
  return state;
}

std::uint32_t hash_set(const auto& set, std::uint32_t before, HashedPrecision precision) {
  for_each_tensor([&before, precision](const TensorPath&,
                                       const auto& tensor) { before = hash_leaf(tensor, before, precision); },
                  set);
  return before;
}

}  // namespace detail

/// Number of scalars in the tensors of a set. A set has no other memory: its bytes are this number times the
/// size of a scalar.
[[nodiscard]] constexpr int count_scalars(const auto& set) {
  int count = 0;
  for_each_tensor([&count](const TensorPath&, const auto& tensor) { count += tensor.size; }, set);
  return count;
}

constexpr void set_zero(auto& set) {
  for_each_tensor([](const TensorPath&, auto& tensor) { tensor.set_zero(); }, set);
}

/// FNV-1a over the bits of every scalar, row by row. Equal bits give equal hashes in every layout and on
/// every target; other bits collide with probability 2⁻³². Weights of 8 and 16 bits count as stored. `before`
/// is the hash of the sets before. `set` may also be one matrix, such as an output.
[[nodiscard]] std::uint32_t hash_bits(const auto& set, std::uint32_t before = fingerprint()) {
  if constexpr (requires { view(set); }) {
    return detail::hash_leaf(set, before);
  } else {
    return detail::hash_set(set, before, detail::HashedPrecision::kOwn);
  }
}

}  // namespace ATTUNE_NAMESPACE
