// A layer of one's own in which tokens do not meet.
#pragma once

#include <attune/attune.hpp>

/// y = x where x > 0, else slope·x, with a slope for each feature (He et al., 2015).
template <int kRows, int kCols, class ScalarType = float>
struct PRelu {
  using Scalar = ScalarType;
  using Input = attune::Tensor<Scalar, kRows, kCols>;
  using Output = Input;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Vector<Scalar, 1, kCols> slope;
    ATTUNE_FIELDS(Weight(slope))
  };
  using Parameters = ParametersOf<attune::Tensor>;
  struct Tape {};  // backward needs nothing but x
  struct Scratch {};
  struct InferenceScratch {};
  template <int tokens, attune::CacheShape>
  using Stream = PRelu<tokens, kCols, Scalar>;

  static void forward(const auto& p, attune::ConstView<Input> x, attune::View<Output> y, auto&...) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kCols; ++j) y(i, j) = x(i, j) > 0 ? x(i, j) : p.slope(0, j) * x(i, j);
    }
  }
  static void backward(const auto& p, attune::ConstView<Input> x, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, auto& gradients, Scratch&) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kCols; ++j) {
        if (!(x(i, j) > 0)) gradients.slope(0, j) += x(i, j) * dy(i, j);
        dx(i, j) = x(i, j) > 0 ? dy(i, j) : p.slope(0, j) * dy(i, j);
      }
    }
  }
};
