// Parameters to PyTorch: .safetensors files (safetensors.hpp) with the names of a module (pytorch_names.hpp).
//
//   const auto sink = [](const char* bytes, std::size_t count) { … };
//   attune::Status status = attune::write_safetensors<Names>(parameters, sink);
//   status = attune::write_safetensors<Names, attune::ElementType::kBF16>(parameters, sink);  // half as long
//   status = attune::rewrite_safetensors<Names>(file, parameters, sink);  // as the file
//
// The first function sorts tensors and pads its header as the reference does. The second keeps the order,
// shapes, types and other tensors of a file. Both reproduce an unchanged file byte for byte, and both support
// aliases (pytorch_file.hpp). In Python: model.load_state_dict(safetensors.torch.load_file(path),
// strict=True). They run on the device that trained: a few hundred bytes of stack, no heap, no stdio.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <attune/exchange/element_type.hpp>
#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/state_dict.hpp>
#include <attune/weights/quantize.hpp>
#include <attune/weights/quantized_weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Types of the model's tensors in a rewritten file.
enum class WrittenTypes {
  kOfFile = 0,   // unchanged, rounded to nearest; integers with scales become the model's scalar
  kOfModel = 1,  // the model's scalar
};

/// Options of write_safetensors.
struct SafetensorsOptions {
  /// The text of a JSON object of strings, such as {"format":"pt"}, or SafetensorsLayout::metadata of the
  /// file that was read. None if empty.
  std::string_view metadata;
};

namespace detail {

/// Sends bytes to a sink, in slices.
template <class Sink>
class ByteWriter {
 public:
  explicit ByteWriter(Sink& sink) : sink_(sink) {}
  ByteWriter(const ByteWriter&) = delete;
  ByteWriter& operator=(const ByteWriter&) = delete;
  ~ByteWriter() = default;

  [[gnu::noinline]] void add(std::string_view text) {
    for (const char character : text) {
      if (length_ == sizeof bytes_) flush();
      bytes_[length_++] = character;
    }
  }
  [[gnu::noinline]] void add(std::size_t number) {
    char digits[20];
    std::size_t first = sizeof digits;
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
    } while ((number /= 10) != 0);
    add(std::string_view(digits + first, sizeof digits - first));
  }
  template <class Bits>
  void add_little_endian(Bits bits) {
    char bytes[sizeof bits];
    for (char& byte : bytes) {
      byte = static_cast<char>(bits & 0xFF);
      bits >>= 8;
    }
    add(std::string_view(bytes, sizeof bytes));
  }
  /// Adds a number, rounded to the nearest of a floating-point type.
  template <class Scalar>
  void add_element(ElementType type, Scalar value) {
    switch (type) {
      case ElementType::kF64:
        return add_little_endian(std::bit_cast<std::uint64_t>(static_cast<double>(value)));
      case ElementType::kF16:
        return add_little_endian(narrow<Float16>(value, Scalar(1)).bits);
      case ElementType::kBF16:
        return add_little_endian(narrow<Bfloat16>(value, Scalar(1)).bits);
      default:
        return add_little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    }
  }
  /// Starts to count bytes instead of sending them.
  void begin_to_count() {
    flush();
    counting_ = true;
    count_ = 0;
  }
  /// Stops counting, and returns the number of bytes.
  std::size_t end_to_count() {
    flush();
    counting_ = false;
    return count_;
  }
  void flush() {
    constexpr bool kTakesBytes = std::is_invocable_v<Sink&, const char*, std::size_t>;
    static_assert(
        Holds<kTakesBytes>,
        "attune::write_safetensors: a sink is called as sink(const char* bytes, std::size_t count)");
    if constexpr (kTakesBytes) {
      static_assert(Holds<std::is_void_v<std::invoke_result_t<Sink&, const char*, std::size_t>>>,
                    "attune::write_safetensors: a sink returns void; store errors in the sink");
      if (!counting_ && length_ > 0) sink_(static_cast<const char*>(bytes_), length_);
    }
    count_ += length_;
    length_ = 0;
  }

