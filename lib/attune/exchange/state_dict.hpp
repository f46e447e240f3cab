// A model's tensors as in PyTorch's state_dict: names, shapes and places, as constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <attune/core/parameters.hpp>
#include <attune/exchange/state_dict_names.hpp>
#include <attune/kernels/algorithm.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Properties of a file's tensor besides its name (pytorch_file.hpp).
struct FileTensor {
  std::string_view name;
  std::string_view alias_of;  // empty for the model's own tensors
  TensorExtents shape;        // of rank 0: the model's
};
template <class Names>
constexpr std::span<const FileTensor> file_tensors() {
  return {};
}
template <class Names>
  requires requires { Names::kFileTensors; }
constexpr std::span<const FileTensor> file_tensors() { return Names::kFileTensors; }

/// A tensor of a state_dict: [rows, cols], or [rows] for a vector, whose cols is 1.
struct StateDictTensor {
  int name;  // start in the text of names
  int name_length;
  StateDictLayout layout;
  int rows;
  int cols;
  int values;                            // index of the tensor with its values: itself, unless it is an alias
  const TensorExtents* shape = nullptr;  // from the names, if they give one

  [[nodiscard]] constexpr int size() const { return rows * cols; }
  /// The shape to write.
  [[nodiscard]] constexpr TensorExtents extents() const {
    if (shape != nullptr) return *shape;
    if (layout == StateDictLayout::kKey) return {3, {1, 1, rows}};
    return {is_vector(layout) ? 1 : 2, {rows, cols}};
  }
};
/// Whether a file's tensor of this shape has these rows and columns. Leading dimensions of 1 do not count, as
/// in positions of [1, tokens, d_model], and none in [tokens, 1, d_model] or a vector's [d_model, 1, 1]. For
/// a weight or a table, the dimensions after the first form the columns. Examples are convolutions over
/// patches, [out, channels, height, width], and by channels, [channels, 1, taps].
template <class Extent>
constexpr bool has_shape(int rank, const Extent* shape, const StateDictTensor& tensor) {
  const auto rows = static_cast<Extent>(tensor.rows), cols = static_cast<Extent>(tensor.cols);
  const int own_rank = is_vector(tensor.layout) ? 1 : 2;
  if (rank < own_rank) return false;
  if (tensor.layout == StateDictLayout::kTransposed ||
      (tensor.layout == StateDictLayout::kTable && shape[0] == rows)) {
    Extent size = 1;  // cannot overflow: the whole shape was checked
    for (int i = 1; i < rank; ++i) size *= shape[i];
    return shape[0] == rows && size == cols;
  }
  const Extent* const last = shape + rank;
  if (own_rank == 1 ||
      tensor.layout == StateDictLayout::kPositions) {  // [rows, 1, cols] where tokens come first
    Extent count = 1;
    for (const Extent* extent = shape; extent < last - (own_rank - 1); ++extent) {
      if (*extent != 1 && count != 1) return false;
      count *= *extent;
    }
    return own_rank == 1 ? count == rows : last[-1] == cols && count >= rows;
  }
  for (int i = 0; i < rank - own_rank; ++i) {
    if (shape[i] != 1) return false;
  }
  return last[-1] == cols && last[-2] == rows;
}
/// The start of a model's tensor in the file's tensor, and its own shape.
struct StateDictPart {
  int tensor;
  int first;  // scalars before it
  int rows;
  int cols;
};

constexpr int length_of(const TensorPath& path) {
  const std::string_view name(path.name);
  const int length = static_cast<int>(name.size());
  return path.parent == nullptr ? length : length_of(*path.parent) + 1 + length;
}
/// Writes "encoder.weight" for {"weight", of "encoder"}; returns its end.
constexpr char* write_path(const TensorPath& path, char* to) {
  if (path.parent != nullptr) {
    to = write_path(*path.parent, to);
    *to++ = '.';
  }
  for (const char* from = path.name; *from != '\0'; ++from) *to++ = *from;
  return to;
}

