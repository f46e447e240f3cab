// The format of .safetensors files (https://github.com/huggingface/safetensors), read without a copy and
// without a table, at compile time and at run time.
//
//   8 bytes       length of the header, little-endian
//   header        {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}, spaces at its end;
//                 "__metadata__" is an object of strings
//   tensors       row-major, little-endian, one behind the other without a hole
//
// exchange/state_dict.hpp reads such a file into a model's parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <attune/core/status.hpp>
#include <attune/exchange/element_type.hpp>

namespace ATTUNE_NAMESPACE {

/// A tensor's entry in the header.
struct SafetensorsEntry {
  /// Tensors with more dimensions are refused.
  static constexpr int kMaxDimensions = 8;

  std::string_view name;                     // in the text of the header
  ElementType type = ElementType::kOther;    // of its elements
  std::string_view type_name;                // as in the header
  int rank = 0;                              // number of dimensions
  std::uint64_t shape[kMaxDimensions] = {};  // of the first `rank` dimensions
  std::uint64_t begin = 0;                   // in bytes, from the end of the header
  std::uint64_t end = 0;                     // end of its last byte

  /// Bytes of the tensor.
  [[nodiscard]] constexpr std::uint64_t bytes() const { return end - begin; }
};

/// Iterates over the tensors of a header. Checks each by itself, and in the end all together:
///
///   SafetensorsHeader header(text, body_size);
///   SafetensorsEntry entry;
///   while (header.next(entry)) …
///   if (header.status() != Status::kOk) …
///
/// `text` is the header with its spaces, and must live as long. `body_size` counts the bytes after it.
/// A tensor with a dimension of 0 has no bytes. The size of a tensor of an unknown type is not checked: newer
/// versions of the format have types that this library cannot read. Escapes and UTF-8 are not checked, and
/// duplicate names are left to the caller. Hashes of the tensors' ends detect holes and overlaps. A forged
/// file can defeat the hashes, but no tensor can reach outside of the file.
class SafetensorsHeader {
 public:
  /// Reads `text`, with `body_size` bytes after it.
  constexpr SafetensorsHeader(std::string_view text, std::uint64_t body_size)
      : text_(text), body_size_(body_size) {
    if (peek() != '{') {
      refuse(Status::kInvalidHeader);
    } else {
      ++at_;
    }
  }

  /// Reads the next tensor. Returns false after the last one and on an error; `entry` then has the tensor's
  /// name, if there is one.
  constexpr bool next(SafetensorsEntry& entry) {
    while (status_ == Status::kOk && !ended_) {
      entry = {};
      if (take('}')) {
        finish();
        break;
      }
      if (!first_) need(',');
      first_ = false;
      entry.name = plain_string();
      need(':');
      if (entry.name != "__metadata__") {
        read(entry);
        return status_ == Status::kOk;
      }
      read_metadata();
    }
    return false;
  }

  /// kOk, or the first error.
  constexpr Status status() const { return status_; }
  /// The text of the object "__metadata__"; empty without one.
  [[nodiscard]] constexpr std::string_view metadata() const { return metadata_; }

 private:
  constexpr void refuse(Status status) {
    if (status_ == Status::kOk) status_ = status;
  }
  [[nodiscard]] constexpr char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  constexpr void skip_spaces() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }
  constexpr bool take(char character) {
    skip_spaces();
    const bool there = peek() == character;
    if (there) ++at_;
    return there;
  }
  constexpr void need(char character) {
    if (!take(character)) refuse(Status::kInvalidHeader);
  }
  [[nodiscard]] constexpr std::string_view since(std::size_t first) const {
    return {text_.data() + first, at_ - first};
  }

  static constexpr bool is_escape(char character) {
    return character == '\\' || static_cast<unsigned char>(character) < 0x20;
  }
  /// The text between two quotes; escapes are errors.
  constexpr std::string_view plain_string() {
    need('"');
    const std::size_t first = at_;
    if (status_ != Status::kOk) return {};
    while (at_ < text_.size() && text_[at_] != '"' && !is_escape(text_[at_])) ++at_;
    if (is_escape(peek()) && at_ < text_.size()) refuse(Status::kEscapedName);
    const std::string_view text = since(first);
    need('"');
    return text;
  }
  /// Skips a string, with escapes.
  constexpr void skip_string() {
    need('"');
    while (peek() != '"' && status_ == Status::kOk) {
      if (static_cast<unsigned char>(peek()) < 0x20) refuse(Status::kInvalidHeader);  // also at the end
      at_ += peek() == '\\' ? 2u : 1u;
    }
    need('"');
  }

