// Parameters in fewer bits (weights/quantized_weights.hpp), and what that costs.
//
//   Model::ParametersOf<Int8Weights, Tensor> quantized;
//   Status status = quantize(parameters, quantized);
//   for_each_quantization_error([](const TensorPath& path, QuantizationError error) { … }, parameters,
//   quantized);
//
// Integers are symmetric: of each output of a weight, and of each row of a table, the scale is max|w| / 127
// and a number the nearest multiple of it; 16-bit floats are the nearest. Ties go to even.
// quantize() runs at compile time, too.
#pragma once

#include <type_traits>

#include <attune/core/status.hpp>
#include <attune/weights/quantized_weights.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

template <class Scalar>
constexpr Scalar magnitude_of(Scalar value) {
  return value < 0 ? -value : value;
}
template <class Scalar>
constexpr bool is_finite(Scalar value) {
  return value - value == 0;
}

template <class Element, class Scalar>
constexpr Element narrow(Scalar value, [[maybe_unused]] Scalar scale) {
  if constexpr (std::is_same_v<Element, Int8>) {
    return quantize_int8(value, scale);
  } else if constexpr (std::is_same_v<Element, Bfloat16>) {
    return round_to_bf16(static_cast<float>(value));
  } else {
    return round_to_f16(static_cast<float>(value));
  }
}
/// Whether a number is finite, and stays so.
template <class Element, class Scalar>
constexpr bool can_be_quantized(Scalar value) {
  if constexpr (Element::kScaled) {
    return is_finite(value);
  } else {
    return is_finite(dequantize(narrow<Element>(value, Scalar(0))));
  }
}

/// Fills row `row` from numbers that are `stride` apart.
template <class Rows, class Scalar>
constexpr void narrow_row(Rows& rows, int row, const Scalar* from, int stride) {
  using Element = typename Rows::Element;
  Scalar largest = 0;
  for (int i = 0; i < Rows::length; ++i) {
    const Scalar size = magnitude_of(from[i * stride]);
    if (size > largest) largest = size;
  }
  const Scalar scale = Element::kScaled ? int8_scale(largest) : Scalar(1);
  for (int i = 0; i < Rows::length; ++i) rows.set(row, i, narrow<Element>(from[i * stride], scale));
  if constexpr (Element::kScaled) rows.scales[row] = scale;
}

// Calls visitor(rows, first, row stride, col stride) of narrow rows and the numbers that are to stand there.
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

// Calls visitor(path, source, target) of the tensors of two sets of one layer.
template <class Visitor, class From, class To>
constexpr void for_each_pair(const Visitor& visitor, const From& from, To& to) {
  To::visit(visitor, static_cast<const TensorPath*>(nullptr), from, to);
}

}  // namespace detail

/// Fills a set of narrow weights, of one's own, from one of floats in any form; what is a Tensor in it is
/// copied. Status::kNotFinite, and nothing is changed, where a weight is infinite or NaN, or too large for a
/// 16-bit float.
template <class From, class To>
constexpr Status quantize(const From& parameters, To& quantized) {
  bool possible = true;
  detail::for_each_pair(
      [&possible](const TensorPath&, const auto& source, auto& to) {
        if constexpr (detail::kIsQuantizedForm<std::remove_cvref_t<decltype(to)>>) {
          detail::with_rows(
              [&possible](auto& rows, const auto* first, int row_stride, int stride) {
                using Rows = std::remove_cvref_t<decltype(rows)>;
                for (int i = 0; i < Rows::count; ++i) {
                  for (int j = 0; j < Rows::length; ++j) {
                    possible &=
                        detail::can_be_quantized<typename Rows::Element>(first[i * row_stride + j * stride]);
                  }
                }
              },
              source, to);
        }
      },
      parameters, quantized);
  if (!possible) return Status::kNotFinite;
  detail::for_each_pair(
      [](const TensorPath&, const auto& source, auto& to) {
        if constexpr (detail::kIsQuantizedForm<std::remove_cvref_t<decltype(to)>>) {
          detail::with_rows(
              [](auto& rows, const auto* first, int row_stride, int stride) {
                if constexpr (requires { rows.clear(); }) rows.clear();
                for (int i = 0; i < rows.count; ++i) {
                  detail::narrow_row(rows, i, first + i * row_stride, stride);
                }
              },
              source, to);
        } else {
          for (int i = 0; i < to.rows; ++i) {
            for (int j = 0; j < to.cols; ++j) to(i, j) = view(source)(i, j);
          }
        }
      },
      parameters, quantized);
  return Status::kOk;
}

