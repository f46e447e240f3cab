// A .safetensors file that is a part of the program, in flash.
//
//   attune_add_model(firmware NAME digits_weights FILE digits.safetensors)       in CMakeLists.txt
//
//   #include <digits_weights.hpp>
//   using Names = attune::PyTorchModule<Digits, "embed", "pos", "encoder.layers", "norm", "head">;
//   constexpr auto& kWeights = attune::kInFlash<Names, digits_weights>;
//
//   Digits::forward(kWeights, x, y, scratch);
//   using Head = attune::Frozen<Digits, kWeights>;
//   status = attune::read_safetensors<Names>(attune::bytes_of<digits_weights>(), parameters);  // a copy in
//   RAM
//
// The generated type is a model file, which may be written by hand, too:
//
//   extern "C" const float digits_weights_file[8222];  // the file from its first byte, at a multiple of 16
//   struct digits_weights {
//     using Scalar = float;
//     static constexpr char kHeader[] = R"({"embed.bias":…})";
//     static constexpr std::size_t kSize = 32888;  // of the file, in bytes
//     static constexpr const Scalar* kData = digits_weights_file;
//   };
//
// That the file is the model's is checked by the compiler, of its header: the error names the tensor. The
// numbers themselves may change after that. For a header of 24 encoder layers (288 tensors, 28 KB) clang
// wants -fconstexpr-steps=4000000.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <attune/core/weights.hpp>
#include <attune/exchange/read_safetensors.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// The type of a file that is a part of the program.
template <class File>
concept ModelFile = requires {
  { File::kHeader[0] } -> std::convertible_to<char>;
  { File::kSize } -> std::convertible_to<std::size_t>;
  { File::kData } -> std::convertible_to<const typename File::Scalar*>;
};

/// All of a file, at run time.
template <ModelFile File>
[[nodiscard]] inline std::string_view bytes_of() {
  return {reinterpret_cast<const char*>(File::kData), File::kSize};
}

namespace detail {

// What the compiler names where a file is not the model's.

template <int... extents>
struct Shape;

template <Name tensor>
struct MissingTensor {
  static_assert(sizeof tensor == 0,
                "attune: the file lacks this tensor of the model; it is not the model's file, or other names "
                "belong in PyTorchModule");
};
template <Name tensor>
struct UnknownTensor {
  static_assert(sizeof tensor == 0,
                "attune: the model has no tensor of this name, which the file has; it is not the model's "
                "file, or other names belong in PyTorchModule, or the model is a PyTorchPart of it");
};
template <Name tensor, class OfFile, class OfModel>
struct TensorOfAnotherShape {
  static_assert(sizeof tensor == 0,
                "attune: a tensor of the file has another shape than the model's: its name, its shape in the "
                "file, and the model's, as PyTorch has it");
};
template <Name tensor, ElementType of_file>
struct TensorOfNoUse {
  static_assert(sizeof tensor == 0, "attune: a tensor of the model is of floating point, not of this type");
};
template <Name tensor, ElementType of_file, ElementType of_model>
struct TensorOfAnotherType {
  static_assert(sizeof tensor == 0,
                "attune::kInFlash: a tensor is used where it stands, so its type in the file has to be the "
                "model's scalar; save it as that, or copy it: read_safetensors() at run time, or kCopied");
};
template <Name tensor>
struct MisalignedTensor {
  static_assert(sizeof tensor == 0,
                "attune::kInFlash: a tensor is used where it stands, but this one stands askew; write the "
                "file with safetensors, which aligns it, or copy it: read_safetensors(), or kCopied");
};
template <Status status, Name last_tensor>
struct DamagedFile {
  static_assert(sizeof last_tensor == 0,
                "attune: the file is no safetensors file, or damaged: what is wrong, and the tensor that was "
                "read when it was found");
};

template <std::size_t length>
constexpr auto name_of(std::string_view text) {
  char characters[length + 1] = {};
  for (std::size_t i = 0; i < length; ++i) characters[i] = text[i];
  return Name<length + 1>(characters);
}
template <const std::string_view& text>
inline constexpr auto kName = name_of<text.size()>(text);

/// What is known of a file before the program runs.
template <class Names, class File>
struct FileOfModel {
  static constexpr std::string_view kHeader{File::kHeader, sizeof File::kHeader - 1};
  static constexpr std::size_t kBodySize = File::kSize - 8 - kHeader.size();
  static constexpr auto kLayout = safetensors_layout<Names>(kHeader, kBodySize);
  static constexpr ElementType kScalar = kElementTypeOf<typename Names::Model::Scalar>;

