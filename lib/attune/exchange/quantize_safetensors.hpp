// Rewrites a .safetensors file with its weights in 8 or 16 bits, without knowledge of the model.
//
//   status = attune::quantize_safetensors(file, attune::ElementType::kI8, sink, report);
//
// Weights, as is_weight() finds them, become I8, BF16 or F16, as in weights/quantize.hpp. I8 weights have
// scales in NAME.scale, one per row. Other floats become F32, except F64 tensors and scales of F64 weights;
// integers stay as they are. The widest types come first, so that all tensors can be used in place. Metadata
// are kept. In a build, attune_add_model(… QUANTIZE int8) does this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/write_safetensors.hpp>
#include <attune/weights/quantize.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// A tensor as a matrix with one row per scale.
struct RowsOfEntry {
  const char* bytes;
  ElementType type;
  int rows;
  int cols;

  /// A number of a row, in the arithmetic of the file's type.
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

/// Writes such a file, tensor by tensor.
template <class Element, class Sink, class Report, class IsWeight>
class SafetensorsQuantizer {
 public:
  SafetensorsQuantizer(const SafetensorsFile& file, Sink& sink, const Report& report,
                       const IsWeight& is_weight)
      : file_(file), out_(sink), report_(report), is_weight_(is_weight) {}

  /// Whether every tensor can be written.
  SafetensorsResult check() const {
    SafetensorsResult result;
    const Status read = for_each_entry([&](const SafetensorsEntry& entry) {
      if (result != Status::kOk) return;
      if (entry.bytes() > 0x7FFFFFFFu) result = {Status::kOverflow, entry.name};
      if (result != Status::kOk || !is_quantized(entry)) return;
      const RowsOfEntry matrix = rows_of(entry);
      for (int i = 0; i < matrix.rows; ++i) {
        for (int j = 0; j < matrix.cols; ++j) {
          const bool fits = matrix.type == ElementType::kF64
                                ? can_be_quantized<Element>(matrix.at<double>(i, j))
                                : can_be_quantized<Element>(matrix.at<float>(i, j));
          if (!fits) result = {Status::kNotFinite, entry.name};
        }
      }
    });
    return read != Status::kOk ? SafetensorsResult{read} : result;
  }

