// Parameters to PyTorch: .safetensors files (safetensors.hpp) with the names of a module (pytorch_names.hpp).
//
//   const auto sink = [](const char* bytes, std::size_t count) { … };
//   attune::Status status = attune::write_safetensors<Names>(parameters, sink);
//   status = attune::rewrite_safetensors<Names>(file, parameters, sink);  // as the file
//
// Tensors of the first are sorted and its header is padded as in the reference: a file of it that was read
// and not trained is written byte for byte. The second does so of any file, with what else is in it. In
// Python: model.load_state_dict(safetensors.torch.load_file(path)). They need some hundred bytes of stack,
// and neither heap nor stdio: they run on the device that trained.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <attune/core/narrow_weights.hpp>
#include <attune/exchange/element_type.hpp>
#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/state_dict.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// How write_safetensors writes.
struct SafetensorsOptions {
  /// The text of a JSON object of strings, as {"format":"pt"}, or SafetensorsLayout::metadata of the file
  /// that was read; none where empty.
  std::string_view metadata;
};

namespace detail {

/// Bytes for a sink, some at a time.
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
  template <class Scalar>
  void add_element(const Scalar& value) {
    using Bits = std::conditional_t<sizeof(Scalar) == 8, std::uint64_t, std::uint32_t>;
    add_little_endian(std::bit_cast<Bits>(value));
  }
  template <class Scalar>
  [[gnu::noinline]] void add_elements(const StateDictShape& shape, const Scalar* from) {
    for (int row = 0; row < shape.rows; ++row) {
      for (int col = 0; col < shape.cols; ++col) {
        add_element(from[row * shape.row_stride + col * shape.col_stride]);
      }
    }
  }
  /// Of what is not in memory as it is written: a weight with factors of low rank beside it, or of 8 or 16
  /// bits.
  template <StateDictLayout layout, class Weight>
  [[gnu::noinline]] void add_computed(const Weight& weight) {
    constexpr bool kTransposed = layout == StateDictLayout::kTransposed;
    constexpr int kRows = kTransposed ? Weight::cols : Weight::rows;
    constexpr int kCols = kTransposed ? Weight::rows : Weight::cols;
    for (int row = 0; row < kRows; ++row) {
      for (int col = 0; col < kCols; ++col) {
        add_element(kTransposed ? weight(col, row) : weight(row, col));
      }
    }
  }
  void flush() {
    constexpr bool kTakesBytes = std::is_invocable_v<Sink&, const char*, std::size_t>;
    static_assert(
        kTakesBytes,
        "attune::write_safetensors: a sink is called as sink(const char* bytes, std::size_t count)");
    if constexpr (kTakesBytes) {
      static_assert(
          std::is_void_v<std::invoke_result_t<Sink&, const char*, std::size_t>>,
          "attune::write_safetensors: a sink answers nothing, as nobody would look at it; keep in it "
          "whether all was sent");
      sink_(static_cast<const char*>(bytes_), length_);
    }
    length_ = 0;
  }

 private:
  Sink& sink_;
  std::size_t length_ = 0;
  char bytes_[64];
};

/// The header, without the spaces at its end, of tensors of one type in the order of their names.
template <class Scalar, class Tensors>
void add_header(const Tensors& tensors, std::string_view metadata, auto& out) {
  std::size_t offset = 0;
  out.add(metadata.empty() ? "{" : "{\"__metadata__\":");
  out.add(metadata);
  for (int i = 0; i < tensors.kTensors; ++i) {
    const StateDictTensor& tensor = tensors.tensors[i];
    out.add(i == 0 && metadata.empty() ? "\"" : ",\"");
    out.add(tensors.name(i));
    out.add(sizeof(Scalar) == 8 ? "\":{\"dtype\":\"F64\",\"shape\":[" : "\":{\"dtype\":\"F32\",\"shape\":[");
    if (tensor.layout == StateDictLayout::kKey) out.add("1,1,");
    out.add(static_cast<std::size_t>(tensor.rows));
    if (!is_vector(tensor.layout)) {
      out.add(",");
      out.add(static_cast<std::size_t>(tensor.cols));
    }
    out.add("],\"data_offsets\":[");
    out.add(offset);
    offset += static_cast<std::size_t>(tensor.size()) * sizeof(Scalar);
    out.add(",");
    out.add(offset);
    out.add("]}");
  }
  out.add("}");
}

