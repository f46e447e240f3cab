// Quantizes parameters (weights/quantized_weights.hpp), and measures the error.
//
//   Model::ParametersOf<Int8Weights, Tensor> quantized;
//   Status status = quantize(parameters, quantized);
//   for_each_quantization_error([](const TensorPath& path, QuantizationError error) { … }, parameters,
//   quantized);
//
// Integers are symmetric: the scale of an output, or of a row of a table, is max|w| / 127, and each number
// becomes the nearest multiple of it. 16-bit floats are the nearest ones. Ties go to even. quantize() also
// runs at compile time.
#pragma once

#include <concepts>
#include <type_traits>

#include <attune/core/status.hpp>
#include <attune/kernels/ops/finite.hpp>
#include <attune/kernels/ops/quantize_columns.hpp>
#include <attune/weights/quantized_weights.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Scalar>
constexpr Scalar magnitude_of(Scalar value) {
  return value < 0 ? -value : value;
}
template <class Scalar>
constexpr bool is_finite(Scalar value) {
  return value - value == 0;
}

template <std::same_as<Int8> Element, class Scalar>
constexpr Element narrow(Scalar value, Scalar scale) {
  return quantize_int8(value, scale);
}
template <std::same_as<Bfloat16> Element, class Scalar>
constexpr Element narrow(Scalar value, Scalar) {
  return round_to_bf16(round_to_odd(value));
}
template <std::same_as<Float16> Element, class Scalar>
constexpr Element narrow(Scalar value, Scalar) {
  return round_to_f16(round_to_odd(value));
}
/// Whether a number is finite before and after quantization.
template <class Element, class Scalar>
constexpr bool can_be_quantized(Scalar value) {
  return Element::kScaled ? is_finite(value) : is_finite(dequantize(narrow<Element>(value, Scalar(0))));
}

/// Quantizes row `row` from numbers that are `stride` apart.
template <class Rows, class Scalar>
constexpr void quantized_row(Rows& rows, int row, const Scalar* from, int stride) {
  using Element = typename Rows::Element;
  using Number = NumberOf<Scalar>;
  Number largest = 0;
  for (int i = 0; i < Rows::length; ++i) {
    const Number size = magnitude_of<Number>(from[i * stride]);
    if (size > largest) largest = size;
  }
  const Number scale = Element::kScaled ? int8_scale(largest) : Number(1);
  for (int i = 0; i < Rows::length; ++i) rows.set(row, i, narrow<Element, Number>(from[i * stride], scale));
  if constexpr (Element::kScaled) rows.scales[row] = scale;
}

/// Quantizes all rows, `row_stride` apart, from numbers that are `stride` apart.
template <class Rows, class Scalar>
constexpr void quantized_rows(Rows& rows, const Scalar* from, int row_stride, int stride) {
  int done = 0;
  if constexpr (requires { rows.clear(); }) rows.clear();
  if constexpr (std::is_same_v<typename Rows::Element, Int8> && std::is_same_v<NumberOf<Scalar>, float>) {
    if (!std::is_constant_evaluated()) {
      if constexpr (requires { typename Rows::Packed; }) {
        if (row_stride == 1)
          done = kernels::quantize_columns<typename Rows::Packed>(from, stride, Rows::length, Rows::count,
                                                                  rows.bytes, rows.scales);
      } else {
        for (; done < Rows::count; ++done) {
          rows.scales[done] = kernels::quantize_vector(from + done * row_stride, stride, Rows::length,
                                                       &rows.elements[done * Rows::length].value);
        }
      }
    }
  }
  for (; done < Rows::count; ++done) quantized_row(rows, done, from + done * row_stride, stride);
}
/// Whether all numbers are finite before and after quantization.
template <class Element, class View>
constexpr bool all_can_be_quantized(const View& from) {
  using Source = std::remove_const_t<typename View::Scalar>;
  if constexpr (Element::kScaled && std::is_floating_point_v<Source> && View::col_stride == 1) {
    if (!std::is_constant_evaluated()) return kernels::finite(from);
  }
  bool possible = true;
  for (int i = 0; i < View::rows; ++i) {
    for (int j = 0; j < View::cols; ++j) possible &= can_be_quantized<Element, NumberOf<Source>>(from(i, j));
  }
  return possible;
}

// Calls visitor(rows, first, row stride, col stride) with the quantized rows and their source numbers.
template <class Visitor, class Source, class Rows>
constexpr void with_rows(const Visitor& visitor, const Source& source, QuantizedWeights<Rows>& to) {
  const auto from = view(source);
  visitor(to.stored, from.data, from.col_stride, from.row_stride);
}
template <class Visitor, class Source, class Rows>
constexpr void with_rows(const Visitor& visitor, const Source& source, QuantizedTable<Rows>& to) {
  const auto from = view(source);
  visitor(to.stored, from.data, from.row_stride, from.col_stride);
}

