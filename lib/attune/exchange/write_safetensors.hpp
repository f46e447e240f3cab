// Parameters to PyTorch: .safetensors files (safetensors.hpp) with the names of a module (pytorch_names.hpp).
//
//   attune::write_safetensors<Names>(parameters, [](const char* bytes, std::size_t count) { … });
//
// Tensors are sorted and the header is padded as in the reference: a file of it that was read and not trained
// is written byte for byte. In Python: model.load_state_dict(safetensors.torch.load_file(path)). It needs
// some hundred bytes of stack, and neither heap nor stdio: it runs on the device that trained.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <attune/exchange/element_type.hpp>
#include <attune/exchange/state_dict.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

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
  [[gnu::noinline]] void add_elements(const StateDictShape& shape, const Scalar* from) {
    using Bits = std::conditional_t<sizeof(Scalar) == 8, std::uint64_t, std::uint32_t>;
    for (int row = 0; row < shape.rows; ++row) {
      for (int col = 0; col < shape.cols; ++col) {
        add_little_endian(std::bit_cast<Bits>(from[row * shape.row_stride + col * shape.col_stride]));
      }
    }
  }
  void flush() {
    sink_(static_cast<const char*>(bytes_), length_);
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
    out.add(static_cast<std::size_t>(tensor.rows));
    if (tensor.layout != StateDictLayout::kVector) {
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

}  // namespace detail

/// Writes a set of any form. sink(const char* bytes, std::size_t count) gets the file in pieces of at most 64
/// bytes.
template <class Names, class Set, class Sink>
void write_safetensors(const Set& set, Sink&& sink, const SafetensorsOptions& options = {}) {
  using Scalar = typename Names::Model::Scalar;
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
  for (int i = 0; i < kTensors.kTensors; ++i) {
    detail::for_each_part<Names>(
        [&](const auto& place, detail::StateDictPart part, const auto& tensor) {
          if (part.tensor != i) return;
          const auto from = view(tensor);
          out.add_elements(detail::state_dict_shape<decltype(from)>(place.layout), from.data);
        },
        set);
  }
  out.flush();
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
