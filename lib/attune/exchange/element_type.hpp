// Number types in files of tensors, and their little-endian values.
//
// 16-bit floats convert to float exactly.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <attune/kernels/quantized.hpp>

namespace ATTUNE_NAMESPACE {

/// Readable types come first.
enum class ElementType : std::uint8_t {
  kF64 = 0,   // double
  kF32 = 1,   // float
  kF16 = 2,   // IEEE 754 binary16
  kBF16 = 3,  // the upper half of a float
  kI8 = 4,    // with scales in a separate tensor
  kOther = 5  // not readable: other integers, booleans, floats of 8 bits and less, types of newer versions
};

namespace detail {

/// A type from its name in a file, and its size in bytes; 0 if a name is unknown here.
struct ElementInfo {
  std::string_view name;
  ElementType type;
  std::uint8_t bytes;
};
inline constexpr ElementInfo kElementTypes[] = {
    {"F32", ElementType::kF32, 4},       {"F64", ElementType::kF64, 8},
    {"F16", ElementType::kF16, 2},       {"BF16", ElementType::kBF16, 2},
    {"I64", ElementType::kOther, 8},     {"U64", ElementType::kOther, 8},
    {"C64", ElementType::kOther, 8},     {"I32", ElementType::kOther, 4},
    {"U32", ElementType::kOther, 4},     {"I16", ElementType::kOther, 2},
    {"U16", ElementType::kOther, 2},     {"I8", ElementType::kI8, 1},
    {"U8", ElementType::kOther, 1},      {"BOOL", ElementType::kOther, 1},
    {"F8_E4M3", ElementType::kOther, 1}, {"F8_E5M2", ElementType::kOther, 1},
};
constexpr ElementInfo element_info(std::string_view name) {
  for (const ElementInfo& info : kElementTypes) {
    if (info.name == name) return info;
  }
  return {"", ElementType::kOther, 0};
}

/// The name of a readable type.
constexpr std::string_view name_of(ElementType type) {
  for (const ElementInfo& info : kElementTypes) {
    if (info.type == type) return info.name;
  }
  return {};
}

/// The file type of a Scalar, and of 8-bit and 16-bit weights (weights/quantized_weights.hpp).
template <class Number>
inline constexpr ElementType kElementTypeOf = sizeof(Number) == 8 ? ElementType::kF64 : ElementType::kF32;
template <>
inline constexpr ElementType kElementTypeOf<Int8> = ElementType::kI8;
template <>
inline constexpr ElementType kElementTypeOf<Bfloat16> = ElementType::kBF16;
template <>
inline constexpr ElementType kElementTypeOf<Float16> = ElementType::kF16;

/// Whether it is a 16-bit float.
constexpr bool is_half(ElementType type) { return type == ElementType::kF16 || type == ElementType::kBF16; }
constexpr int bytes_of(ElementType type) {
  return type == ElementType::kF64 ? 8 : type == ElementType::kF32 ? 4 : type == ElementType::kI8 ? 1 : 2;
}

template <class Bits>
constexpr Bits little_endian(const char* from) {
  Bits bits = 0;
  for (int i = static_cast<int>(sizeof(Bits)); i-- > 0;) {
    bits = static_cast<Bits>(bits << 8 | static_cast<unsigned char>(from[i]));
  }
  return bits;
}

/// One number of a readable type, rounded if Scalar is narrower. Integers are not scaled.
template <class Scalar>
constexpr Scalar element(ElementType type, const char* from) {
  switch (type) {
    case ElementType::kF64:
      return static_cast<Scalar>(std::bit_cast<double>(little_endian<std::uint64_t>(from)));
    case ElementType::kF32:
      return static_cast<Scalar>(std::bit_cast<float>(little_endian<std::uint32_t>(from)));
    case ElementType::kF16:
      return static_cast<Scalar>(dequantize_f16(little_endian<std::uint16_t>(from)));
    case ElementType::kI8:
      return static_cast<Scalar>(static_cast<signed char>(*from));
    default:
      return static_cast<Scalar>(dequantize_bf16(little_endian<std::uint16_t>(from)));
  }
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