/// The tensors of a state_dict, sorted by name, and the place of each of the model's tensors, in the order of
/// Names::visit.
template <class Names>
class StateDict {
  struct Counts {
    int tensors = 0;
    int parts = 0;
    int characters = 0;
  };
  static constexpr Counts kCounts = [] {
    Counts counts;
    Names::visit(
        [&counts](const auto& place, auto&&) {
          ++counts.parts;
          if (place.first_row > 0) return;
          ++counts.tensors;
          counts.characters += length_of(place.path);
        },
        nullptr, SetOf<typename Names::Model, detail::Extents, detail::Extents>{});
    for (const FileTensor& described : file_tensors<Names>()) {
      if (described.alias_of.empty()) continue;
      ++counts.tensors;
      counts.characters += static_cast<int>(described.name.size());
    }
    return counts;
  }();

 public:
  static_assert(Holds<(kCounts.tensors > 0)>, "attune::PyTorchModule: the model has no parameters");
  static constexpr int kTensors = kCounts.tensors;

  StateDictTensor tensors[std::size_t{kTensors}] = {};
  StateDictPart parts[std::size_t{kCounts.parts}] = {};
  char text[std::size_t{kCounts.characters}] = {};
  bool parts_cover_tensors = true;
  bool file_tensors_fit = true;

  constexpr StateDict() {
    int tensor = -1, part = 0, end = 0, next_row = 0;
    Names::visit(
        [&](const auto& place, auto&& leaf) {
          using Leaf = std::remove_cvref_t<decltype(leaf)>;
          // Tensors are packed by rows, Conv1D's by columns.
          constexpr StateDictLayout kLayout = std::remove_cvref_t<decltype(place)>::layout;
          constexpr bool kColumns = kLayout == StateDictLayout::kConv1D;
          constexpr bool kSwapped = kColumns || is_transposed(kLayout);
          const int rows = kSwapped ? Leaf::cols : Leaf::rows, all = place.rows == 0 ? rows : place.rows;
          const int cols = kSwapped ? Leaf::rows : Leaf::cols;
          if (place.first_row == 0) {
            if (tensor >= 0) close(tensors[tensor], next_row);
            const int length = length_of(place.path);
            ++tensor;
            tensors[tensor] = {end,    length,     place.layout, kColumns ? cols : all, kColumns ? all : cols,
                               tensor, place.shape};
            write_path(place.path, text + end);
            end += length;
            next_row = 0;
          }
          if (place.first_row != next_row || cols != (kColumns ? tensors[tensor].rows : tensors[tensor].cols))
            parts_cover_tensors = false;
          parts[part++] = {tensor, place.first_row * (kColumns ? 1 : cols), Leaf::rows, Leaf::cols};
          next_row += rows;
        },
        nullptr, SetOf<typename Names::Model, detail::Extents, detail::Extents>{});
    close(tensors[tensor], next_row);
    describe(tensor + 1, end);
    sort();
  }