 private:
  Sink& sink_;
  std::size_t length_ = 0;
  std::size_t count_ = 0;
  bool counting_ = false;
  char bytes_[64];
};

/// Writes a header, tensor after tensor; offsets follow from sizes.
template <class Writer>
class HeaderWriter {
 public:
  HeaderWriter(Writer& out, std::string_view metadata) : out_(out), first_(metadata.empty()) {
    out_.add(first_ ? "{" : "{\"__metadata__\":");
    out_.add(metadata);
  }
  template <class Extent>
  [[gnu::noinline]] void add(std::string_view name, std::string_view suffix, std::string_view type, int rank,
                             const Extent* shape, std::size_t bytes) {
    out_.add(first_ ? "\"" : ",\"");
    first_ = false;
    out_.add(name);
    out_.add(suffix);
    out_.add("\":{\"dtype\":\"");
    out_.add(type);
    out_.add("\",\"shape\":[");
    for (int i = 0; i < rank; ++i) {
      if (i > 0) out_.add(",");
      out_.add(static_cast<std::size_t>(shape[i]));
    }
    out_.add("],\"data_offsets\":[");
    out_.add(offset_);
    offset_ += bytes;
    out_.add(",");
    out_.add(offset_);
    out_.add("]}");
  }
  void end() { out_.add("}"); }

 private:
  Writer& out_;
  std::size_t offset_ = 0;
  bool first_;
};
/// Writes the length, then the padded header from add_tensors(HeaderWriter&), which is called twice.
template <class Tensors>
void add_header(auto& out, std::string_view metadata, const Tensors& add_tensors) {
  const auto add = [&]() __attribute__((noinline)) {
    HeaderWriter header(out, metadata);
    add_tensors(header);
    header.end();
  };
  out.begin_to_count();
  add();
  const std::size_t length = out.end_to_count(), padding = (8 - length % 8) % 8;
  out.add_little_endian(std::uint64_t{length + padding});
  add();
  out.add(std::string_view("       ", padding));
}

/// Calls visitor(number) for each number of a tensor in memory, in the order of the state_dict.
template <class Scalar, class Visitor>
[[gnu::noinline]] void for_each_stored(const StateDictShape& shape, const Scalar* from,
                                       const Visitor& visitor) {
  for (int row = 0; row < shape.rows; ++row) {
    for (int col = 0; col < shape.cols; ++col) {
      visitor(NumberOf<Scalar>(from[row * shape.row_stride + col * shape.col_stride]));
    }
  }
}
/// The same for computed numbers: a weight with factors of low rank, or of 8 or 16 bits.
template <bool kTransposed, class Weight, class Visitor>
[[gnu::noinline]] void for_each_computed(const Weight& weight, int first_row, int end_row,
                                         const Visitor& visitor) {
  constexpr int kCols = kTransposed ? Weight::rows : Weight::cols;
  for (int row = first_row; row < end_row; ++row) {
    for (int col = 0; col < kCols; ++col) visitor(kTransposed ? weight(col, row) : weight(row, col));
  }
}
/// A tensor whose numbers are in memory.
template <class Leaf>
concept IsInMemory = !IsQuantizedForm<Leaf> && requires(const Leaf& leaf) {
  view(leaf).data;
};
/// The same for a tensor of the state_dict, part by part; for a Conv1D row by row.
template <class Names, class Set, class Visitor>
void for_each_value(int index, const Set& set, const Visitor& visitor) {
  constexpr auto& kTensors = kStateDict<Names>;
  const auto visit = [&](const auto& place, StateDictPart part, const auto& tensor, int file_row) {
    if (part.tensor != index) return;
    using Leaf = std::remove_cvref_t<decltype(tensor)>;
    constexpr StateDictLayout kLayout = std::remove_cvref_t<decltype(place)>::layout;
    constexpr bool kByRow = kLayout == StateDictLayout::kConv1D;
    if constexpr (IsInMemory<Leaf>) {
      const auto from = view(tensor);
      static_assert(
          Holds<std::is_same_v<NumberOf<std::remove_const_t<typename decltype(from)::Scalar>>,
                               typename Names::Model::Scalar>>,
          "attune::write_safetensors: the parameters and the names' model have different scalar types");
      StateDictShape shape = state_dict_shape<decltype(from)>(kLayout);
      if (kByRow) shape.rows = 1;
      for_each_stored(shape, from.data + (kByRow ? file_row * shape.row_stride : 0), visitor);
    } else {
      constexpr int kRows = is_transposed(kLayout) ? Leaf::cols : Leaf::rows;
      for_each_computed<is_transposed(kLayout)>(tensor, kByRow ? file_row : 0, kByRow ? file_row + 1 : kRows,
                                                visitor);
    }
  };
  const bool by_row = kTensors.has_conv1d() && kTensors.tensors[index].layout == StateDictLayout::kConv1D;
  const int passes = by_row ? kTensors.tensors[index].rows : 1;
  for (int row = 0; row < passes; ++row) {
    for_each_part<Names>(
        [&](const auto& place, StateDictPart part, const auto& tensor) { visit(place, part, tensor, row); },
        set);
  }
}

