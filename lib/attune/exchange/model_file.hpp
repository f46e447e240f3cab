// A .safetensors file as part of the program, in flash.
//
//   attune_add_model(firmware NAME digits_weights FILE digits.safetensors)       in CMakeLists.txt
//
//   #include <digits_weights.hpp>
//   using Names = attune::PyTorchModule<Digits, "embed", "pos", "encoder.layers", "norm", "head">;
//   constexpr auto& kWeights = attune::kInFlash<Names, digits_weights>;
//
//   Digits::forward(kWeights, x, y, scratch);
//   using Fixed = attune::Frozen<Digits, kWeights>;  // trains the model's other parameters
//   status = attune::read_safetensors<Names>(attune::bytes_of<digits_weights>(), parameters);  // into RAM
//
// The generated type is a model file. You can also write one by hand:
//
//   extern "C" const float digits_weights_file[8222];  // the file from its first byte, at a multiple of 16
//   struct digits_weights {
//     using Scalar = float;
//     static constexpr char kHeader[] = R"({"embed.bias":…})";
//     static constexpr std::size_t kSize = 32888;  // of the file, in bytes
//     static constexpr const Scalar* kData = digits_weights_file;
//   };
//
// Weights and embeddings may be I8 with scales, BF16 or F16, all of one type, with biases, norms and
// positions in F32. kInFlash refers to them in place (weights/quantized_weights.hpp). attune_add_model(…
// QUANTIZE int8) makes such a file. For a file that is all BF16, QUANTIZE bf16 converts everything except
// weights to F32, and keeps the bits of weights. With ARRAY, the compiler converts biases and norms itself.
//
// For products in integers (weights/packed_weights.hpp), the compiler packs a file of floats in the target's
// order. Flash then holds only the packed set:
//
//   attune_add_model(firmware NAME digits_weights FILE digits.safetensors QUANTIZE packed_int8)
//
//   constexpr auto& kIntegers = attune::kPackedInt8<Names, digits_weights>;
//
// A file by OwnNames is used in place as floats. Its weights are [in, out], so the compiler quantizes them,
// too: kPackedInt8, or kQuantized<Names, File, Int8Weights>.
//
// The compiler checks the header against the model, and its error names the tensor. The numbers may change
// after that. A header of 24 encoder layers (288 tensors, 28 KB) needs clang's -fconstexpr-steps=4000000.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <attune/exchange/read_safetensors.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>
#include <attune/weights/quantized_weights.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// The type of a file that is part of the program.
template <class File>
concept ModelFile = requires {
  { File::kHeader[0] } -> std::convertible_to<char>;
  { File::kSize } -> std::convertible_to<std::size_t>;
  { File::kData } -> std::convertible_to<const typename File::Scalar*>;
};

/// The whole file, at run time.
template <ModelFile File>
[[nodiscard]] inline std::string_view bytes_of() {
  return {reinterpret_cast<const char*>(File::kData), File::kSize};
}

namespace detail {

// Names in the compiler's error for a refused file.

template <int... shape>
struct InFile;
template <int... shape>
struct InModel;
#if defined(__clang__)  // 14 prints the characters of a Name as numbers, and truncates them
template <char... name>
struct TensorNamed;
template <const std::string_view& name>
constexpr auto tensor_named() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::type_identity<TensorNamed<name[i]...>>{};
  }
  (std::make_index_sequence<name.size()>{});
}
#else
template <Name name>
struct TensorNamed;
template <const std::string_view& name>
constexpr auto tensor_named() {
  constexpr auto kName = [] {
    char text[name.size() + 1] = {};
    for (std::size_t i = 0; i < name.size(); ++i) text[i] = name[i];
    return Name<name.size() + 1>(text);
  }();
  return std::type_identity<TensorNamed<kName>>{};
}
#endif

