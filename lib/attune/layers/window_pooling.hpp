// Pooling over windows of tokens: AvgPool1d and MaxPool1d over time, AvgPool2d and MaxPool2d over tokens that
// are the pixels of an image.
//
//   mean:  y(o, j) = Σ_(valid i in window o) x(i, j) / n(o)   dx(i, j) = Σ_(windows o with i) dy(o, j) / n(o)
//   max:   y(o, j) = max_(valid i in window o) x(i, j)        dx(i, j) = Σ dy(o, j) over the windows o whose
//                                                             first maximum is x(i, j)
//
// n(o) is the number of valid tokens in the window and, with count_padding, of places outside of the
// sequence. A window without valid tokens gives zeros and has no gradient.
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/layers/convolution.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions and options of `AvgPool1d` and `MaxPool1d`, PyTorch's nn.AvgPool1d and nn.MaxPool1d.
struct Pool1dShape {
  int seq_len;                // tokens of x
  int d_model;                // features of a token
  int kernel;                 // tokens in a window
  int stride = kernel;        // distance between windows, in tokens
  int padding = 0;            // places before the sequence, and as many after it: at most half a window
  bool count_padding = true;  // whether means count these places, as PyTorch's count_include_pad
  bool ceil = false;          // whether a last window may reach over the end, as with PyTorch's ceil_mode
};

/// Dimensions and options of `AvgPool2d` and `MaxPool2d`, PyTorch's nn.AvgPool2d and nn.MaxPool2d.
struct Pool2dShape {
  int height;                         // rows of pixels of x
  int width;                          // pixels of a row; token i is pixel (i / width, i % width)
  int d_model;                        // features of a pixel
  int kernel_height;                  // rows in a window
  int kernel_width;                   // pixels in a row of a window
  int stride_height = kernel_height;  // distance between windows, in rows
  int stride_width = kernel_width;    // distance between windows, in pixels
  int padding_height = 0;             // rows above the image, and as many below: at most half a window
  int padding_width = 0;              // pixels left of the image, and as many right of it
  bool count_padding = true;          // whether means count these places, as PyTorch's count_include_pad
  bool ceil = false;                  // whether last windows may reach over the ends, as with ceil_mode
};

namespace detail {

// One dimension of the windows. With `ceil` a last one begins within the sequence and its padding in front.
constexpr ConvolvedExtent pooled(int size, int kernel, int stride, int padding, bool ceil) {
  const int rest = (size + 2 * padding - kernel) % at_least_one(stride);
  const int behind = rest == 0 ? 0 : stride - rest;
  const bool begins_within = padding + behind < kernel;
  return convolved(size, kernel, stride, padding, padding + (ceil && begins_within ? behind : 0));
}

template <Pool1dShape shape>
constexpr ConvolvedImage convolved_image() {
  static_assert(
      Holds<(shape.seq_len > 0 && shape.d_model > 0 && shape.kernel > 0 && shape.stride > 0)>,
      "attune::AvgPool1d, MaxPool1d: seq_len, d_model, kernel and stride must be positive; set the first "
      "three in Pool1dShape");
  static_assert(Holds<(shape.padding >= 0 && 2 * shape.padding <= shape.kernel)>,
                "attune::AvgPool1d, MaxPool1d: padding must be at most half a window");
  static_assert(Holds<(shape.kernel <= shape.seq_len + 2 * shape.padding)>,
                "attune::AvgPool1d, MaxPool1d: the window is longer than the sequence with its padding");
  return convolved(kOneRow, pooled(shape.seq_len, shape.kernel, shape.stride, shape.padding, shape.ceil),
                   shape.d_model, shape.d_model);
}
template <Pool2dShape shape>
constexpr ConvolvedImage convolved_image() {
  static_assert(Holds<(shape.height > 0 && shape.width > 0 && shape.d_model > 0 && shape.kernel_height > 0 &&
                       shape.kernel_width > 0 && shape.stride_height > 0 && shape.stride_width > 0)>,
                "attune::AvgPool2d, MaxPool2d: height, width, d_model, kernels and strides must be positive; "
                "set the first five in Pool2dShape");
  static_assert(Holds<(shape.padding_height >= 0 && shape.padding_width >= 0 &&
                       2 * shape.padding_height <= shape.kernel_height &&
                       2 * shape.padding_width <= shape.kernel_width)>,
                "attune::AvgPool2d, MaxPool2d: padding must be at most half a window");
  static_assert(Holds<(shape.kernel_height <= shape.height + 2 * shape.padding_height &&
                       shape.kernel_width <= shape.width + 2 * shape.padding_width)>,
                "attune::AvgPool2d, MaxPool2d: the window is larger than the image with its padding");
  return convolved(
      pooled(shape.height, shape.kernel_height, shape.stride_height, shape.padding_height, shape.ceil),
      pooled(shape.width, shape.kernel_width, shape.stride_width, shape.padding_width, shape.ceil),
      shape.d_model, shape.d_model);
}
// The result of a window, and the places that it is of.
enum class WindowPooling {
  kMean = 0,             // valid tokens
  kMeanWithPadding = 1,  // valid tokens, and zeros outside of the sequence
  kMax = 2               // valid tokens
};

template <auto pool_shape, WindowPooling kind, class ScalarType>
struct PooledWindows : Unparameterized<PooledWindows<pool_shape, kind, ScalarType>> {
  static constexpr const auto& shape = pool_shape;
  static constexpr ConvolvedImage image = convolved_image<pool_shape>();
  static constexpr int kInRows = image.in_rows(), kOutRows = image.out_rows(), kTaps = image.taps();
  static constexpr int kWidth = image.d_in;

