// Parameters from PyTorch: reads .safetensors files (safetensors.hpp) by the names of a module
// (pytorch_names.hpp). write_safetensors.hpp is the way back.
//
//   using Names = attune::PyTorchModule<Model, "embed", "encoder.layers", "head">;
//
//   status = attune::read_safetensors<Names>(file, parameters);    // a copy, of the model's scalar
//   status = attune::refer_to_safetensors<Names>(file, in_place);  // pointers into the file
//
// `in_place` is a Model::ParametersOf<TransposedReference, Reference>. For a file that is part of the
// program, both are constants: model_file.hpp.
//
// Weights may be I8, with the scales of their rows in NAME.scale, as quantize_safetensors.hpp writes them.
// Copies apply the scales. A Model::ParametersOf<Int8Reference, Reference> (weights/quantized_weights.hpp)
// refers to such a file in place; 16-bit weights have their own references.
//
// A file is a container of chars or bytes: its contents, not a path. A literal or a std::string could be a
// path and is a compile error; pass a std::string_view of the contents. The file must have exactly the
// model's tensors, each with its name and shape. In Python: safetensors.torch.save_file(model.state_dict(),
// path).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <attune/exchange/pytorch_names.hpp>
#include <attune/exchange/safetensors.hpp>
#include <attune/exchange/state_dict.hpp>
#include <attune/weights/quantized_weights.hpp>

namespace ATTUNE_NAMESPACE {

template <detail::CheckedNames Names>
struct SafetensorsLayout;

namespace detail {

template <class Source>
constexpr bool check_file() {
  using Held = std::remove_reference_t<Source>;
  constexpr bool kText = std::is_pointer_v<std::remove_cv_t<Held>> ||
                         std::is_same_v<std::remove_extent_t<Held>, const char> ||
                         requires(const Held& text) {
    text.c_str();
  };
  constexpr bool kBytes = requires(const Held& file) {
    requires sizeof *std::data(file) == 1;
    std::size(file);
  };
  static_assert(
      Holds<!kText>,
      "attune: pass the file's bytes, not its path, as a std::vector, a std::span or a std::string_view");
  static_assert(Holds<(kText || kBytes)>, "attune: a file is an array of char, unsigned char or std::byte");
  return true;  // one error names the right types
}
/// A container with the bytes of a file.
template <class Source>
concept CheckedFile = check_file<Source>();
/// The bytes of a container.
template <class Source>
constexpr std::string_view bytes_of_file(const Source& file) {
  if constexpr (requires { static_cast<const char*>(std::data(file)); }) {
    return {std::data(file), std::size(file)};
  } else if constexpr (requires { std::data(file); }) {
    return {reinterpret_cast<const char*>(std::data(file)), std::size(file)};
  } else {
    return {};
  }
}

/// Whether a tensor of the file can hold the scales of a tensor's rows.
constexpr bool can_be_scales(const SafetensorsEntry& entry, const StateDictTensor& tensor) {
  return entry.rank == 1 && (tensor.layout == StateDictLayout::kPositions
                                 ? entry.shape[0] >= static_cast<std::uint64_t>(tensor.rows)
                                 : entry.shape[0] == static_cast<std::uint64_t>(tensor.rows));
}
/// "weight" for "weight.scale"; empty for other names.
constexpr std::string_view scaled_by(std::string_view name) {
  constexpr std::string_view kSuffix = ".scale";
  return name.ends_with(kSuffix) ? std::string_view(name.data(), name.size() - kSuffix.size())
                                 : std::string_view{};
}

/// A file's rows of `row_length` numbers.
template <class Scalar>
[[gnu::noinline]] constexpr void read_elements(ElementType type, const char* from, int row_length,
                                               const StateDictShape& shape, Scalar* to) {
  for (int row = 0; row < shape.rows; ++row) {
    const char* next = from + row * row_length * bytes_of(type);
    for (int col = 0; col < shape.cols; ++col) {
      to[row * shape.row_stride + col * shape.col_stride] = element<NumberOf<Scalar>>(type, next);
      next += bytes_of(type);
    }
  }
}

template <class Scalar>
[[gnu::noinline]] constexpr void scale_rows(ElementType type, const char* scales, const StateDictShape& shape,
                                            Scalar* to) {
  for (int row = 0; row < shape.rows; ++row) {
    const auto scale = element<NumberOf<Scalar>>(type, scales + row * bytes_of(type));
    for (int col = 0; col < shape.cols; ++col) {
      Scalar& number = to[row * shape.row_stride + col * shape.col_stride];
      number = number * scale;
    }
  }
}

/// A tensor that owns its numbers.
template <class Leaf>
concept IsTensor = requires(std::remove_cvref_t<Leaf>& leaf) {
  leaf.values[0] = leaf.values[0];
};

/// Whether a tensor in a file has a type, and its alignment, for use in place.
template <class Names>
constexpr Status check_in_place(const SafetensorsLayout<Names>& layout, int tensor, ElementType type,
                                ElementType scalar) {
  if (layout.type[tensor] != type) return Status::kInvalidType;
  const auto stands_at = [&](std::size_t begin, ElementType of) {
    return (layout.body + begin) % static_cast<std::size_t>(bytes_of(of)) == 0;
  };
  if (!stands_at(layout.begin[tensor], type)) return Status::kMisaligned;
  if (type == ElementType::kI8) {
    if (layout.scale_type[tensor] != scalar) return Status::kInvalidType;
    if (!stands_at(layout.scale[tensor], scalar)) return Status::kMisaligned;
  }
  return Status::kOk;
}

}  // namespace detail

/// The places of a model's tensors in a file.
template <detail::CheckedNames Names>
struct SafetensorsLayout {
  /// The number of the model's tensors.
  static constexpr int kTensors = detail::StateDict<Names>::kTensors;