template <class Tensor>
struct MissingTensor {
  static_assert(Holds<(sizeof(Tensor*) == 0)>,
                "attune: the file lacks this tensor: use the model's file, or other names in PyTorchModule");
};
template <class Tensor>
struct UnknownTensor {
  static_assert(Holds<(sizeof(Tensor*) == 0)>,
                "attune: the file has a tensor that the model lacks: use the model's file, other names in "
                "PyTorchModule, or a PyTorchPart");
};
template <class Tensor, class OfFile, class OfModel>
struct TensorOfAnotherShape {
  static_assert(Holds<(sizeof(Tensor*) == 0)>,
                "attune: this tensor has different shapes in the file and in the model");
};
template <class Tensor>
struct TensorOfNoUse {
  static_assert(Holds<(sizeof(Tensor*) == 0)>,
                "attune: this tensor must be F64, F32, F16 or BF16, or an I8 weight with its row scales in "
                "NAME.scale; biases and norms must be floats");
};
template <class Tensor, ElementType of_file, ElementType of_model>
struct TensorOfAnotherType {
  static_assert(Holds<(sizeof(Tensor*) == 0)>,
                "attune::kInFlash: this tensor has the first type and needs the second; name it in WEIGHTS "
                "or FLOATS of attune_add_model, or use QUANTIZE bf16 or fp16, or kCopied");
};
template <class Tensor>
struct TensorOfOwnNames {
  static_assert(Holds<(sizeof(Tensor*) == 0)>,
                "attune::kInFlash: weights of a file by OwnNames are [in, out]; leave it in floats, and use "
                "kQuantized or kPackedInt8");
};
template <class Tensor>
struct MisalignedTensor {
  static_assert(Holds<(sizeof(Tensor*) == 0)>,
                "attune::kInFlash: this tensor is misaligned; save the file again with safetensors, or copy "
                "it with read_safetensors() or kCopied");
};
template <Status status, class LastTensor>
struct DamagedFile {
  static_assert(Holds<(sizeof(LastTensor*) == 0)>,
                "attune: the file is damaged or not a safetensors file; the type names the fault and the "
                "tensor at or after which it was found");
};

/// Whether a file has weights as the model has them, [in, out], as under OwnNames.
template <class Names>
inline constexpr bool kInOrderOfModel = [] {
  for (const StateDictTensor& tensor : kStateDict<Names>.tensors) {
    if (tensor.layout == StateDictLayout::kTransposed) return false;
  }
  return true;
}();

/// A file's header, as the compiler reads it.
template <class Names, class File>
struct FileOfModel {
  static constexpr std::string_view kHeader{File::kHeader, sizeof File::kHeader - 1};
  static constexpr std::size_t kBodySize = File::kSize - 8 - kHeader.size();
  static constexpr auto kLayout = safetensors_layout<Names>(kHeader, kBodySize);
  static constexpr ElementType kScalar = kElementTypeOf<typename Names::Model::Scalar>;

  /// The type that a tensor must have.
  static constexpr ElementType type_of(int tensor) {
    return may_be_narrow(kStateDict<Names>.tensors[tensor].layout) ? kMatrix : kScalar;
  }
  /// Whether the compiler copies vectors: they have 16 bits, and the compiler sees the array.
  static constexpr bool kCopiesVectors = [] {
    if (!requires { File::kFile; }) return false;
    for (int i = 0; i < kLayout.kTensors; ++i) {
      const ElementType type = kLayout.type[i];
      if (is_vector(kStateDict<Names>.tensors[i].layout) && is_half(type)) return true;
    }
    return false;
  }();
  static constexpr Status status_of(int tensor) {
    if (kCopiesVectors && is_vector(kStateDict<Names>.tensors[tensor].layout)) return Status::kOk;
    return check_in_place(kLayout, tensor, type_of(tensor), kScalar);
  }
  /// The type of all weights and embeddings: the first 8-bit or 16-bit type found, otherwise the model's
  /// scalar.
  static constexpr ElementType kMatrix = [] {
    for (int i = 0; i < kLayout.kTensors; ++i) {
      const StateDictTensor& tensor = kStateDict<Names>.tensors[i];
      const ElementType type = kLayout.type[i];
      const bool narrow = type == ElementType::kI8 || is_half(type);
      if (may_be_narrow(tensor.layout) && tensor.values == i && narrow) return type;
    }
    return kScalar;
  }();

  /// The first tensor of the model that cannot be used in place, or kTensors.
  static constexpr int kNotInPlace = [] {
    int i = 0;
    while (i < kLayout.kTensors && (kStateDict<Names>.tensors[i].values != i || status_of(i) == Status::kOk))
      ++i;
    return i;
  }();
  static constexpr bool kIsTheModels = kLayout.status == Status::kOk;
  static constexpr bool kStandsInPlace = kIsTheModels && kNotInPlace == kLayout.kTensors;

  /// The name of the refused tensor, and its entry in the file.
  static constexpr std::string_view kName =
      kIsTheModels && !kStandsInPlace ? kStateDict<Names>.name(kNotInPlace) : kLayout.tensor;
  static constexpr SafetensorsEntry kEntry = [] {
    SafetensorsHeader entries(kHeader, kBodySize);
    SafetensorsEntry entry;
    while (entries.next(entry) && entry.name != kName) {
    }
    return entry;
  }();
  using Named = typename decltype(tensor_named<kName>())::type;