  using Scalar = ScalarType;
  using Input = Tensor<Scalar, kInRows, kWidth>;
  using Output = Tensor<Scalar, kOutRows, kWidth>;
  template <class Gradients>
  static constexpr bool kReadsInput = kind == WindowPooling::kMax;
  static constexpr Abilities kAbilities{
      .mask = MaskUse::kPadding, .takes_context = true, .takes_length = true, .lanes = Lanes::kAll};
  using Base = Unparameterized<PooledWindows>;  // backward searches maxima again
  using Base::forward, Base::backward;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;

  /// y of x. `y` may not overlap `x`. Does not read rows of x that are padding.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    context.template each_token<kOutRows, kTaps * kWidth>([&](int o) {
      Features::pool(x.data, y.data + o * kWidth, divisor(context, o), each_of(context, o));
    });
  }
  /// Overwrites dx, from dy and, for the maximum, x. `dx` may overlap neither.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Input> x, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    context.stage([&] {
      for (int i = 0; i < Input::size; ++i) dx.data[i] = Scalar(0);
    });
    context.template each_token<kOutRows, kTaps * kWidth>([&](int o) {
      if (o >= context.template count<kOutRows>()) return;
      const Scalar count = divisor(context, o);
      kernels::for_each_packet<Scalar>(kWidth, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        Features::template spread<P>(x.data + j, kernels::load<P>(dy.data + o * kWidth + j), count,
                                     each_of(context, o),
                                     [&](int token, const P& gradient) ATTUNE_INLINE_LAMBDA {
                                       Scalar* const sum = dx.data + token * kWidth + j;
                                       kernels::store(sum, kernels::add(kernels::load<P>(sum), gradient));
                                     });
      });
    });
  }

 private:
  using Features = TokenPooling<kind == WindowPooling::kMax, kWidth>;

  // The valid tokens of window `o`.
  template <class Call>
  ATTUNE_INLINE static auto each_of(const Call& context, int o) {
    return [&context, o](const auto& body) ATTUNE_INLINE_LAMBDA {
      for (int tap = 0; tap < kTaps; ++tap) {
        const int token = image.token(o, tap);
        if (context.template is_valid<kInRows>(token)) body(token);
      }
    };
  }
  // Whether a place outside of the sequence is its padding: a last window may reach farther.
  static constexpr bool is_padding(int o, int tap) {
    const int row = image.height.at(o / image.width.out, tap / image.width.kernel);
    const int col = image.width.at(o % image.width.out, tap % image.width.kernel);
    return row < image.height.size + image.height.before && col < image.width.size + image.width.before;
  }
  // Of a mean, at least 1.
  static Scalar divisor(const auto& context, int o) {
    int count = 0;
    if (kind != WindowPooling::kMax) each_of(context, o)([&](int) { ++count; });
    if (kind == WindowPooling::kMeanWithPadding) {
      for (int tap = 0; tap < kTaps; ++tap) count += image.token(o, tap) < 0 && is_padding(o, tap);
    }
    return Scalar(static_cast<kernels::Real<Scalar>>(at_least_one(count)));
  }
};