  [[nodiscard]] constexpr std::string_view name(int tensor) const {
    const StateDictTensor& named = tensors[tensor];
    return {text + named.name, static_cast<std::size_t>(named.name_length)};
  }
  /// The index of the tensor with a name, or −1.
  [[nodiscard]] constexpr int find(std::string_view name_of_tensor) const {
    int first = 0, count = kTensors;
    while (count > 0) {
      const int half = count / 2;
      if (name(first + half) < name_of_tensor) {
        first += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return first < kTensors && name(first) == name_of_tensor ? first : -1;
  }
  /// The row length of the file's tensor that holds a part.
  [[nodiscard]] constexpr int row_length(const StateDictPart& part) const {
    return tensors[part.tensor].cols;
  }
  /// Whether any weight has the layout of Conv1D.
  [[nodiscard]] constexpr bool has_conv1d() const {
    return any_of(tensors,
                  [](const StateDictTensor& tensor) { return tensor.layout == StateDictLayout::kConv1D; });
  }
  /// Whether all names differ and need no escapes in JSON.
  [[nodiscard]] constexpr bool names_are_usable() const {
    for (int i = 1; i < kTensors; ++i) {
      if (name(i) == name(i - 1)) return false;
    }
    for (const char character : text) {
      if (static_cast<unsigned char>(character) < 0x20 || character == '"' || character == '\\') return false;
    }
    return true;
  }

 private:
  constexpr void close(const StateDictTensor& tensor, int rows) {
    if ((tensor.layout == StateDictLayout::kConv1D ? tensor.cols : tensor.rows) != rows)
      parts_cover_tensors = false;
  }
  /// Adds aliases after `count` tensors and `end` characters, and shapes.
  constexpr void describe(int count, int end) {
    const auto tensor_named = [&](std::string_view wanted) -> StateDictTensor* {
      for (int i = 0; i < count; ++i) {
        if (name(i) == wanted) return &tensors[i];
      }
      return nullptr;
    };
    for (const FileTensor& described : file_tensors<Names>()) {
      const bool alias = !described.alias_of.empty();
      StateDictTensor* const of = tensor_named(alias ? described.alias_of : described.name);
      if (of == nullptr || (!alias && !has_shape(described.shape.rank, described.shape.extents, *of))) {
        file_tensors_fit = false;
      } else if (alias) {
        const int length = static_cast<int>(described.name.size());
        tensors[count] = *of;
        tensors[count].name = end;
        tensors[count++].name_length = length;
        copy_n(described.name.data(), length, text + end);
        end += length;
      } else {
        of->shape = &described.shape;
      }
    }
  }
  constexpr void sort() {
    int order[std::size_t{kTensors}] = {}, rank[std::size_t{kTensors}] = {};
    for (int i = 0; i < kTensors; ++i) order[i] = i;
    detail::sort(order, kTensors, [this](int a, int b) { return name(a) < name(b); });
    StateDictTensor sorted[std::size_t{kTensors}] = {};
    for (int i = 0; i < kTensors; ++i) {
      sorted[i] = tensors[order[i]];
      rank[order[i]] = i;
    }
    for (int i = 0; i < kTensors; ++i) tensors[i] = sorted[i];
    for (StateDictTensor& tensor : tensors) tensor.values = rank[tensor.values];
    for (StateDictPart& part : parts) part.tensor = rank[part.tensor];
  }
};

template <class Names>
inline constexpr StateDict<Names> kStateDict = [] {
  constexpr StateDict<Names> kTensors;
  static_assert(Holds<kTensors.parts_cover_tensors>,
                "attune::PyTorchNames: the parts of a packed tensor overlap or leave gaps");
  static_assert(Holds<kTensors.file_tensors_fit>,
                "attune::PyTorchFile: a TensorAlias or TensorShape names no tensor of the model, or has the "
                "wrong size; put an alias before its shape");
  static_assert(
      Holds<(!kTensors.file_tensors_fit || kTensors.names_are_usable())>,
      "attune::PyTorchModule: two tensors have the same name, or a name has a character that JSON escapes");
  return kTensors;
}();

/// The shape of a model's tensor in the state_dict.
struct StateDictShape {
  int rows;
  int cols;
  int row_stride;
  int col_stride;

  /// Whether memory and file have the same layout.
  [[nodiscard]] constexpr bool is_stored_alike() const {
    return (rows == 1 || row_stride == cols) && (cols == 1 || col_stride == 1);
  }
};
template <class View>
constexpr StateDictShape state_dict_shape(StateDictLayout layout) {
  if (is_transposed(layout)) return {View::cols, View::rows, View::col_stride, View::row_stride};
  return {View::rows, View::cols, View::row_stride, View::col_stride};
}

/// The first tensor that a set lacks, compared with the model's own set or another instance's; −1 if it has
/// all.
template <class Names, class Set>
[[nodiscard]] constexpr int tensor_of_another_shape(Set& set) {
  const StateDictPart* part = kStateDict<Names>.parts;
  const StateDictPart* const end = std::end(kStateDict<Names>.parts);
  bool fits = true;
  Names::visit(
      [&](const auto&, auto&& tensor) {
        using Leaf = std::remove_cvref_t<decltype(tensor)>;
        fits = fits && part != end && part->rows == Leaf::rows && part->cols == Leaf::cols;
        if (fits) ++part;
      },
      nullptr, set);
  if (fits && part == end) return -1;
  return part == end ? kStateDict<Names>.kTensors - 1 : part->tensor;
}
/// Calls visitor(place, part, tensor) for each tensor of a set that is_set_of these names.
template <class Names, class Visitor, class Set>
constexpr void for_each_part(const Visitor& visitor, Set& set) {
  const StateDictPart* part = kStateDict<Names>.parts;
  Names::visit([&](const auto& place, auto&& tensor) { visitor(place, *part++, tensor); }, nullptr, set);
}

}  // namespace ATTUNE_NAMESPACE::detail