/// A tensor of the state_dict, in its parts.
template <class Names, class Set>
void add_tensor(int index, const Set& set, auto& out) {
  for_each_part<Names>(
      [&](const auto& place, StateDictPart part, const auto& tensor) {
        if (part.tensor != index) return;
        using Leaf = std::remove_cvref_t<decltype(tensor)>;
        constexpr bool kInMemory = [] {
          if constexpr (kIsNarrowForm<Leaf>) {
            return false;
          } else {
            return requires(const Leaf& leaf) { view(leaf).data; };
          }
        }();
        if constexpr (kInMemory) {
          const auto from = view(tensor);
          static_assert(std::is_same_v<std::remove_const_t<typename decltype(from)::Scalar>,
                                       typename Names::Model::Scalar>,
                        "attune::write_safetensors: the set's scalar is not that of the names' model");
          out.add_elements(state_dict_shape<decltype(from)>(place.layout), from.data);
        } else {
          out.template add_computed<std::remove_cvref_t<decltype(place)>::layout>(tensor);
        }
      },
      set);
}

}  // namespace detail

/// Writes a set of any form, weights of 8 and 16 bits widened; of a model with constants, those too, each
/// weight with factors of low rank as the one that it stands for, W + s·A·B. sink(const char* bytes,
/// std::size_t count) gets the file in pieces of at most 64 bytes. Tensors have the shapes of PyTorch's
/// modules: of a file with others that reading takes, as [1, tokens, d_model], take rewrite_safetensors.
/// kInvalidShape of a set of another model than the names; then nothing is written.
template <detail::CheckedNames Names, detail::CheckedSet Set, class Sink>
Status write_safetensors(const Set& set, Sink&& sink, const SafetensorsOptions& options = {}) {
  using Scalar = typename Names::Model::Scalar;
  if (!detail::is_set_of<Names>(set)) return Status::kInvalidShape;
  constexpr auto& kTensors = detail::kStateDict<Names>;
  std::size_t length = 0;
  auto count = [&length](const char*, std::size_t size) { length += size; };
  detail::ByteWriter counter(count);
  detail::add_header<Scalar>(kTensors, options.metadata, counter);
  counter.flush();

  const std::size_t padding = (8 - length % 8) % 8;
  detail::ByteWriter<std::remove_reference_t<Sink>> out(sink);
  out.add_little_endian(std::uint64_t{length + padding});
  detail::add_header<Scalar>(kTensors, options.metadata, out);
  out.add(std::string_view("       ", padding));
  for (int i = 0; i < kTensors.kTensors; ++i) detail::add_tensor<Names>(i, set, out);
  out.flush();
  return Status::kOk;
}

/// Writes a file once more with the values of a set in the place of the model's tensors: its header, the
/// order and shapes of its tensors, and what is not the model's stay as they are. kInvalidType where the file
/// has them in another type than the model's scalar; of a file that is refused nothing is written. The sink
/// gets pieces of at most 64 bytes.
template <detail::CheckedNames Names, detail::CheckedFile Source, detail::CheckedSet Set, class Sink>
Status rewrite_safetensors(Source&& file, const Set& set, Sink&& sink) {
  constexpr auto& kTensors = detail::kStateDict<Names>;
  constexpr ElementType kType = detail::kElementTypeOf<typename Names::Model::Scalar>;
  if (!detail::is_set_of<Names>(set)) return Status::kInvalidShape;
  const auto layout = safetensors_layout<Names>(file);
  if (layout.status != Status::kOk) return layout.status;
  for (const ElementType type : layout.type) {
    if (type != kType) return Status::kInvalidType;
  }
  const std::string_view bytes = detail::bytes_of_file(file);
  detail::ByteWriter<std::remove_reference_t<Sink>> out(sink);
  std::size_t at = 0;
  while (at < bytes.size()) {
    int next = -1;  // the tensor that comes next, and where
    std::size_t begin = bytes.size();
    for (int i = 0; i < kTensors.kTensors; ++i) {
      const std::size_t tensor = layout.body + layout.begin[i];
      if (tensor >= at && tensor < begin) next = i, begin = tensor;
    }
    out.add(std::string_view(bytes.data() + at, begin - at));  // substr() could throw
    at = begin;
    if (next < 0) break;
    detail::add_tensor<Names>(next, set, out);
    at += static_cast<std::size_t>(kTensors.tensors[next].size() * detail::bytes_of(kType));
  }
  out.flush();
  return Status::kOk;
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