  Status status = Status::kOk;                         // the error of the file, or of the model
  std::string_view tensor;                             // name of the refused tensor
  std::string_view metadata;                           // text of the object "__metadata__"; empty without one
  std::size_t body = 0;                                // bytes before the tensors
  std::size_t begin[std::size_t{kTensors}] = {};       // relative to `body`; in the order of names
  ElementType type[std::size_t{kTensors}] = {};        // of its elements; kOther for a missing alias
  std::size_t scale[std::size_t{kTensors}] = {};       // for I8: the start of its scales
  ElementType scale_type[std::size_t{kTensors}] = {};  // for I8: the type of its scales
};

namespace detail {

/// Refuses a file with an alias whose bytes differ from the aliased tensor.
template <class Names>
constexpr void check_aliases(std::string_view body, SafetensorsLayout<Names>& layout) {
  constexpr auto& kTensors = kStateDict<Names>;
  for (int i = 0; i < kTensors.kTensors; ++i) {
    const int of = kTensors.tensors[i].values;
    if (of == i || layout.type[i] == ElementType::kOther) continue;
    const auto bytes = static_cast<std::size_t>(kTensors.tensors[i].size() * bytes_of(layout.type[i]));
    const std::string_view alias(body.data() + layout.begin[i], bytes);
    if (layout.type[i] != layout.type[of] ||
        alias != std::string_view(body.data() + layout.begin[of], bytes)) {
      layout.status = Status::kOtherAlias;
      layout.tensor = kTensors.name(i);
      return;
    }
  }
}
/// Whether a set belongs to the names' model; otherwise names the tensor that does not fit.
template <class Names, class Set>
constexpr SafetensorsResult check_set_of(Set& set) {
  const int tensor = tensor_of_another_shape<Names>(set);
  if (tensor < 0) return {};
  return {Status::kInvalidShape, kStateDict<Names>.name(tensor)};
}

}  // namespace detail

/// The layout from the text of a header, and the size of the tensors after it.
template <detail::CheckedNames Names>
[[nodiscard]] constexpr SafetensorsLayout<Names> safetensors_layout(std::string_view header,
                                                                    std::size_t body_size) {
  constexpr auto& kTensors = detail::kStateDict<Names>;
  SafetensorsLayout<Names> layout;
  bool found[std::size_t{layout.kTensors}] = {}, scaled[std::size_t{layout.kTensors}] = {};
  layout.body = 8 + header.size();
  const auto refuse = [&layout](Status status, std::string_view name) {
    layout.status = status;
    layout.tensor = name;
    return layout;
  };
  SafetensorsHeader entries(header, body_size);
  SafetensorsEntry entry;
  while (entries.next(entry)) {
    const int tensor = kTensors.find(entry.name), has_scale = kTensors.find(detail::scaled_by(entry.name));
    if (tensor < 0 && has_scale >= 0) {
      if (scaled[has_scale]) return refuse(Status::kDuplicateTensor, entry.name);
      if (entry.type != ElementType::kF32 && entry.type != ElementType::kF64) {
        return refuse(Status::kInvalidType, entry.name);
      }
      if (is_vector(kTensors.tensors[has_scale].layout)) {
        return refuse(Status::kInvalidType, kTensors.name(has_scale));
      }
      if (!detail::can_be_scales(entry, kTensors.tensors[has_scale])) {
        return refuse(Status::kInvalidShape, entry.name);
      }
      scaled[has_scale] = true;
      layout.scale[has_scale] = static_cast<std::size_t>(entry.begin);
      layout.scale_type[has_scale] = entry.type;
      continue;
    }
    if (tensor < 0) {
      if (Names::kWholeFile) return refuse(Status::kUnknownTensor, entry.name);
      continue;
    }
    if (found[tensor]) return refuse(Status::kDuplicateTensor, entry.name);
    if (entry.type == ElementType::kOther) return refuse(Status::kInvalidType, entry.name);
    if (!detail::has_shape(entry.rank, entry.shape, kTensors.tensors[tensor])) {
      return refuse(Status::kInvalidShape, entry.name);
    }
    found[tensor] = true;
    layout.begin[tensor] = static_cast<std::size_t>(entry.begin);
    layout.type[tensor] = entry.type;
  }
  if (entries.status() != Status::kOk) return refuse(entries.status(), entry.name);
  for (int i = 0; i < layout.kTensors; ++i) {
    if (!found[i]) {
      if (kTensors.tensors[i].values == i) return refuse(Status::kMissingTensor, kTensors.name(i));
      layout.type[i] = ElementType::kOther;
    }
    if (scaled[i] != (layout.type[i] == ElementType::kI8)) {
      return refuse(Status::kInvalidType, kTensors.name(i));
    }
  }
  layout.metadata = entries.metadata();
  return layout;
}
/// The layout of a file.
template <detail::CheckedNames Names, detail::CheckedFile Source>
[[nodiscard]] constexpr SafetensorsLayout<Names> safetensors_layout(Source&& file) {
  const SafetensorsFile parts = split_safetensors(detail::bytes_of_file(file));
  if (parts.status != Status::kOk) {
    SafetensorsLayout<Names> nothing;
    nothing.status = parts.status;
    return nothing;
  }
  auto layout = safetensors_layout<Names>(parts.header, parts.body.size());
  if (layout.status == Status::kOk) detail::check_aliases(parts.body, layout);
  return layout;
}

/// Copies a file's tensors into a set of any storage, converted to its scalar. Constants of a model stay
/// unchanged. On an error nothing changes. Returns kInvalidShape also if the set belongs to another model.
template <detail::CheckedNames Names, detail::CheckedFile Source, detail::CheckedSet Set>
constexpr SafetensorsResult read_safetensors(Source&& file, Set& set) {
  static_assert(detail::Holds<!std::is_const_v<Set>>,
                "attune::read_safetensors: the destination is const; pass parameters that can change");
  if (const SafetensorsResult checked = detail::check_set_of<Names>(set); checked != Status::kOk)
    return checked;
  const auto layout = safetensors_layout<Names>(file);
  if (layout.status != Status::kOk) return {layout.status, layout.tensor};
  const char* const body = detail::bytes_of_file(file).data() + layout.body;
  detail::for_each_part<Names>(
      [&](const auto& place, detail::StateDictPart part, auto& tensor) {
        if constexpr (detail::IsQuantizedForm<decltype(tensor)>) {
          detail::refuse_quantized<std::remove_cvref_t<decltype(tensor)>>();
        } else if constexpr (requires { view(tensor).data; }) {
          const auto to = view(tensor);
          const ElementType type = layout.type[part.tensor];
          const char* const first = body + layout.begin[part.tensor];
          const auto shape = detail::state_dict_shape<decltype(to)>(place.layout);
          const int row_length = detail::kStateDict<Names>.row_length(part);
          detail::read_elements(type, first + part.first * detail::bytes_of(type), row_length, shape,
                                to.data);
          if (type == ElementType::kI8) {
            const ElementType of_scale = layout.scale_type[part.tensor];
            detail::scale_rows(
                of_scale,
                body + layout.scale[part.tensor] + part.first / row_length * detail::bytes_of(of_scale),
                shape, to.data);
          }
        }
      },
      set);
  return {};
}

/// Points a set of references to the tensors of a file that begins at `file`. Linear weights are
/// TransposedReferences, or 8-bit or 16-bit references of the file's type; tables and vectors are References.
/// Vectors that are Tensors are copied from any type: ParametersOf<Bfloat16Reference, Tensor> suits a file
/// that is all BF16. On an error nothing changes: kInvalidType if a tensor's type differs from the set's,
/// kMisaligned if it is misaligned. To copy at compile time, the compiler needs the file's bytes.
template <detail::CheckedNames Names, class Scalar, detail::CheckedSet Set>
constexpr SafetensorsResult refer_to_safetensors(const SafetensorsLayout<Names>& layout, const Scalar* file,
                                                 Set& set, const char* constant_bytes = nullptr) {
  static_assert(std::endian::native == std::endian::little, "attune: files are little-endian");
  static_assert(detail::Holds<!detail::kStateDict<Names>.has_conv1d()>,
                "attune::kInFlash, refer_to_safetensors: Conv1D weights are [in, out] in the file, packed by "
                "columns, so they must be copied: use read_safetensors() or kCopied");
  constexpr ElementType kScalar = detail::kElementTypeOf<Scalar>;
  if (const SafetensorsResult checked = detail::check_set_of<Names>(set); checked != Status::kOk)
    return checked;
  if (layout.status != Status::kOk) return {layout.status, layout.tensor};
  SafetensorsResult result;
  detail::for_each_part<Names>(
      [&](const auto&, detail::StateDictPart part, const auto& tensor) {
        if constexpr (detail::IsTrained<decltype(tensor)>) {
          using Element = detail::ElementOfForm<std::remove_cvref_t<decltype(tensor)>>;
          if (result != Status::kOk || detail::IsTensor<decltype(tensor)>) return;
          const Status status =
              detail::check_in_place(layout, part.tensor, detail::kElementTypeOf<Element>, kScalar);
          if (status != Status::kOk) result = {status, detail::kStateDict<Names>.name(part.tensor)};
        }
      },
      set);
  if (result != Status::kOk) return result;
  detail::for_each_part<Names>(
      [&](const auto& place, detail::StateDictPart part, auto& tensor) {
        if constexpr (detail::IsTrained<decltype(tensor)>) {
          using Form = std::remove_cvref_t<decltype(tensor)>;
          const std::size_t first = layout.body + layout.begin[part.tensor];
          if constexpr (detail::IsQuantizedForm<Form>) {
            using Rows = decltype(tensor.stored);
            static_assert(detail::Holds<(!std::is_same_v<Form, QuantizedWeights<Rows>> ||
                                         is_transposed(std::remove_cvref_t<decltype(place)>::layout))>,
                          "attune::kInFlash, refer_to_safetensors: weights of a file by OwnNames are [in, "
                          "out]; leave it in "
                          "floats, and use kQuantized or kPackedInt8");
            const int row = part.first / Rows::length;
            tensor.stored = {
                file, first + static_cast<std::size_t>(part.first) * sizeof(typename Rows::Element), nullptr};
            if constexpr (Rows::Element::kScaled) {
              tensor.stored.scales = file + (layout.body + layout.scale[part.tensor]) / sizeof(Scalar) + row;
            }
          } else if constexpr (detail::IsTensor<Form> && Form::rows == 1) {
            const char* const bytes =
                std::is_constant_evaluated() ? constant_bytes : reinterpret_cast<const char*>(file);
            const ElementType type = layout.type[part.tensor];
            detail::read_elements(
                type, bytes + first + static_cast<std::size_t>(part.first * detail::bytes_of(type)), 1,
                detail::state_dict_shape<decltype(view(tensor))>(place.layout), tensor.data());
          } else {
            constexpr auto kLayout = std::remove_cvref_t<decltype(place)>::layout;
            static_assert(
                detail::Holds<detail::state_dict_shape<decltype(view(tensor))>(kLayout).is_stored_alike()>,
                "attune::refer_to_safetensors: PyTorch stores linear weights transposed; use "
                "ParametersOf<TransposedReference, Reference>");
            tensor.first = file + first / sizeof(Scalar) + part.first;
          }
        }
      },
      set);
  return result;
}
/// The same for a file in memory, which must live as long as the set. A temporary does not compile.
template <detail::CheckedNames Names, detail::CheckedFile Source, detail::CheckedSet Set>
SafetensorsResult refer_to_safetensors(Source&& file, Set& set) {
  static_assert(
      detail::Holds<(std::is_lvalue_reference_v<Source> || std::ranges::enable_borrowed_range<Source>)>,
      "attune::refer_to_safetensors: the file is a temporary and does not outlive the parameters; "
      "store it in a variable");
  using Scalar = typename Names::Model::Scalar;
  const char* const first = detail::bytes_of_file(file).data();
  const auto layout = safetensors_layout<Names>(file);
  if (reinterpret_cast<std::uintptr_t>(first) % alignof(Scalar) != 0 && layout.status == Status::kOk) {
    return {Status::kMisaligned};
  }
  return refer_to_safetensors(layout, reinterpret_cast<const Scalar*>(first), set);
}

}  // namespace ATTUNE_NAMESPACE
