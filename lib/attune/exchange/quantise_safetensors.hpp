// A .safetensors file with its weights in 8 or 16 bits, written anew without knowledge of the model.
//
//   status = attune::quantise_safetensors(file, attune::ElementType::kI8, sink, report);
//
// What has two dimensions or more, but for those of 1 in front, becomes I8, BF16 or F16 as core/quantise.hpp
// does; the scales of an I8 are NAME.scale, one for each row. All else becomes F32, but for F64, as the
// scales of what was F64. Widest tensors come first, so that all can be referred to where they stand, and the
// metadata stay. attune_add_model(… QUANTISE int8) has a build do it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <attune/core/quantise.hpp>
#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/write_safetensors.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

/// A tensor as a matrix of as many rows as it has scales.
struct RowsOfEntry {
  const char* bytes;
  ElementType type;
  int rows;
  int cols;

  /// A row's number in the arithmetic of the file's type.
  template <class Scalar>
  [[nodiscard]] Scalar at(int row, int col) const {
    return element<Scalar>(type, bytes + (static_cast<std::size_t>(row) * static_cast<std::size_t>(cols) +
                                          static_cast<std::size_t>(col)) *
                                             static_cast<std::size_t>(bytes_of(type)));
  }
  template <class Scalar>
  [[nodiscard]] Scalar scale(int row) const {
    Scalar largest = 0;
    for (int col = 0; col < cols; ++col) {
      const Scalar size = magnitude_of(at<Scalar>(row, col));
      if (size > largest) largest = size;
    }
    return int8_scale(largest);
  }
};

/// What a writer of such a file does, one tensor after the other.
template <class Element, class Sink, class Report>
class SafetensorsQuantiser {
 public:
  SafetensorsQuantiser(const SafetensorsFile& file, Sink& sink, const Report& report)
      : file_(file), out_(sink), report_(report) {}

  /// Whether every tensor can be written.
  [[nodiscard]] Status check() const {
    Status status = Status::kOk;
    const Status read = for_each_entry([&](const SafetensorsEntry& entry) {
      if (entry.bytes() > 0x7FFFFFFFu) status = Status::kOverflow;
      if (status != Status::kOk || !is_matrix(entry)) return;
      const RowsOfEntry matrix = rows_of(entry);
      for (int i = 0; i < matrix.rows; ++i) {
        for (int j = 0; j < matrix.cols; ++j) {
          const bool fits = matrix.type == ElementType::kF64 ? can_be_narrow<Element>(matrix.at<double>(i, j))
                                                             : can_be_narrow<Element>(matrix.at<float>(i, j));
          if (!fits) status = Status::kNotFinite;
        }
      }
    });
    return read != Status::kOk ? read : status;
  }

  void write() {
    std::size_t length = 0;
    auto count = [&length](const char*, std::size_t size) { length += size; };
    ByteWriter counter(count);
    add_header(counter);
    counter.flush();
    const std::size_t padding = (8 - length % 8) % 8;
    out_.add_little_endian(std::uint64_t{length + padding});
    add_header(out_);
    out_.add(std::string_view("       ", padding));
    for_each_part([this](const SafetensorsEntry& entry, Part part) {
      if (part == Part::kAsItIs) {
        out_.add(std::string_view(file_.body.data() + entry.begin, static_cast<std::size_t>(entry.bytes())));
      } else if (entry.type == ElementType::kF64) {
        add_numbers<double>(entry, part);
      } else {
        add_numbers<float>(entry, part);
      }
    });
    out_.flush();
  }

 private:
  enum class Part { kWide, kScales, kNarrow, kAsItIs };

  template <class Visitor>
  Status for_each_entry(const Visitor& visitor) const {
    SafetensorsHeader entries(file_.header, file_.body.size());
    SafetensorsEntry entry;
    while (entries.next(entry)) visitor(entry);
    return entries.status();
  }
  /// In the order of the new file.
  template <class Visitor>
  void for_each_part(const Visitor& visitor) const {
    for (const bool is_double : {true, false}) {
      static_cast<void>(for_each_entry([&](const SafetensorsEntry& entry) {
        if (!is_float(entry) || (entry.type == ElementType::kF64) != is_double) return;
        if (!is_matrix(entry)) {
          visitor(entry, Part::kWide);
        } else if (Element::kScaled) {
          visitor(entry, Part::kScales);
        }
      }));
    }
    static_cast<void>(for_each_entry([&](const SafetensorsEntry& entry) {
      if (is_matrix(entry)) visitor(entry, Part::kNarrow);
    }));
    static_cast<void>(for_each_entry([&](const SafetensorsEntry& entry) {
      if (!is_float(entry)) visitor(entry, Part::kAsItIs);
    }));
  }

  static int first_dimension(const SafetensorsEntry& entry) {
    int first = 0;
    while (first < entry.rank - 2 && entry.shape[first] == 1) ++first;
    return first;
  }
  static bool is_float(const SafetensorsEntry& entry) {
    return entry.type != ElementType::kOther && entry.type != ElementType::kI8;
  }
  static bool is_matrix(const SafetensorsEntry& entry) { return is_float(entry) && entry.rank >= 2; }
  RowsOfEntry rows_of(const SafetensorsEntry& entry) const {
    const auto elements = static_cast<int>(entry.bytes() / static_cast<unsigned>(bytes_of(entry.type)));
    const int rows = is_matrix(entry) ? static_cast<int>(entry.shape[first_dimension(entry)]) : 1;
    return {file_.body.data() + entry.begin, entry.type, rows, elements / rows};
  }

