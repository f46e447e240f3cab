// A layer of one's own with a memory between the steps of a stream.
#pragma once

#include <attune/attune.hpp>

/// y_t = x_0 + … + x_t
template <int kRows, int kCols>
struct RunningSum {
  using Scalar = float;
  using Input = attune::Tensor<Scalar, kRows, kCols>;
  using Output = Input;
  using Parameters = attune::NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  static void forward(const Parameters&, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch&) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kCols; ++j) y(i, j) = i == 0 ? x(i, j) : y(i - 1, j) + x(i, j);
    }
  }
  static void forward(const Parameters& p, attune::ConstView<Input> x, attune::View<Output> y, Tape&,
                      Scratch&) {
    InferenceScratch none;
    forward(p, x, y, none);
  }
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, Parameters&, Scratch&) {
    if constexpr (attune::kWanted<decltype(dx)>) {
      for (int i = kRows - 1; i >= 0; --i) {
        for (int j = 0; j < kCols; ++j) dx(i, j) = i == kRows - 1 ? dy(i, j) : dx(i + 1, j) + dy(i, j);
      }
    }
  }

  template <int tokens, attune::CacheShape>
  struct Stream {
    struct Memory {
      float sum[kCols];
    };
    struct Scratch {};
    static void step(std::uint64_t position, const auto& /*parameters*/,
                     attune::ConstView<attune::Tensor<float, tokens, kCols>> x,
                     attune::View<attune::Tensor<float, tokens, kCols>> y, auto& memory, Scratch&) {
      for (int i = 0; i < tokens; ++i) {
        for (int j = 0; j < kCols; ++j) {
          const float before = position == 0 && i == 0 ? 0.0f : memory.sum[j];
          y(i, j) = memory.sum[j] = before + x(i, j);
        }
      }
    }
  };
};