  constexpr std::uint64_t number() {
    skip_spaces();
    const auto digit = [this] { return static_cast<unsigned>(peek() - '0'); };
    const std::size_t first = at_;
    std::uint64_t value = 0;
    for (; digit() <= 9; ++at_) {
      if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit(), &value)) {
        refuse(Status::kOverflow);
      }
    }
    const bool has_leading_zero = at_ - first > 1 && text_[first] == '0';
    if (at_ == first || has_leading_zero) refuse(Status::kInvalidHeader);
    return value;
  }

  constexpr void read_metadata() {
    if (!metadata_.empty()) refuse(Status::kInvalidHeader);
    skip_spaces();
    const std::size_t first = at_;
    need('{');
    if (!take('}')) {
      do {
        skip_spaces();
        skip_string();
        need(':');
        skip_spaces();
        skip_string();
      } while (take(','));
      need('}');
    }
    if (status_ == Status::kOk) metadata_ = since(first);
  }

  constexpr void read(SafetensorsEntry& entry) {
    constexpr unsigned kType = 1, kShape = 2, kOffsets = 4;
    unsigned seen = 0, element_bytes = 0;
    need('{');
    do {
      const std::string_view key = plain_string();
      need(':');
      const unsigned part = key == "dtype"          ? kType
                            : key == "shape"        ? kShape
                            : key == "data_offsets" ? kOffsets
                                                    : 0;
      if (part == 0 || (seen & part) != 0) refuse(Status::kInvalidHeader);
      seen |= part;
      if (part == kType) {
        entry.type_name = plain_string();
        const detail::ElementInfo info = detail::element_info(entry.type_name);
        if (entry.type_name.empty()) refuse(Status::kInvalidType);
        entry.type = info.type;
        element_bytes = info.bytes;
      } else if (part == kShape) {
        read_shape(entry);
      } else if (part == kOffsets) {
        need('[');
        entry.begin = number();
        need(',');
        entry.end = number();
        need(']');
      }
    } while (status_ == Status::kOk && take(','));
    need('}');
    if (seen != (kType | kShape | kOffsets)) refuse(Status::kInvalidHeader);
    if (status_ == Status::kOk) check(entry, element_bytes);
  }
  constexpr void read_shape(SafetensorsEntry& entry) {
    need('[');
    if (take(']')) return;
    do {
      const std::uint64_t extent = number();
      if (entry.rank == SafetensorsEntry::kMaxDimensions) return refuse(Status::kInvalidRank);
      entry.shape[entry.rank++] = extent;
    } while (take(','));
    need(']');
  }

  /// `element_bytes` is 0 for an unknown type.
  constexpr void check(const SafetensorsEntry& entry, std::uint64_t element_bytes) {
    std::uint64_t bytes = element_bytes;
    for (int i = 0; i < entry.rank; ++i) {
      if (__builtin_mul_overflow(bytes, entry.shape[i], &bytes)) return refuse(Status::kOverflow);
    }
    if (element_bytes == 0) bytes = entry.bytes();
    if (entry.end < entry.begin || entry.bytes() != bytes) return refuse(Status::kInvalidSize);
    if (entry.end > body_size_) return refuse(Status::kCutShort);
    if (bytes > body_size_ - covered_) return refuse(Status::kOverlap);
    covered_ += bytes;
    if (entry.end > last_) last_ = entry.end;
    balance_ += mix(entry.begin) - mix(entry.end);
  }
  // Tensors cover the body without holes or overlaps if each begins at the end of the header or of another
  // tensor, and no two begin at the same place. Equivalently, two multisets are equal: the begins with the
  // body's end, and the ends with 0.
  constexpr void finish() {
    ended_ = true;
    skip_spaces();
    if (at_ != text_.size()) {
      const bool is_padding =
          text_.find_first_not_of(std::string_view("\0 ", 2), at_) == std::string_view::npos;
      return refuse(is_padding ? Status::kNulPadding : Status::kInvalidHeader);
    }
    if (last_ != body_size_) return refuse(Status::kTrailingBytes);
    if (covered_ != body_size_) return refuse(Status::kHole);
    if (balance_ + mix(body_size_) != mix(0)) return refuse(Status::kOverlap);
  }
  /// The finalizer of splitmix64 (Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014).
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }

  std::string_view text_;
  std::string_view metadata_;
  std::size_t at_ = 0;
  std::uint64_t body_size_;
  std::uint64_t covered_ = 0;  // bytes of all tensors
  std::uint64_t last_ = 0;     // the largest end
  std::uint64_t balance_ = 0;  // hashes of begins minus hashes of ends
  Status status_ = Status::kOk;
  bool first_ = true;
  bool ended_ = false;
};