  static constexpr auto shape_of_file() {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return std::type_identity<InFile<static_cast<int>(kEntry.shape[i])...>>{};
    }
    (std::make_index_sequence<std::size_t{kEntry.rank}>{});
  }
  static constexpr auto shape_of_model() {
    constexpr int kScaled = kStateDict<Names>.find(scaled_by(kName)), kTensor = kStateDict<Names>.find(kName);
    constexpr StateDictTensor kOfModel = kStateDict<Names>.tensors[kTensor < 0 ? kScaled : kTensor];
    if constexpr (kTensor < 0 || is_vector(kOfModel.layout)) {  // scales, or a vector
      return std::type_identity<InModel<kOfModel.rows>>{};
    } else {
      return std::type_identity<InModel<kOfModel.rows, kOfModel.cols>>{};
    }
  }
};

/// The error for a file of another model, by the status of its layout.
template <Status status, class Of>
struct RefusedFile {
  using type = DamagedFile<status, typename Of::Named>;
};
template <class Of>
struct RefusedFile<Status::kMissingTensor, Of> {
  using type = MissingTensor<typename Of::Named>;
};
template <class Of>
struct RefusedFile<Status::kUnknownTensor, Of> {
  using type = UnknownTensor<typename Of::Named>;
};
template <class Of>
struct RefusedFile<Status::kInvalidShape, Of> {
  using type = TensorOfAnotherShape<typename Of::Named, typename decltype(Of::shape_of_file())::type,
                                    typename decltype(Of::shape_of_model())::type>;
};
template <class Of>
struct RefusedFile<Status::kInvalidType, Of> {
  using type = TensorOfNoUse<typename Of::Named>;
};

/// The error for a file with tensors that cannot be used in place.
template <class Names, class Of, ElementType type = Of::kEntry.type,
          ElementType needed = Of::type_of(Of::kNotInPlace)>
using RefusedInPlace = std::conditional_t<
    Of::kMatrix != Of::kScalar && kInOrderOfModel<Names>, TensorOfOwnNames<typename Of::Named>,
    std::conditional_t<type != needed, TensorOfAnotherType<typename Of::Named, type, needed>,
                       MisalignedTensor<typename Of::Named>>>;

/// Makes the compiler report the reason; compilation continues with an empty set.
template <class Why>
constexpr void refuse() {
  using Size [[maybe_unused]] = decltype(sizeof(Why));
}

/// References to weights of a type.
template <class Names, ElementType matrix, template <class, int, int> class Vector>
struct SetInFlash {
  using type = SetOf<typename Names::Model, TransposedReference, Vector>;
};
template <class Names, ElementType matrix, template <class, int, int> class Vector>
  requires(kInOrderOfModel<Names>&& matrix == kElementTypeOf<typename Names::Model::Scalar>)
struct SetInFlash<Names, matrix, Vector> {
  using type = SetOf<typename Names::Model, Reference, Vector>;
};
template <class Names, template <class, int, int> class Vector>
struct SetInFlash<Names, ElementType::kI8, Vector> {
  using type = SetOf<typename Names::Model, Int8Reference, Vector>;
};
template <class Names, template <class, int, int> class Vector>
struct SetInFlash<Names, ElementType::kBF16, Vector> {
  using type = SetOf<typename Names::Model, Bfloat16Reference, Vector>;
};
template <class Names, template <class, int, int> class Vector>
struct SetInFlash<Names, ElementType::kF16, Vector> {
  using type = SetOf<typename Names::Model, Float16Reference, Vector>;
};
template <class Names, ElementType matrix, bool kCopiesVectors>
using SetFor = typename std::conditional_t<kCopiesVectors, SetInFlash<Names, matrix, Tensor>,
                                           SetInFlash<Names, matrix, Reference>>::type;

/// The bytes of a file that the compiler sees.
template <class File>
constexpr auto bytes_seen() {
  return std::bit_cast<std::array<char, sizeof File::kFile>>(File::kFile);
}