constexpr bool is_padded(const Pool1dShape& shape) { return shape.padding > 0; }
constexpr bool is_padded(const Pool2dShape& shape) {
  return shape.padding_height > 0 || shape.padding_width > 0;
}
template <auto shape>
inline constexpr WindowPooling kMeanOf = is_padded(shape) && shape.count_padding
                                             ? WindowPooling::kMeanWithPadding
                                             : WindowPooling::kMean;

// A hash of a window's options; of an option that is not used, as before there was one.
constexpr std::uint32_t pool_fingerprint(const char* name, const Pool1dShape& shape) {
  const std::uint32_t plain = fingerprint(name, shape.kernel, shape.stride, OnlyIf{is_padded(shape)},
                                          shape.padding, int{shape.count_padding});
  return shape.ceil ? fingerprint(plain, "ceil") : plain;
}
constexpr std::uint32_t pool_fingerprint(const char* name, const Pool2dShape& shape) {
  const std::uint32_t plain = fingerprint(
      name, shape.height, shape.kernel_height, shape.kernel_width, shape.stride_height, shape.stride_width,
      OnlyIf{is_padded(shape)}, shape.padding_height, shape.padding_width, int{shape.count_padding});
  return shape.ceil ? fingerprint(plain, "ceil") : plain;
}

}  // namespace detail

/// PyTorch's nn.AvgPool1d of x[seq_len, d_model], whose rows are time steps: y[(seq_len + 2·padding −
/// kernel)/stride + 1, d_model], rounded down, or up with `ceil`. Reads only padding from a mask, and leaves
/// it out of the means.
template <Pool1dShape pool_shape, class ScalarType = float>
struct AvgPool1d : detail::PooledWindows<pool_shape, detail::kMeanOf<pool_shape>, ScalarType> {
  template <class Other>
  using WithScalar = AvgPool1d<pool_shape, Other>;
  static constexpr std::uint32_t kFingerprint = detail::pool_fingerprint("AvgPool1d", pool_shape);
};

/// PyTorch's nn.AvgPool2d of an image x[height·width, d_model] with one token per pixel, row by row; y has
/// the same layout. Reads only padding from a mask, and leaves it out of the means.
template <Pool2dShape pool_shape, class ScalarType = float>
struct AvgPool2d : detail::PooledWindows<pool_shape, detail::kMeanOf<pool_shape>, ScalarType> {
  template <class Other>
  using WithScalar = AvgPool2d<pool_shape, Other>;
  static constexpr std::uint32_t kFingerprint = detail::pool_fingerprint("AvgPool2d", pool_shape);
};

/// PyTorch's nn.MaxPool1d of x[seq_len, d_model], whose rows are time steps: y[(seq_len + 2·padding −
/// kernel)/stride + 1, d_model]. Reads only padding from a mask, and leaves it out of the maxima. Ignores
/// count_padding.
template <Pool1dShape pool_shape, class ScalarType = float>
struct MaxPool1d : detail::PooledWindows<pool_shape, detail::WindowPooling::kMax, ScalarType> {
  template <class Other>
  using WithScalar = MaxPool1d<pool_shape, Other>;
  static constexpr std::uint32_t kFingerprint = detail::pool_fingerprint("MaxPool1d", pool_shape);
};

/// PyTorch's nn.MaxPool2d of an image x[height·width, d_model] with one token per pixel, row by row; y has
/// the same layout. Reads only padding from a mask, and leaves it out of the maxima. Ignores count_padding.
template <Pool2dShape pool_shape, class ScalarType = float>
struct MaxPool2d : detail::PooledWindows<pool_shape, detail::WindowPooling::kMax, ScalarType> {
  template <class Other>
  using WithScalar = MaxPool2d<pool_shape, Other>;
  static constexpr std::uint32_t kFingerprint = detail::pool_fingerprint("MaxPool2d", pool_shape);
};

}  // namespace ATTUNE_NAMESPACE