/// Whether every value of a tensor of the state_dict stays finite in the type that it is written in.
template <class Names, class Set>
bool fits_in(ElementType type, int index, const Set& set) {
  bool fits = true;
  if (!is_half(type)) return fits;
  for_each_value<Names>(index, set, [&](auto value) {
    fits &= type == ElementType::kF16 ? can_be_quantized<Float16>(value) : can_be_quantized<Bfloat16>(value);
  });
  return fits;
}

/// Rewrites a file with the values of a set.
template <class Names, class Set, class Sink>
class SafetensorsRewriter {
  static constexpr auto& kTensors = kStateDict<Names>;
  static constexpr ElementType kScalar = kElementTypeOf<typename Names::Model::Scalar>;

 public:
  SafetensorsRewriter(const SafetensorsFile& file, const SafetensorsLayout<Names>& layout, const Set& set,
                      WrittenTypes types, Sink& sink)
      : file_(file), layout_(layout), set_(set), types_(types), out_(sink) {}

  /// Whether every value is finite, also in the type that it is written in.
  SafetensorsResult check() const {
    for (int i = 0; i < kTensors.kTensors; ++i) {
      if (!fits_in<Names>(written_type(layout_.type[i]), kTensors.tensors[i].values, set_))
        return {Status::kNotFinite, kTensors.name(i)};
    }
    return {};
  }
  void write() {
    add_header();
    for_each_tensor_in_file(file_, [this](const SafetensorsEntry& entry) {
      if (const Written written = written_as(entry); !written.nowhere) add_values(entry, written);
    });
    out_.flush();
  }

 private:
  /// The plan for a tensor of the file.
  struct Written {
    int tensor = -1;                         // index of the model's tensor with its values; −1: none
    ElementType type = ElementType::kOther;  // of its elements
    SafetensorsEntry scales{};               // of an I8, one for each of its rows
    bool nowhere = false;                    // not written: scales of integers that become floats
  };