/// The result for a file. Converts to its Status.
struct [[nodiscard]] SafetensorsResult {
  Status status = Status::kOk;
  /// The refused tensor, if the error concerns one. Points into the text of the file's header, or to a
  /// constant.
  std::string_view tensor{};

  /// The status alone.
  constexpr operator Status() const { return status; }  // NOLINT: most callers ask for no more
};

/// A file in its two parts.
struct SafetensorsFile {
  std::string_view header;  // with the spaces at its end
  std::string_view body;
  Status status;
};

/// Splits a file. kCutShort if the file ends in its header, kHeaderTooLong if that exceeds 100,000,000 bytes,
/// the limit of the reference; both parts are then empty.
[[nodiscard]] constexpr SafetensorsFile split_safetensors(std::string_view file) {
  if (file.size() < 8) return {{}, {}, Status::kCutShort};
  const auto length = detail::little_endian<std::uint64_t>(file.data());
  if (length > 100'000'000) return {{}, {}, Status::kHeaderTooLong};
  if (length > file.size() - 8) return {{}, {}, Status::kCutShort};
  const auto header = static_cast<std::size_t>(length);
  return {{file.data() + 8, header}, {file.data() + 8 + header, file.size() - 8 - header}, Status::kOk};
}

namespace detail {

/// Calls visitor(entry) for the tensors of a valid file: those without elements, then the others in the order
/// of their data.
template <class Visitor>
constexpr void for_each_tensor_in_file(const SafetensorsFile& file, const Visitor& visitor) {
  SafetensorsHeader entries(file.header, file.body.size());
  SafetensorsEntry entry;
  while (entries.next(entry)) {
    if (entry.bytes() == 0) visitor(entry);
  }
  const auto stands_at = [&entry](std::uint64_t at) { return entry.begin == at && entry.bytes() > 0; };
  entries = SafetensorsHeader(file.header, file.body.size());
  for (std::uint64_t at = 0; at < file.body.size(); at = entry.end) {  // there are no holes
    while (entries.next(entry) && entry.bytes() == 0) {
    }
    if (!stands_at(at)) {  // the header has another order, or has ended
      entries = SafetensorsHeader(file.header, file.body.size());
      while (entries.next(entry) && !stands_at(at)) {
      }
    }
    visitor(entry);
  }
}

/// The number of elements of a readable type.
constexpr std::uint64_t elements_of(const SafetensorsEntry& entry) {
  return entry.bytes() / static_cast<unsigned>(bytes_of(entry.type));
}
/// One element; integers are not scaled.
constexpr double number_at(const SafetensorsFile& file, const SafetensorsEntry& entry, std::uint64_t index) {
  const std::uint64_t byte = entry.begin + index * static_cast<unsigned>(bytes_of(entry.type));
  return element<double>(entry.type, file.body.data() + byte);
}

/// The last tensor of a file that meets condition(entry); an entry of rank 0 without a name if there is none.
template <class Condition>
constexpr SafetensorsEntry find_tensor(const SafetensorsFile& file, const Condition& condition) {
  SafetensorsHeader entries(file.header, file.body.size());
  SafetensorsEntry entry, found;
  while (entries.next(entry)) {
    if (condition(entry)) found = entry;
  }
  return found;
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