// Calls visitor(path, source, target) for each quantized tensor of two sets of one layer.
template <class Visitor, class From, class To>
constexpr void for_each_quantized(const Visitor& visitor, const From& from, To& to) {
  for_each_tensor(
      [&visitor](const TensorPath& path, auto& target, const auto& source) {
        if constexpr (IsQuantizedForm<decltype(target)>) {
          require_same_shape(source, target);
          visitor(path, source, target);
        }
      },
      to, from);
}
// Copies the other tensors.
template <class From, class To>
constexpr void copy_floats(const From& from, To& to) {
  for_each_tensor(
      [](const TensorPath&, auto& target, const auto& source) {
        if constexpr (!IsQuantizedForm<decltype(target)>) copy_elements(source, target);
      },
      to, from);
}

}  // namespace detail

/// Fills a set of quantized weights that owns its numbers, from floats in any storage. Copies tensors that
/// stay floats. If a weight is infinite or NaN, or too large for a 16-bit float, returns Status::kNotFinite
/// and changes nothing.
template <class From, class To>
constexpr Status quantize(const From& parameters, To& quantized) {
  bool possible = true;
  detail::for_each_quantized(
      [&possible](const TensorPath&, const auto& source, const auto& to) {
        using Element = typename std::remove_cvref_t<decltype(to.stored)>::Element;
        possible &= detail::all_can_be_quantized<Element>(view(source));
      },
      parameters, quantized);
  if (!possible) return Status::kNotFinite;
  detail::for_each_quantized(
      [](const TensorPath&, const auto& source, auto& to) {
        detail::with_rows([](auto& rows, const auto* first, int row_stride,
                             int stride) { detail::quantized_rows(rows, first, row_stride, stride); },
                          source, to);
      },
      parameters, quantized);
  detail::copy_floats(parameters, quantized);
  return Status::kOk;
}

/// Fills a set of PackedInt8Weights from a set of Int8Weights, or references to them, with the same integers
/// and scales. Copies tensors that stay floats. If an integer is −128, which quantize() never writes, returns
/// Status::kOverflow and changes nothing.
template <class From, class To>
constexpr Status pack(const From& quantized, To& packed) {
  bool possible = true;
  const auto for_each_element = [](const auto& rows, const auto& visitor) {
    for (int i = 0; i < rows.count; ++i) {
      for (int j = 0; j < rows.length; ++j) visitor(i, j, rows.at(i, j));
    }
  };
  detail::for_each_quantized(
      [&](const TensorPath&, const auto& source, const auto&) {
        for_each_element(source.stored,
                         [&](int, int, Int8 element) { possible &= element.value >= -Int8::kLargest; });
      },
      quantized, packed);
  if (!possible) return Status::kOverflow;
  detail::for_each_quantized(
      [&](const TensorPath&, const auto& source, auto& to) {
        if constexpr (requires { to.stored.clear(); }) to.stored.clear();
        for (int i = 0; i < source.stored.count; ++i) to.stored.scales[i] = source.stored.scale()[i];
        for_each_element(source.stored, [&](int i, int j, Int8 element) { to.stored.set(i, j, element); });
      },
      quantized, packed);
  detail::copy_floats(quantized, packed);
  return Status::kOk;
}

/// The error of a quantized tensor.
struct QuantizationError {
  double largest = 0;  // the largest difference, relative to the largest number
  double rms = 0;      // the root mean square of differences, relative to the root mean square of the numbers
};

namespace detail {

// The sums behind a QuantizationError.
class ErrorSums {
 public:
  constexpr void add(double number, double narrow) {
    const double difference = magnitude_of(number - narrow), size = magnitude_of(number);
    if (difference > largest_difference_) largest_difference_ = difference;
    if (size > largest_) largest_ = size;
    squared_difference_ += difference * difference;
    squared_ += size * size;
  }
  /// The error; none if all numbers are zero.
  [[nodiscard]] QuantizationError error() const {
    if (largest_ == 0) return {};
    return {largest_difference_ / largest_, kernels::square_root(squared_difference_ / squared_)};
  }

 private:
  double largest_difference_ = 0, largest_ = 0, squared_difference_ = 0, squared_ = 0;
};

}  // namespace detail

/// Calls visitor(path, error) for each quantized tensor of a set.
template <class Visitor, class From, class To>
void for_each_quantization_error(const Visitor& visitor, const From& parameters, const To& quantized) {
  detail::for_each_quantized(
      [&visitor](const TensorPath& path, const auto& source, const auto& narrow) {
        detail::ErrorSums sums;
        for (int i = 0; i < narrow.rows; ++i) {
          for (int j = 0; j < narrow.cols; ++j) {
            sums.add(static_cast<double>(view(source)(i, j)), static_cast<double>(narrow(i, j)));
          }
        }
        visitor(path, sums.error());
      },
      parameters, quantized);
}

}  // namespace ATTUNE_NAMESPACE
