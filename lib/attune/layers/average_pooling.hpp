// Average pooling over windows of tokens: AvgPool1d over time, and AvgPool2d over tokens that are the pixels
// of an image.
//
//   y(o, j) = Σ_(valid i in window o) x(i, j) / n(o)       dx(i, j) = Σ_(windows o with i) dy(o, j) / n(o)
//
// n(o) is the number of valid tokens in the window. A window without valid tokens gives zeros and has no
// gradient.
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/layers/convolution.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `AvgPool1d`, PyTorch's nn.AvgPool1d.
struct Pool1dShape {
  int seq_len;          // tokens of x
  int d_model;          // features of a token
  int kernel;           // tokens in a window
  int stride = kernel;  // distance between windows, in tokens
};

/// Dimensions of `AvgPool2d`, PyTorch's nn.AvgPool2d.
struct Pool2dShape {
  int height;                         // rows of pixels of x
  int width;                          // pixels of a row; token i is pixel (i / width, i % width)
  int d_model;                        // features of a pixel
  int kernel_height;                  // rows in a window
  int kernel_width;                   // pixels in a row of a window
  int stride_height = kernel_height;  // distance between windows, in rows
  int stride_width = kernel_width;    // distance between windows, in pixels
};

namespace detail {

template <Pool1dShape shape>
constexpr ConvolvedImage convolved_image() {
  static_assert(
      shape.seq_len > 0 && shape.d_model > 0 && shape.kernel > 0 && shape.stride > 0,
      "attune::AvgPool1d: seq_len, d_model, kernel and stride must be positive; set the first three "
      "in Pool1dShape");
  static_assert(shape.kernel <= shape.seq_len, "attune::AvgPool1d: the window is longer than the sequence");
  const int width = at_least_one(shape.d_model);
  return {convolved(1, 1, 1, 0, 0),
          convolved(shape.seq_len, shape.kernel, shape.stride, 0, 0),
          width,
          width,
          1,
          false};
}
template <Pool2dShape shape>
constexpr ConvolvedImage convolved_image() {
  static_assert(shape.height > 0 && shape.width > 0 && shape.d_model > 0 && shape.kernel_height > 0 &&
                    shape.kernel_width > 0 && shape.stride_height > 0 && shape.stride_width > 0,
                "attune::AvgPool2d: height, width, d_model, kernels and strides must be positive; set the "
                "first five in Pool2dShape");
  static_assert(shape.kernel_height <= shape.height && shape.kernel_width <= shape.width,
                "attune::AvgPool2d: the window is larger than the image");
  const int width = at_least_one(shape.d_model);
  return {convolved(shape.height, shape.kernel_height, shape.stride_height, 0, 0),
          convolved(shape.width, shape.kernel_width, shape.stride_width, 0, 0),
          width,
          width,
          1,
          false};
}
template <auto shape>
inline constexpr ConvolvedImage kWindowsOf = convolved_image<shape>();

template <ConvolvedImage of, class ScalarType>
struct AveragePooling {
  static constexpr ConvolvedImage image = of;
  static constexpr int kInRows = image.in_rows(), kOutRows = image.out_rows(), kTaps = image.taps();
  static constexpr int kWidth = image.d_in;

  using Scalar = ScalarType;
  using Input = Tensor<Scalar, kInRows, kWidth>;
  using Output = Tensor<Scalar, kOutRows, kWidth>;
  using Parameters = NoParameters;
  template <class Gradients>
  static constexpr bool kReadsInput = false;
  static constexpr Abilities kAbilities{
      .mask = MaskUse::kPadding, .takes_context = true, .takes_length = true, .lanes = Lanes::kAll};
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  template <int tokens, CacheShape>
  struct Stream : detail::NoStream {
    static_assert(tokens < 0,
                  "attune: AvgPool1d and AvgPool2d need whole windows, so they do not run token by token");
  };