/// Fills a set of PackedInt8Weights from one of Int8Weights, own or elsewhere: the same integers and scales;
/// what is a Tensor in it is copied. Status::kOverflow, and nothing is changed, where an integer is −128,
/// which quantize() never writes.
template <class From, class To>
constexpr Status pack(const From& quantized, To& packed) {
  bool possible = true;
  const auto for_each_element = [](const auto& rows, const auto& visitor) {
    for (int i = 0; i < rows.count; ++i) {
      for (int j = 0; j < rows.length; ++j) visitor(i, j, rows.at(i, j));
    }
  };
  detail::for_each_pair(
      [&](const TensorPath&, const auto& source, const auto& to) {
        if constexpr (detail::kIsQuantizedForm<std::remove_cvref_t<decltype(to)>>) {
          for_each_element(source.stored,
                           [&](int, int, Int8 element) { possible &= element.value >= -Int8::kLargest; });
        }
      },
      quantized, packed);
  if (!possible) return Status::kOverflow;
  detail::for_each_pair(
      [&](const TensorPath&, const auto& source, auto& to) {
        if constexpr (detail::kIsQuantizedForm<std::remove_cvref_t<decltype(to)>>) {
          if constexpr (requires { to.stored.clear(); }) to.stored.clear();
          for (int i = 0; i < source.stored.count; ++i) to.stored.scales[i] = source.stored.scale()[i];
          for_each_element(source.stored, [&](int i, int j, Int8 element) { to.stored.set(i, j, element); });
        } else {
          for (int i = 0; i < to.rows; ++i) {
            for (int j = 0; j < to.cols; ++j) to(i, j) = view(source)(i, j);
          }
        }
      },
      quantized, packed);
  return Status::kOk;
}

/// How far the numbers of a tensor are from what they were.
struct QuantizationError {
  double largest = 0;  // the largest difference, relative to the largest number
  double rms = 0;      // the root of the mean squared difference, relative to that of the numbers
};

namespace detail {

// The sums that a QuantizationError is made of.
class ErrorSums {
 public:
  constexpr void add(double number, double narrow) {
    const double difference = magnitude_of(number - narrow), size = magnitude_of(number);
    if (difference > largest_difference_) largest_difference_ = difference;
    if (size > largest_) largest_ = size;
    squared_difference_ += difference * difference;
    squared_ += size * size;
  }
  /// Of zeros alone: no error.
  [[nodiscard]] QuantizationError error() const {
    if (largest_ == 0) return {};
    return {largest_difference_ / largest_, kernels::square_root(squared_difference_ / squared_)};
  }

 private:
  double largest_difference_ = 0, largest_ = 0, squared_difference_ = 0, squared_ = 0;
};

}  // namespace detail

/// Calls visitor(path, error) for each tensor of a quantized set that is narrow.
template <class Visitor, class From, class To>
void for_each_quantization_error(const Visitor& visitor, const From& parameters, const To& quantized) {
  detail::for_each_pair(
      [&visitor](const TensorPath& path, const auto& source, const auto& narrow) {
        using Narrow = std::remove_cvref_t<decltype(narrow)>;
        if constexpr (detail::kIsQuantizedForm<Narrow>) {
          detail::ErrorSums sums;
          for (int i = 0; i < Narrow::rows; ++i) {
            for (int j = 0; j < Narrow::cols; ++j) {
              sums.add(static_cast<double>(view(source)(i, j)), static_cast<double>(narrow(i, j)));
            }
          }
          visitor(path, sums.error());
        }
      },
      parameters, quantized);
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