  void add_header(auto& out) const {
    SafetensorsHeader entries(file_.header, file_.body.size());
    SafetensorsEntry last;
    while (entries.next(last)) {
    }
    std::size_t offset = 0;
    out.add("{");
    if (!entries.metadata().empty()) {
      out.add("\"__metadata__\":");
      out.add(entries.metadata());
    }
    bool first = entries.metadata().empty();
    for_each_part([&](const SafetensorsEntry& entry, Part part) {
      const bool is_double = entry.type == ElementType::kF64;
      const RowsOfEntry matrix = rows_of(entry);  // of what is no float: its bytes alone count
      const auto rows = static_cast<std::size_t>(matrix.rows), cols = static_cast<std::size_t>(matrix.cols);
      std::size_t bytes = is_double ? 8 : 4;
      std::string_view type = is_double ? "F64" : "F32";
      if (part == Part::kNarrow) {
        constexpr ElementType kType = kElementTypeOfNarrow<Element>;
        bytes = sizeof(Element);
        type = kType == ElementType::kI8 ? "I8" : kType == ElementType::kBF16 ? "BF16" : "F16";
      }
      if (part == Part::kAsItIs) type = entry.type_name;
      out.add(first ? "\"" : ",\"");
      first = false;
      out.add(entry.name);
      out.add(part == Part::kScales ? ".scale\":{\"dtype\":\"" : "\":{\"dtype\":\"");
      out.add(type);
      out.add("\",\"shape\":[");
      if (part == Part::kScales) {
        out.add(rows);
      } else {
        for (int i = 0; i < entry.rank; ++i) {
          if (i > 0) out.add(",");
          out.add(static_cast<std::size_t>(entry.shape[i]));
        }
      }
      out.add("],\"data_offsets\":[");
      out.add(offset);
      offset += part == Part::kAsItIs   ? static_cast<std::size_t>(entry.bytes())
                : part == Part::kScales ? bytes * rows
                                        : bytes * rows * cols;
      out.add(",");
      out.add(offset);
      out.add("]}");
    });
    out.add("}");
  }

  template <class Scalar>
  void add_scalar(Scalar value) {
    using Bits = std::conditional_t<sizeof(Scalar) == 8, std::uint64_t, std::uint32_t>;
    out_.add_little_endian(std::bit_cast<Bits>(value));
  }
  void add_element(Int8 element) {
    const char byte = static_cast<char>(element.value);
    out_.add(std::string_view(&byte, 1));
  }
  template <class Half>
  void add_element(Half element) {
    out_.add_little_endian(element.bits);
  }
  template <class Scalar>
  void add_numbers(const SafetensorsEntry& entry, Part part) {
    const RowsOfEntry matrix = rows_of(entry);
    ErrorSums sums;
    for (int i = 0; i < matrix.rows; ++i) {
      const Scalar scale = part != Part::kWide && Element::kScaled ? matrix.scale<Scalar>(i) : Scalar(1);
      if (part == Part::kScales) add_scalar(scale);
      if (part == Part::kScales) continue;
      for (int j = 0; j < matrix.cols; ++j) {
        const auto value = matrix.at<Scalar>(i, j);
        if (part == Part::kWide) {
          add_scalar(value);
        } else {
          const auto narrowed = narrow<Element>(value, scale);
          add_element(narrowed);
          sums.add(static_cast<double>(value),
                   static_cast<double>(scale * static_cast<Scalar>(widen(narrowed))));
        }
      }
    }
    if (part == Part::kNarrow) report_(entry.name, sums.error());
  }

  SafetensorsFile file_;
  ByteWriter<Sink> out_;
  const Report& report_;
};

}  // namespace detail

/// Writes a file with its weights as kI8, kBF16 or kF16; report(name, QuantisationError) hears of each of
/// them. kInvalidType for another type, kOverflow of a tensor of 2 GiB, kNotFinite where a weight is infinite
/// or NaN, or becomes so; then nothing is written. The sink gets pieces of at most 64 bytes.
template <detail::CheckedFile Source, class Sink, class Report>
Status quantise_safetensors(Source&& file, ElementType type, Sink&& sink, const Report& report) {
  const SafetensorsFile parts = split_safetensors(detail::bytes_of_file(file));
  if (parts.status != Status::kOk) return parts.status;
  const auto with = [&]<class Element>(Element) {
    detail::SafetensorsQuantiser<Element, std::remove_reference_t<Sink>, Report> quantiser(parts, sink,
                                                                                           report);
    const Status status = quantiser.check();
    if (status == Status::kOk) quantiser.write();
    return status;
  };
  if (type == ElementType::kI8) return with(Int8{});
  if (type == ElementType::kBF16) return with(Bfloat16{});
  if (type == ElementType::kF16) return with(Float16{});
  return Status::kInvalidType;
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