  /// Inference: y of x. `y` may not overlap `x`. Does not read rows of x that are padding.
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&,
                      const Call& context = {}) {
    context.template each_token<kOutRows, kTaps * kWidth>([&](int o) {
      const Scalar count = valid_count(context, o);
      kernels::for_each_packet<Scalar>(kWidth, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        P sum = kernels::broadcast<P>(Scalar(0));
        for_each_valid(context, o, [&](int token) ATTUNE_INLINE_LAMBDA {
          sum = kernels::add(sum, kernels::load<P>(x.data + token * kWidth + j));
        });
        kernels::store(y.data + o * kWidth + j, kernels::divide(sum, kernels::broadcast<P>(count)));
      });
    });
  }
  /// Training: the same.
  template <AnyContext Call = Context<>>
  static void forward(const Parameters& parameters, ConstView<Input> x, View<Output> y, Tape&, Scratch&,
                      const Call& context = {}) {
    InferenceScratch none;
    forward(parameters, x, y, none, context);
  }
  /// Overwrites dx, from dy. `dx` may not overlap `dy`.
  template <class Dx, AnyContext Call = Context<>>
  static void backward(const Parameters&, ConstView<Input>, const Tape&, ConstView<Output> dy, Dx&& dx,
                       Parameters&, Scratch&, const Call& context = {}) {
    if constexpr (kAsked<Dx>) {
      const auto to = sink<Input>(dx);
      context.stage([&] {
        for (int i = 0; i < Input::size; ++i) to.data[i] = Scalar(0);
      });
      context.template each_token<kOutRows, kTaps * kWidth>([&](int o) {
        if (o >= context.template count<kOutRows>()) return;
        const Scalar count = valid_count(context, o);
        kernels::for_each_packet<Scalar>(kWidth, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
          const P share =
              kernels::divide(kernels::load<P>(dy.data + o * kWidth + j), kernels::broadcast<P>(count));
          for_each_valid(context, o, [&](int token) ATTUNE_INLINE_LAMBDA {
            Scalar* const sum = to.data + token * kWidth + j;
            kernels::store(sum, kernels::add(kernels::load<P>(sum), share));
          });
        });
      });
    }
  }

 private:
  ATTUNE_INLINE static void for_each_valid(const auto& context, int o, const auto& body) {
    for (int tap = 0; tap < kTaps; ++tap) {
      const int token = image.token(o, tap);
      if (context.template is_valid<kInRows>(token)) body(token);
    }
  }
  // At least 1.
  static Scalar valid_count(const auto& context, int o) {
    int count = 0;
    for_each_valid(context, o, [&](int) { ++count; });
    return Scalar(static_cast<kernels::Real<Scalar>>(count > 0 ? count : 1));
  }
};

}  // namespace detail

/// PyTorch's nn.AvgPool1d of x[seq_len, d_model], whose rows are time steps: y[(seq_len − kernel)/stride + 1,
/// d_model]. Reads only padding from a mask, and leaves it out of the means.
template <Pool1dShape pool_shape, class ScalarType = float>
struct AvgPool1d : detail::AveragePooling<detail::kWindowsOf<pool_shape>, ScalarType> {
  static constexpr const Pool1dShape& shape = pool_shape;
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = AvgPool1d<pool_shape, Other>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("AvgPool1d", pool_shape.kernel, pool_shape.stride);
};

/// PyTorch's nn.AvgPool2d of an image x[height·width, d_model] with one token per pixel, row by row; y has
/// the same layout. Reads only padding from a mask, and leaves it out of the means.
template <Pool2dShape pool_shape, class ScalarType = float>
struct AvgPool2d : detail::AveragePooling<detail::kWindowsOf<pool_shape>, ScalarType> {
  static constexpr const Pool2dShape& shape = pool_shape;
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = AvgPool2d<pool_shape, Other>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("AvgPool2d", pool_shape.height, pool_shape.kernel_height, pool_shape.kernel_width,
                  pool_shape.stride_height, pool_shape.stride_width);
};

}  // namespace ATTUNE_NAMESPACE