  void write() {
    SafetensorsHeader entries(file_.header, file_.body.size());
    for (SafetensorsEntry entry; entries.next(entry);) {
    }
    add_header(out_, entries.metadata(), [this](auto& header) { add_tensors(header); });
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
  enum class Part { kWide, kScales, kQuantized, kAsItIs };

  template <class Visitor>
  Status for_each_entry(const Visitor& visitor) const {
    SafetensorsHeader entries(file_.header, file_.body.size());
    SafetensorsEntry entry;
    while (entries.next(entry)) visitor(entry);
    return entries.status();
  }
  /// Visits in the order of the new file.
  template <class Visitor>
  void for_each_part(const Visitor& visitor) const {
    for (const bool is_double : {true, false}) {
      static_cast<void>(for_each_entry([&](const SafetensorsEntry& entry) {
        if (!is_float(entry) || (entry.type == ElementType::kF64) != is_double) return;
        if (!is_quantized(entry)) {
          visitor(entry, Part::kWide);
        } else if (Element::kScaled) {
          visitor(entry, Part::kScales);
        }
      }));
    }
    static_cast<void>(for_each_entry([&](const SafetensorsEntry& entry) {
      if (is_quantized(entry)) visitor(entry, Part::kQuantized);
    }));
    static_cast<void>(for_each_entry([&](const SafetensorsEntry& entry) {
      if (!is_float(entry)) visitor(entry, Part::kAsItIs);
    }));
  }

  static bool is_float(const SafetensorsEntry& entry) {
    return entry.type != ElementType::kOther && entry.type != ElementType::kI8;
  }
  [[nodiscard]] bool is_quantized(const SafetensorsEntry& entry) const {
    return is_float(entry) && entry.rank >= 2 && entry.bytes() > 0 && is_weight_(entry);
  }
  [[nodiscard]] RowsOfEntry rows_of(const SafetensorsEntry& entry) const {
    int first = 0;
    while (first < entry.rank - 2 && entry.shape[first] == 1) ++first;
    const int rows = is_quantized(entry) ? static_cast<int>(entry.shape[first]) : 1;
    return {file_.body.data() + entry.begin, entry.type, rows, static_cast<int>(elements_of(entry)) / rows};
  }

  void add_tensors(auto& header) const {
    for_each_part([&](const SafetensorsEntry& entry, Part part) {
      if (part == Part::kAsItIs) {
        header.add(entry.name, "", entry.type_name, entry.rank, entry.shape,
                   static_cast<std::size_t>(entry.bytes()));
        return;
      }
      const ElementType wide = entry.type == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
      const ElementType type = part == Part::kQuantized ? kElementTypeOf<Element> : wide;
      const auto rows = static_cast<std::uint64_t>(rows_of(entry).rows);
      const bool scales = part == Part::kScales;
      const std::uint64_t elements = scales ? rows : elements_of(entry);
      header.add(entry.name, scales ? ".scale" : "", name_of(type), scales ? 1 : entry.rank,
                 scales ? &rows : entry.shape,
                 static_cast<std::size_t>(elements) * static_cast<std::size_t>(bytes_of(type)));
    });
  }

  void add_quantized(Int8 value) {
    const char byte = static_cast<char>(value.value);
    out_.add(std::string_view(&byte, 1));
  }
  template <class Half>
  void add_quantized(Half value) {
    out_.add_little_endian(value.bits);
  }
  template <class Scalar>
  void add_numbers(const SafetensorsEntry& entry, Part part) {
    const RowsOfEntry matrix = rows_of(entry);
    ErrorSums sums;
    for (int i = 0; i < matrix.rows; ++i) {
      const Scalar scale = part != Part::kWide && Element::kScaled ? matrix.scale<Scalar>(i) : Scalar(1);
      if (part == Part::kScales) out_.add_element(kElementTypeOf<Scalar>, scale);
      if (part == Part::kScales) continue;
      for (int j = 0; j < matrix.cols; ++j) {
        const auto value = matrix.at<Scalar>(i, j);
        if (part == Part::kWide) {
          out_.add_element(kElementTypeOf<Scalar>, value);
        } else {
          const auto narrowed = narrow<Element>(value, scale);
          add_quantized(narrowed);
          sums.add(static_cast<double>(value),
                   static_cast<double>(scale * static_cast<Scalar>(dequantize(narrowed))));
        }
      }
    }
    if (part == Part::kQuantized) report_(entry.name, sums.error());
  }

  SafetensorsFile file_;
  ByteWriter<Sink> out_;
  const Report& report_;
  const IsWeight& is_weight_;
};

}  // namespace detail

/// Whether a tensor of a file is a weight, by name and shape: it has several rows, or its name ends with
/// "weight", and it is not a table of positions: one of the words of its name, between underscores, is "pos"
/// or begins with "position". Class tokens and `bias_k`, [1, 1, d], are not weights.
constexpr bool is_weight(const SafetensorsEntry& entry) {
  const auto last_part = [](std::string_view name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string_view::npos ? name
                                         : std::string_view(name.data() + dot + 1, name.size() - dot - 1);
  };
  std::string_view name = last_part(entry.name);
  bool weight = name.ends_with("weight");
  for (int i = 0; i < entry.rank - 1; ++i) weight = weight || entry.shape[i] > 1;
  // An nn.Embedding of positions: the part before "weight".
  if (name == "weight" && entry.name.size() > name.size()) {
    name = last_part({entry.name.data(), entry.name.size() - name.size() - 1});
  }
  bool positions = name == "wpe";  // GPT-2
  for (std::size_t begin = 0, end = 0; begin < name.size(); begin = end + 1) {
    end = name.find('_', begin) == std::string_view::npos ? name.size() : name.find('_', begin);
    const std::string_view part(name.data() + begin, end - begin);
    positions = positions || part == "pos" || part.starts_with("position");
  }
  return weight && !positions;
}

/// Writes a file with its weights as kI8, kBF16 or kF16: tensors of two or more dimensions that pass
/// is_weight(SafetensorsEntry). Calls report(name, QuantizationError) for each of them. The sink gets slices
/// of at most 64 bytes. On an error nothing is written: kInvalidType for another type, kOverflow for a tensor
/// of 2 GiB, kNotFinite if a weight is infinite or NaN, or becomes so.
template <detail::CheckedFile Source, class Sink, class Report, class IsWeight = decltype(&is_weight)>
SafetensorsResult quantize_safetensors(Source&& file, ElementType type, Sink&& sink, const Report& report,
                                       const IsWeight& is_weight_of_model = &is_weight) {
  const SafetensorsFile parts = split_safetensors(detail::bytes_of_file(file));
  if (parts.status != Status::kOk) return {parts.status};
  const auto with = [&]<class Element>(Element) {
    detail::SafetensorsQuantizer<Element, std::remove_reference_t<Sink>, Report, IsWeight> quantizer(
        parts, sink, report, is_weight_of_model);
    const SafetensorsResult result = quantizer.check();
    if (result == Status::kOk) quantizer.write();
    return result;
  };
  if (type == ElementType::kI8) return with(Int8{});
  if (type == ElementType::kBF16) return with(Bfloat16{});
  if (type == ElementType::kF16) return with(Float16{});
  return {Status::kInvalidType};
}

}  // namespace ATTUNE_NAMESPACE