  [[nodiscard]] ElementType written_type(ElementType type) const {
    return types_ == WrittenTypes::kOfModel || type == ElementType::kI8 ? kScalar : type;
  }
  [[nodiscard]] Written written_as(const SafetensorsEntry& entry) const {
    Written written{.tensor = tensor_of(entry), .type = entry.type};
    const std::string_view scaled = scaled_by(entry.name);
    if (written.tensor < 0 && !scaled.empty()) {
      written.nowhere =
          scales_of(find_tensor(file_, [scaled](const auto& other) { return other.name == scaled; })).rank >
          0;
    }
    written.scales = scales_of(entry);
    if (written.scales.rank > 0) written.type = written.scales.type;
    if (written.tensor >= 0) written.type = written_type(entry.type);
    return written;
  }
  /// NAME.scale of an I8; of rank 0 if there is none.
  [[nodiscard]] SafetensorsEntry scales_of(const SafetensorsEntry& entry) const {
    if (entry.type != ElementType::kI8) return {};
    const SafetensorsEntry scales =
        find_tensor(file_, [&entry](const auto& other) { return scaled_by(other.name) == entry.name; });
    const bool fits = scales.rank == 1 && scales.shape[0] > 0 &&
                      (scales.type == ElementType::kF32 || scales.type == ElementType::kF64) &&
                      elements_of(entry) % scales.shape[0] == 0;
    return fits ? scales : SafetensorsEntry{};
  }
  /// The model's tensor with the values to write. A tensor outside the model with the bytes of one of its
  /// embeddings is an alias.
  [[nodiscard]] int tensor_of(const SafetensorsEntry& entry) const {
    int tensor = kTensors.find(entry.name);
    for (int i = 0; tensor < 0 && i < kTensors.kTensors; ++i) {
      const StateDictTensor& own = kTensors.tensors[i];
      if (own.layout == StateDictLayout::kTable && entry.type == layout_.type[i] &&
          entry.type != ElementType::kOther && has_shape(entry.rank, entry.shape, own) &&
          bytes_at(entry.begin, entry.bytes()) == bytes_at(layout_.begin[i], entry.bytes())) {
        tensor = i;
      }
    }
    return tensor;
  }
  [[nodiscard]] std::string_view bytes_at(std::uint64_t begin, std::uint64_t count) const {
    return {file_.body.data() + begin, static_cast<std::size_t>(count)};
  }

  /// Writes the file's own header, if it stays valid.
  void add_header() {
    bool same = true;
    for_each_tensor_in_file(file_, [&](const SafetensorsEntry& entry) {
      const Written written = written_as(entry);
      same = same && !written.nowhere && written.type == entry.type;
    });
    if (same) {
      out_.add_little_endian(std::uint64_t{file_.header.size()});
      return out_.add(file_.header);
    }
    detail::add_header(out_, layout_.metadata, [this](auto& header) {
      for_each_tensor_in_file(file_, [&](const SafetensorsEntry& entry) {
        const Written written = written_as(entry);
        if (written.nowhere) return;
        const bool changed = written.type != entry.type;
        const std::uint64_t bytes =
            changed ? elements_of(entry) * static_cast<unsigned>(bytes_of(written.type)) : entry.bytes();
        header.add(entry.name, "", changed ? name_of(written.type) : entry.type_name, entry.rank, entry.shape,
                   static_cast<std::size_t>(bytes));
      });
    });
  }
  /// Writes the model's values, and the file's other ones: later rows of positions, and other tensors.
  void add_values(const SafetensorsEntry& entry, const Written& written) {
    std::uint64_t known = 0;
    if (written.tensor >= 0) {
      const StateDictTensor& tensor = kTensors.tensors[written.tensor];
      for_each_value<Names>(tensor.values, set_, [&](auto value) { out_.add_element(written.type, value); });
      known = static_cast<std::uint64_t>(tensor.size());
    }
    if (written.type == entry.type) {
      const std::uint64_t bytes = known == 0 ? 0 : known * static_cast<unsigned>(bytes_of(entry.type));
      return out_.add(bytes_at(entry.begin + bytes, entry.bytes() - bytes));
    }
    const std::uint64_t count = elements_of(entry);
    for (std::uint64_t i = known; i < count; ++i) {
      double value = number_at(file_, entry, i);
      if (entry.type == ElementType::kI8) {
        value *= number_at(file_, written.scales, i / (count / written.scales.shape[0]));
      }
      out_.add_element(written.type, value);
    }
  }