template <class Names, class File>
constexpr auto set_in_flash() {
  using Of = FileOfModel<Names, File>;
  using Set = SetFor<Names, Of::kMatrix, Of::kCopiesVectors>;
  if constexpr (!Of::kIsTheModels) {
    refuse<typename RefusedFile<Of::kLayout.status, Of>::type>();
    return Set{};
  } else if constexpr (!Of::kStandsInPlace) {
    refuse<RefusedInPlace<Names, Of>>();
    return Set{};
  } else {
    static_assert(Holds<std::is_same_v<typename File::Scalar, typename Names::Model::Scalar>>,
                  "attune::kInFlash: File::Scalar is not the model's; attune_add_model makes it double where "
                  "the file has F64 and no F32, float elsewhere");
    struct Referred {
      Set set{};
      SafetensorsResult result{};
    };
    constexpr Referred kReferred = [] {
      Referred referred;
      if constexpr (Of::kCopiesVectors) {
        const auto bytes = bytes_seen<File>();
        referred.result = refer_to_safetensors(Of::kLayout, File::kData, referred.set, bytes.data());
      } else {
        referred.result = refer_to_safetensors(Of::kLayout, File::kData, referred.set);
      }
      return referred;
    }();
    static_assert(Holds<(kReferred.result == Status::kOk)>,
                  "attune::kInFlash: biases or norms of the file are quantized; leave files by OwnNames in "
                  "floats, and use kQuantized or kPackedInt8");
    return kReferred.set;
  }
}

template <class Names, class File>
constexpr auto copied_set() {
  typename Names::Model::Parameters set{};
  using Of = FileOfModel<Names, File>;
  if constexpr (!Of::kIsTheModels) {
    refuse<typename RefusedFile<Of::kLayout.status, Of>::type>();
  } else if constexpr (requires { File::kFile; }) {
    const auto bytes = bytes_seen<File>();
    static_cast<void>(read_safetensors<Names>(std::string_view(bytes.data(), File::kSize), set));
  } else {
    static_assert(Holds<(sizeof(File*) == 0)>,
                  "attune::kCopied: the compiler must see the file; use attune_add_model() with ARRAY or "
                  "QUANTIZE packed_int8");
  }
  return set;
}

template <class Names, class File, template <class, int, int> class Weights>
constexpr auto quantized_set() {
  using Model = typename Names::Model;
  using Of = FileOfModel<Names, File>;
  if constexpr (Of::kIsTheModels) {
    static_assert(
        Holds<(Of::kMatrix == Of::kScalar && Of::kScalar == ElementType::kF32)>,
        "attune::kQuantized, kPackedInt8: the compiler quantizes files of floats only; call pack() at "
        "startup for quantized weights");
  }
  struct Quantized {
    SetOf<Model, Weights, Tensor> set{};
    Status status{};
  };
  constexpr Quantized kResult = [] {
    Quantized quantized;
    quantized.status = quantize(copied_set<Names, File>(), quantized.set);
    return quantized;
  }();
  static_assert(Holds<(kResult.status == Status::kOk)>,
                "attune::kQuantized, kPackedInt8: a weight of the file is infinite or NaN");
  return kResult.set;
}

}  // namespace detail

/// A file's tensors in place, as a constant set of a model's parameters: pointers into the file. Use them as
/// constants of Frozen and BiasesAndNorms. The file of another model is a compile error.
template <detail::CheckedNames Names, ModelFile File>
inline constexpr auto kInFlash = detail::set_in_flash<Names, File>();

/// The same, copied by the compiler into Model::Parameters, also from 16-bit tensors. The file comes from
/// attune_add_model(… ARRAY) and then takes no flash itself. For small models: clang needs -fconstexpr-steps
/// from about 30,000 numbers, and GCC -fconstexpr-ops-limit from 100,000. 260,000 numbers take half a minute.
template <detail::CheckedNames Names, ModelFile File>
inline constexpr auto kCopied = detail::copied_set<Names, File>();

/// Weights of a file of floats as Int8Weights, Bfloat16Weights, Float16Weights or PackedInt8Weights, by the
/// compiler, with the bits of quantize() at startup. This is the way for a file by OwnNames, whose weights
/// are [in, out]. The file comes from attune_add_model(… QUANTIZE packed_int8), or ARRAY, and then takes no
/// flash itself.
template <detail::CheckedNames Names, ModelFile File, template <class, int, int> class Weights>
inline constexpr auto kQuantized = detail::quantized_set<Names, File, Weights>();

/// The same as PackedInt8Weights, packed in the order of this target.
template <detail::CheckedNames Names, ModelFile File>
inline constexpr auto kPackedInt8 = detail::quantized_set<Names, File, PackedInt8Weights>();

}  // namespace ATTUNE_NAMESPACE