  /// The first tensor that cannot be used where it stands, or kTensors.
  static constexpr int kNotInPlace = [] {
    int i = 0;
    while (i < kLayout.kTensors && kLayout.type[i] == kScalar &&
           (kLayout.body + kLayout.begin[i]) % bytes_of(kScalar) == 0) {
      ++i;
    }
    return i;
  }();
  static constexpr std::string_view kTensor = kLayout.status == Status::kOk && kNotInPlace < kLayout.kTensors
                                                  ? kStateDict<Names>.name(kNotInPlace)
                                                  : kLayout.tensor;

  /// kTensor as the file has it.
  static constexpr SafetensorsEntry kEntry = [] {
    SafetensorsHeader entries(kHeader, kBodySize);
    SafetensorsEntry entry;
    while (entries.next(entry) && entry.name != kTensor) {
    }
    return entry;
  }();
  static constexpr auto shape_of_file() {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return std::type_identity<Shape<static_cast<int>(kEntry.shape[i])...>>{};
    }
    (std::make_index_sequence<std::size_t{kEntry.rank}>{});
  }
  static constexpr auto shape_of_model() {
    constexpr StateDictTensor kOfModel = kStateDict<Names>.tensors[kStateDict<Names>.find(kTensor)];
    if constexpr (kOfModel.layout == StateDictLayout::kVector) {
      return std::type_identity<Shape<kOfModel.rows>>{};
    } else {
      return std::type_identity<Shape<kOfModel.rows, kOfModel.cols>>{};
    }
  }

  /// Whether the file is the model's; where it is not, an error says why.
  static constexpr bool is_the_models() {
    constexpr Status kStatus = kLayout.status;
    if constexpr (kStatus == Status::kMissingTensor) {
      return sizeof(MissingTensor<kName<kTensor>>) == 0;
    } else if constexpr (kStatus == Status::kUnknownTensor) {
      return sizeof(UnknownTensor<kName<kTensor>>) == 0;
    } else if constexpr (kStatus == Status::kInvalidShape) {
      using OfFile = typename decltype(shape_of_file())::type;
      using OfModel = typename decltype(shape_of_model())::type;
      return sizeof(TensorOfAnotherShape<kName<kTensor>, OfFile, OfModel>) == 0;
    } else if constexpr (kStatus == Status::kInvalidType && kEntry.type == ElementType::kOther) {
      return sizeof(TensorOfNoUse<kName<kTensor>, kEntry.type>) == 0;
    } else if constexpr (kStatus != Status::kOk) {
      return sizeof(DamagedFile<kStatus, kName<kTensor>>) == 0;
    } else {
      return true;
    }
  }
  /// And whether it can be used where it stands.
  static constexpr bool stands_in_place() {
    if constexpr (!is_the_models()) {
      return false;
    } else if constexpr (kNotInPlace == kLayout.kTensors) {
      static_assert(
          std::is_same_v<typename File::Scalar, typename Names::Model::Scalar>,
          "attune::kInFlash: the file's tensors are of several types, the model's not of File::Scalar; "
          "save them as one");
      return std::is_same_v<typename File::Scalar, typename Names::Model::Scalar>;
    } else if constexpr (kEntry.type != kScalar) {
      return sizeof(TensorOfAnotherType<kName<kTensor>, kEntry.type, kScalar>) == 0;
    } else {
      return sizeof(MisalignedTensor<kName<kTensor>>) == 0;
    }
  }
};

template <class Names, class File>
constexpr auto set_in_flash() {
  SetOf<typename Names::Model, TransposedReference, Reference> set{};
  using Of = FileOfModel<Names, File>;
  if constexpr (Of::stands_in_place()) {
    static_cast<void>(refer_to_safetensors(Of::kLayout, File::kData, set));
  }
  return set;
}

template <class Names, class File>
constexpr auto copied_set() {
  typename Names::Model::Parameters set{};
  static_assert(
      requires { File::kFile; },
      "attune::kCopied: the compiler has to see the file: attune_add_model(… ARRAY)");
  if constexpr (FileOfModel<Names, File>::is_the_models()) {
    const auto bytes = std::bit_cast<std::array<char, sizeof File::kFile>>(File::kFile);
    static_cast<void>(read_safetensors<Names>(std::string_view(bytes.data(), File::kSize), set));
  }
  return set;
}

}  // namespace detail

/// A file's tensors where they stand, as a constant set of a model's parameters: pointers into the file.
/// Constants that Frozen and BiasesAndNorms may have. A file that is not the model's does not compile.
template <class Names, ModelFile File>
inline constexpr auto kInFlash = detail::set_in_flash<Names, File>();

/// The same copied by the compiler, Model::Parameters: of 16-bit tensors, too. The file is one of
/// attune_add_model(… ARRAY), which then takes no flash itself.
template <class Names, ModelFile File>
inline constexpr auto kCopied = detail::copied_set<Names, File>();

}  // namespace attune::inline ATTUNE_ARITHMETIC