  SafetensorsFile file_;
  const SafetensorsLayout<Names>& layout_;
  const Set& set_;
  WrittenTypes types_;
  ByteWriter<Sink> out_;
};

}  // namespace detail

/// Writes a set of any form in the model's scalar, or in another type of 16 to 64 bits, rounded to nearest,
/// with aliases and shapes of PyTorchFile, and the model's constants. 8-bit and 16-bit weights are
/// dequantized. Factors of low rank are merged into their weight, W + s·A·B. sink(const char* bytes,
/// std::size_t count) gets the file in slices of at most 64 bytes. Returns kInvalidShape for a set of another
/// model, and kNotFinite if a number becomes infinite or NaN in F16 or BF16; nothing is then written.
template <detail::CheckedNames Names, ElementType written = ElementType::kOther, detail::CheckedSet Set,
          class Sink>
SafetensorsResult write_safetensors(const Set& set, Sink&& sink, const SafetensorsOptions& options = {}) {
  static_assert(detail::Holds<(written != ElementType::kI8)>,
                "attune::write_safetensors: integers need scales; use quantize_safetensors");
  constexpr ElementType kType =
      written == ElementType::kOther ? detail::kElementTypeOf<typename Names::Model::Scalar> : written;
  if (const SafetensorsResult checked = detail::check_set_of<Names>(set); checked != Status::kOk)
    return checked;
  constexpr auto& kTensors = detail::kStateDict<Names>;
  if constexpr (detail::is_half(kType)) {
    for (int i = 0; i < kTensors.kTensors; ++i) {
      if (!detail::fits_in<Names>(kType, kTensors.tensors[i].values, set))
        return {Status::kNotFinite, kTensors.name(i)};
    }
  }
  detail::ByteWriter<std::remove_reference_t<Sink>> out(sink);
  detail::add_header(out, options.metadata, [&](auto& header) {
    for (int i = 0; i < kTensors.kTensors; ++i) {
      const detail::TensorExtents shape = kTensors.tensors[i].extents();
      header.add(kTensors.name(i), "", detail::name_of(kType), shape.rank, shape.extents,
                 static_cast<std::size_t>(kTensors.tensors[i].size() * detail::bytes_of(kType)));
    }
  });
  for (int i = 0; i < kTensors.kTensors; ++i) {
    detail::for_each_value<Names>(kTensors.tensors[i].values, set,
                                  [&out](auto value) { out.add_element(kType, value); });
  }
  out.flush();
  return {};
}

/// Rewrites a file with the values of a set in place of the model's tensors. The order and shapes of its
/// tensors, other tensors, and the header stay the same. A tensor with the bytes of one of the model's
/// embeddings is an alias and gets its values. If types change, or integers with scales become floats, the
/// header is rewritten. Returns kNotFinite if a number becomes infinite or NaN in F16 or BF16. On an error
/// nothing is written. The sink gets slices of at most 64 bytes.
template <detail::CheckedNames Names, detail::CheckedFile Source, detail::CheckedSet Set, class Sink>
SafetensorsResult rewrite_safetensors(Source&& file, const Set& set, Sink&& sink,
                                      WrittenTypes types = WrittenTypes::kOfFile) {
  if (const SafetensorsResult checked = detail::check_set_of<Names>(set); checked != Status::kOk)
    return checked;
  const auto layout = safetensors_layout<Names>(file);
  if (layout.status != Status::kOk) return {layout.status, layout.tensor};
  detail::SafetensorsRewriter<Names, Set, std::remove_reference_t<Sink>> rewriter(
      split_safetensors(detail::bytes_of_file(file)), layout, set, types, sink);
  const SafetensorsResult checked = rewriter.check();
  if (checked == Status::kOk) rewriter.write();
  return checked;
}

}  // namespace ATTUNE_NAMESPACE
