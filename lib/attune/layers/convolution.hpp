// Convolutions of tokens: Conv1d over time, and Conv2d over tokens that are the pixels of an image, row by
// row.
//
//   y(o, j) = b(j) + Σ_(c, k) x(i(o, k), c)·w(j, c, k)      c in the group of j; x = 0 outside and at padding
//   dw(j, c, k) += Σ_o dy(o, j)·x(i(o, k), c),   db(j) += Σ_o dy(o, j)
//   dx(i(o, k), c) += Σ_j dy(o, j)·w(j, c, k)
//
// Conv1d has i(o, k) = o·stride + k·dilation − padding; Conv2d has the same for height and width. The weight
// is [d_out, d_in/groups, kernel…], as in PyTorch. A few tokens at a time are gathered in scratch and
// multiplied. If each channel is a group, packets of channels are multiplied instead.
#pragma once

#include <cstring>

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/layers/linear.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions and options of `Conv1d`, PyTorch's nn.Conv1d.
struct Conv1dShape {
  int seq_len;       // tokens of x
  int d_in;          // features of an input token: in_channels
  int d_out;         // features of an output token: out_channels
  int kernel;        // tokens of x that one token of y sees
  int stride = 1;    // distance between kernels, in tokens
  int padding = 0;   // tokens of zeros before the sequence, and as many after it
  int groups = 1;    // groups of features that do not meet; d_in groups: depthwise
  bool bias = true;  // whether there is a bias
  bool causal =
      false;  // (kernel − 1)·dilation tokens of zeros before the sequence, none after it; padding is 0
  int dilation = 1;       // distance between the tokens that a kernel sees
  int extra_padding = 0;  // tokens of zeros after the sequence besides padding; may be negative
};

/// Dimensions and options of `Conv2d`, PyTorch's nn.Conv2d.
struct Conv2dShape {
  int height;                    // rows of pixels of x
  int width;                     // pixels of a row; token i is pixel (i / width, i % width)
  int d_in;                      // features of an input pixel: in_channels
  int d_out;                     // features of an output pixel: out_channels
  int kernel_height;             // rows of x that a pixel of y sees
  int kernel_width;              // pixels in each of these rows
  int stride_height = 1;         // distance between kernels, in rows
  int stride_width = 1;          // distance between kernels, in pixels
  int padding_height = 0;        // rows of zeros above the image, and as many below
  int padding_width = 0;         // pixels of zeros left of the image, and as many right of it
  int groups = 1;                // groups of features that do not meet; d_in groups: depthwise
  bool bias = true;              // whether there is a bias
  int dilation_height = 1;       // distance between the rows that a kernel sees
  int dilation_width = 1;        // distance between the pixels of a row that a kernel sees
  int extra_padding_height = 0;  // rows of zeros below besides padding_height; may be negative
  int extra_padding_width = 0;   // pixels of zeros right of the image besides padding_width; may be negative
};

namespace detail {

// One dimension of an image, and the kernel's.
struct ConvolvedExtent {
  int size;
  int kernel;
  int stride;
  int before;    // zeros in front
  int out;       // size of y
  int dilation;  // distance between taps

  // Where tap `tap` of output `o` reads; outside of [0, size) is a zero.
  [[nodiscard]] constexpr int at(int o, int tap) const { return o * stride + tap * dilation - before; }
};
struct ConvolvedImage {
  ConvolvedExtent height, width;
  int d_in, d_out, groups;
  bool bias;

  [[nodiscard]] constexpr int in_rows() const { return height.size * width.size; }
  [[nodiscard]] constexpr int out_rows() const { return height.out * width.out; }
  [[nodiscard]] constexpr int taps() const { return height.kernel * width.kernel; }
  // The token that a tap of output `o` reads; negative for a zero.
  [[nodiscard]] constexpr int token(int o, int tap) const {
    if (height.size == 1 && height.out == 1 && height.kernel == 1 &&
        height.before == 0) {  // nothing to divide
      const int at = width.at(o, tap);
      return at < width.size ? at : -1;  // and −1 or less in front
    }
    const int row = height.at(o / width.out, tap / width.kernel);
    const int col = width.at(o % width.out, tap % width.kernel);
    return row < 0 || row >= height.size || col < 0 || col >= width.size ? -1 : row * width.size + col;
  }
};

// The tokens from a kernel's first tap to its last one.
constexpr int dilated(int kernel, int dilation) { return (kernel - 1) * dilation + 1; }
constexpr ConvolvedExtent convolved(int size, int kernel, int stride, int before, int behind,
                                    int dilation = 1) {
  return {at_least_one(size),
          at_least_one(kernel),
          at_least_one(stride),
          before,
          at_least_one((size + before + behind - dilated(kernel, dilation)) / at_least_one(stride) + 1),
          at_least_one(dilation)};
}
constexpr ConvolvedExtent kOneRow = convolved(1, 1, 1, 0, 0);  // of a sequence
constexpr ConvolvedImage convolved(const ConvolvedExtent& height, const ConvolvedExtent& width, int d_in,
                                   int d_out, int groups = 1, bool bias = false) {
  return {height, width, at_least_one(d_in), at_least_one(d_out), at_least_one(groups), bias};
}

template <Conv1dShape shape>
constexpr ConvolvedImage convolved_image() {
  static_assert(Holds<(shape.seq_len > 0 && shape.d_in > 0 && shape.d_out > 0 && shape.kernel > 0 &&
                       shape.stride > 0 && shape.dilation > 0 && shape.padding >= 0)>,
                "attune::Conv1d: seq_len, d_in, d_out, kernel, stride and dilation must be positive, and "
                "padding not negative; set the first four in Conv1dShape");
  static_assert(
      Holds<(!shape.causal || (shape.padding == 0 && shape.extra_padding == 0))>,
      "attune::Conv1d: a causal convolution has its zeros in front of the sequence; leave padding at 0");
  static_assert(Holds<(shape.padding + shape.extra_padding >= 0)>,
                "attune::Conv1d: extra_padding takes away more tokens than padding has");
  static_assert(Holds<(shape.groups > 0 && shape.d_in % at_least_one(shape.groups) == 0 &&
                       shape.d_out % at_least_one(shape.groups) == 0)>,
                "attune::Conv1d: d_in and d_out must be multiples of groups");
  static_assert(Holds<(shape.causal || dilated(shape.kernel, shape.dilation) <=
                                           shape.seq_len + 2 * shape.padding + shape.extra_padding)>,
                "attune::Conv1d: the kernel is longer than the sequence with its padding");
  const int before = shape.causal ? dilated(shape.kernel, shape.dilation) - 1 : shape.padding;
  const int behind = shape.causal ? 0 : shape.padding + shape.extra_padding;
  return convolved(kOneRow,
                   convolved(shape.seq_len, shape.kernel, shape.stride, before, behind, shape.dilation),
                   shape.d_in, shape.d_out, shape.groups, shape.bias);
}
template <Conv2dShape shape>
constexpr ConvolvedImage convolved_image() {
  static_assert(Holds<(shape.height > 0 && shape.width > 0 && shape.d_in > 0 && shape.d_out > 0 &&
                       shape.kernel_height > 0 && shape.kernel_width > 0 && shape.stride_height > 0 &&
                       shape.stride_width > 0 && shape.dilation_height > 0 && shape.dilation_width > 0 &&
                       shape.padding_height >= 0 && shape.padding_width >= 0)>,
                "attune::Conv2d: height, width, d_in, d_out, kernels, strides and dilations must be "
                "positive, and padding not negative; set the first six in Conv2dShape");
  static_assert(Holds<(shape.groups > 0 && shape.d_in % at_least_one(shape.groups) == 0 &&
                       shape.d_out % at_least_one(shape.groups) == 0)>,
                "attune::Conv2d: d_in and d_out must be multiples of groups");
  static_assert(
      Holds<(shape.padding_height + shape.extra_padding_height >= 0 &&
             shape.padding_width + shape.extra_padding_width >= 0)>,
      "attune::Conv2d: extra_padding_height and extra_padding_width take away more than padding has");
  static_assert(Holds<(dilated(shape.kernel_height, shape.dilation_height) <=
                           shape.height + 2 * shape.padding_height + shape.extra_padding_height &&
                       dilated(shape.kernel_width, shape.dilation_width) <=
                           shape.width + 2 * shape.padding_width + shape.extra_padding_width)>,
                "attune::Conv2d: the kernel is larger than the image with its padding");
  return convolved(convolved(shape.height, shape.kernel_height, shape.stride_height, shape.padding_height,
                             shape.padding_height + shape.extra_padding_height, shape.dilation_height),
                   convolved(shape.width, shape.kernel_width, shape.stride_width, shape.padding_width,
                             shape.padding_width + shape.extra_padding_width, shape.dilation_width),
                   shape.d_in, shape.d_out, shape.groups, shape.bias);
}

// A weight by groups, [d_out, terms], as initializers see the weight of one group.
template <class Table, int terms, int outputs>
struct FiltersOfGroup {
  using Scalar = typename Table::Scalar;
  static constexpr int rows = terms;
  static constexpr int cols = outputs;
  static constexpr int size = Table::size;
  decltype(Table::values)& values;
};

template <template <class, int, int> class Matrix>
struct FilterTable {
  template <class Scalar, int terms, int d_out>
  using Of = ::attune::TableOf<Matrix, Scalar, d_out, terms>;
};

/// The set of a Linear, with the filters of groups in a table, as their weight.
template <class Scalar, int terms, int d_out, int groups, bool kBias, template <class, int, int> class Matrix,
          template <class, int, int> class Vector>
struct GroupedFilters
    : LinearParameters<Scalar, terms, d_out, kBias, FilterTable<Matrix>::template Of, Vector> {
  using Form = attune::Form<Matrix, Vector>;
  template <class Initializer>
  void initialize(const Initializer& initializer, Rng& rng) {
    using OfGroup = FiltersOfGroup<decltype(this->weight), terms, d_out / groups>;
    OfGroup filters{this->weight.values};
    initializer.weight(filters, rng);
    if constexpr (kBias && requires { initializer.template bias<OfGroup>(this->bias, rng); }) {
      initializer.template bias<OfGroup>(this->bias, rng);
    } else if constexpr (kBias) {
      this->bias.set_zero();
    }
  }
};

template <auto conv_shape, class ScalarType>
struct Convolution : InputReadForWeight {
  static constexpr const auto& shape = conv_shape;
  static constexpr ConvolvedImage image = convolved_image<conv_shape>();
  static constexpr int kInRows = image.in_rows(), kOutRows = image.out_rows(), kTaps = image.taps();
  static constexpr int kIn = image.d_in / image.groups, kOut = image.d_out / image.groups;
  static constexpr int kTerms = kIn * kTaps;
  static constexpr bool kGrouped = image.groups > 1;
  static constexpr bool kDepthwise = kGrouped && kIn == 1 && kOut == 1;
  // Number of tokens gathered at once.
  static constexpr int kBlock = smaller(kOutRows, 8);

  using Scalar = ScalarType;
  using Input = Tensor<Scalar, kInRows, image.d_in>;
  using Output = Tensor<Scalar, kOutRows, image.d_out>;
  template <int tokens, CacheShape>
  struct Stream : detail::NoStream {
    static_assert(Holds<(tokens < 0)>,
                  "attune: only a causal Conv1d of stride 1 runs token by token; set .causal in Conv1dShape, "
                  "as the model was trained");
  };
  static constexpr Abilities kAbilities{
      .mixes_tokens = true, .mask = MaskUse::kPadding, .takes_context = true, .takes_length = true};

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = std::conditional_t<
      kGrouped, GroupedFilters<Scalar, kTerms, image.d_out, image.groups, image.bias, Matrix, Vector>,
      LinearParameters<Scalar, kTerms, image.d_out, image.bias, Matrix, Vector>>;
  using Parameters = ParametersOf<Tensor>;

  // Memory of a portion: gathered tokens, [tokens, kTerms], and the filters of a group, [kOut, kTerms].
  struct Gathered {
    Scalar tokens[std::size_t{kBlock * kTerms}];
  };
  struct GatheredOfGroup : Gathered {
    Scalar filters[std::size_t{kOut * kTerms}];
  };
  // All filters, [taps, d_out].
  struct FiltersByTap {
    Scalar filters[std::size_t{kTaps * image.d_out}];
  };
  struct FiltersAndGradients : FiltersByTap {
    Scalar gradients[std::size_t{kTaps * image.d_out}];
  };
  struct Tape {};  // backward needs nothing but x
  using InferenceScratch =
      std::conditional_t<kDepthwise, FiltersByTap, std::conditional_t<kGrouped, GatheredOfGroup, Gathered>>;
  struct Scratch : std::conditional_t<kDepthwise, FiltersAndGradients, InferenceScratch> {};

  /// Inference: y of x. `y` may not overlap `x`. Does not read rows of x that are padding.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    convolve(parameters, tokens_of_taps(x, context), y, scratch, context);
  }
  /// Training: the same.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, Tape&, Scratch& scratch,
                      const Call& context = {}) {
    forward(parameters, x, y, scratch, context);
  }
  /// Overwrites dx, from dy; adds to the gradients. `dx` may overlap neither `dy` nor `x`.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, const Tape&, ConstView<Output> dy, Dx&& dx,
                       Gradients& gradients, Scratch& scratch, const Call& context = {}) {
    const auto to = sink<Input>(dx);
    if_wanted<Input>(dx, [&](View<Input> all) {
      context.stage([&] {
        for (int i = 0; i < Input::size; ++i) all.data[i] = Scalar(0);
      });
    });
    if constexpr (image.bias) {
      context.stage([&]() ATTUNE_INLINE_LAMBDA { add_column_sums(context.first(dy), view(gradients.bias)); });
    }
    const auto of_taps = tokens_of_taps(x, context);
    if constexpr (kDepthwise) {
      depthwise_backward(parameters, of_taps, dy, to, gradients, scratch, context);
    } else {
      context.template repeat<(kOutRows + kBlock - 1) / kBlock>([&](int block) {
        backward_block(block * kBlock, parameters, of_taps, dy, to, gradients, scratch, context);
      });
    }
  }

 protected:
  // y[rows, d_out] of the tokens of taps. `Rows` is y, or the tokens of a step.
  template <class Rows>
  static void convolve(const auto& parameters, const auto& of_taps, const Rows& y, auto& scratch,
                       const auto& context) {
    if constexpr (kDepthwise) {
      context.stage([&] { take_filters(parameters, scratch.filters); });
      context.template each_token<Rows::rows, kTaps * image.d_out>([&](int o) {
        Scalar* const to = y.data + o * image.d_out;
        const Scalar* const bias = numbers_of_bias<Scalar>(parameters);
        for (int j = 0; j < image.d_out; ++j) to[j] = image.bias ? bias[j] : Scalar(0);
        for (int tap = 0; tap < kTaps; ++tap) {
          if (const Scalar* const from = of_taps(o, tap)) {
            add_products(from, scratch.filters + tap * image.d_out, to);
          }
        }
      });
    } else {
      context.template tokens_at_once<Rows::rows, smaller(Rows::rows, kBlock), kTerms * image.d_out>(
          [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
            auto* const own = context.own(&scratch);
            const auto rows = at_start(first);
            const auto to = y.template rows_at<count>(first);
            const MatrixView<const Scalar, kBlock, kTerms> gathered(own->tokens);
            for (int group = 0; group < image.groups; ++group) {
              gather(of_taps, first, rows_in<count>(first), group, own->tokens);
              multiply(gathered.template rows_at<count>(rows), weight_of_group(parameters, group, *own),
                       to.template columns<kOut>(group * kOut), epilogue(parameters, group * kOut));
            }
          });
    }
  }

 private:
  // The token that a tap of an output reads, by its features; nullptr for a zero, outside or at padding.
  ATTUNE_INLINE static auto tokens_of_taps(ConstView<Input> x, const auto& context) {
    return [x, &context](int o, int tap) ATTUNE_INLINE_LAMBDA -> const Scalar* {
      const int token = image.token(o, tap);
      return context.template is_valid<kInRows>(token) ? x.data + token * image.d_in : nullptr;
    };
  }
  // Adds the bias of the features from `first` on, if there is one.
  static auto epilogue([[maybe_unused]] const auto& parameters, [[maybe_unused]] int first) {
    if constexpr (image.bias) {
      return kernels::AddBias<Scalar>{parameters.bias.data() + first};
    } else {
      return kernels::Assign{};
    }
  }
  // tokens[count, kTerms]: the features of a group that outputs from `first` on see, zeros outside.
  static void gather(const auto& of_taps, int first, int count, int group, Scalar* tokens) {
    for (int i = 0; i < count; ++i, tokens += kTerms) {
      for (int tap = 0; tap < kTaps; ++tap) {
        const Scalar* const from = of_taps(first + i, tap);
        for (int c = 0; c < kIn; ++c) {
          tokens[c * kTaps + tap] = from != nullptr ? from[group * kIn + c] : Scalar(0);
        }
      }
    }
  }
  // The reverse of gather: adds gradients of gathered tokens to dx.
  static void spread(const auto& context, int first, int count, int group, const Scalar* tokens,
                     View<Input> dx) {
    for (int i = 0; i < count; ++i, tokens += kTerms) {
      for (int tap = 0; tap < kTaps; ++tap) {
        const int token = image.token(first + i, tap);
        if (!context.template is_valid<kInRows>(token)) continue;
        for (int c = 0; c < kIn; ++c) dx(token, group * kIn + c) += tokens[c * kTaps + tap];
      }
    }
  }
  // The weight of a group, [kTerms, kOut]; of several, in scratch.
  static decltype(auto) weight_of_group(const auto& parameters, [[maybe_unused]] int group,
                                        [[maybe_unused]] auto& scratch) {
    if constexpr (kGrouped) {
      for (int j = 0; j < kOut; ++j) {
        look_up(parameters.weight, group * kOut + j, scratch.filters + j * kTerms);
      }
      return MatrixView<const Scalar, kOut, kTerms>(scratch.filters).transpose();
    } else {
      return (parameters.weight);
    }
  }
  static auto gradient_of_group(auto& gradients, [[maybe_unused]] int group) {
    if constexpr (kGrouped) {
      return view(gradients.weight).template rows_at<kOut>(group * kOut).transpose();
    } else {
      return view(gradients.weight);
    }
  }
  // The filters of all channels, tap by tap.
  static void take_filters(const auto& parameters, Scalar* filters) {
    Scalar filter[std::size_t{kTaps}];
    for (int c = 0; c < image.d_out; ++c) {
      look_up(parameters.weight, c, filter);
      for (int tap = 0; tap < kTaps; ++tap) filters[tap * image.d_out + c] = filter[tap];
    }
  }
  // sums += a ∘ b.
  static void add_products(const Scalar* a, const Scalar* b, Scalar* sums) {
    kernels::for_each_packet<Scalar>(image.d_out, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      kernels::store(sums + j, kernels::multiply_add(kernels::load<P>(a + j), kernels::load<P>(b + j),
                                                     kernels::load<P>(sums + j)));
    });
  }

  // Outputs from `first` on. Blocks are the same whatever the slices, and so are the sums of gradients.
  template <class Gradients>
  static void backward_block(int first, const auto& parameters, const auto& of_taps, ConstView<Output> dy,
                             const auto& dx, Gradients& gradients, Scratch& scratch, const auto& context) {
    const int count = smaller<int>(kBlock, context.template count<kOutRows>() - first);
    if (count <= 0) return;
    const auto tokens =
        MatrixView<Scalar, kBlock, kTerms>(+scratch.tokens).template rows_at<kBlock>(RowRange{0, count});
    const auto of_block = dy.template rows_at<kBlock>(RowRange{first, count});
    for (int group = 0; group < image.groups; ++group) {
      const auto of_group = of_block.template columns<kOut>(group * kOut);
      if constexpr (TrainsWeight<Gradients>) {
        context.stage([&] {
          gather(of_taps, first, count, group, scratch.tokens);
          add_product(tokens.transpose(), of_group, gradient_of_group(gradients, group), context.zeros());
        });
      }
      if_wanted<Input>(dx, [&](View<Input> to) {
        context.stage([&] {
          multiply_transposed(of_group, weight_of_group(parameters, group, scratch), tokens);
          spread(context, first, count, group, scratch.tokens, to);
        });
      });
    }
  }

  template <class Gradients>
  static void depthwise_backward(const auto& parameters, const auto& of_taps, ConstView<Output> dy,
                                 const auto& dx, Gradients& gradients, Scratch& scratch,
                                 const auto& context) {
    context.stage([&] {
      if_wanted<Input>(dx, [&](View<Input>) { take_filters(parameters, scratch.filters); });
      for (Scalar& value : scratch.gradients) value = Scalar(0);
    });
    context.template each_token<kOutRows, 2 * kTaps * image.d_out>([&](int o) {
      if (o >= context.template count<kOutRows>()) return;
      const Scalar* const gradient = dy.data + o * image.d_out;
      for (int tap = 0; tap < kTaps; ++tap) {
        const int token = image.token(o, tap);
        if (!context.template is_valid<kInRows>(token)) continue;
        if constexpr (TrainsWeight<Gradients>) {
          add_products(gradient, of_taps(o, tap), scratch.gradients + tap * image.d_out);
        }
        if_wanted<Input>(dx, [&](View<Input> to) ATTUNE_INLINE_LAMBDA {
          add_products(gradient, scratch.filters + tap * image.d_out, to.data + token * image.d_in);
        });
      }
    });
    context.stage([&] {
      add_rows(view(gradients.weight), [&](int, const auto& to) {
        for (int c = 0; c < image.d_out; ++c) {
          for (int tap = 0; tap < kTaps; ++tap) to(c, tap) += scratch.gradients[tap * image.d_out + c];
        }
      });
    });
  }
};

}  // namespace detail

/// PyTorch's nn.Conv1d of x[seq_len, d_in], whose rows are time steps: y[(seq_len + 2·padding +
/// extra_padding − (kernel − 1)·dilation − 1)/stride + 1, d_out]. In a file its weight is [d_out,
/// d_in/groups, kernel]. A causal one with stride 1 runs on a stream; its memory is the last (kernel −
/// 1)·dilation tokens. With groups, the weight is a table (TableOf).
template <Conv1dShape conv_shape, class ScalarType = float>
struct Conv1d : detail::Convolution<conv_shape, ScalarType> {
  /// The general convolution.
  using Base = detail::Convolution<conv_shape, ScalarType>;
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Conv1d<conv_shape, Other>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("Conv1d", conv_shape.kernel, conv_shape.stride, conv_shape.padding, conv_shape.groups,
                  int{conv_shape.causal}, detail::OnlyIf{conv_shape.dilation != 1}, conv_shape.dilation,
                  detail::OnlyIf{conv_shape.extra_padding != 0}, conv_shape.extra_padding);

  /// Runs the layer token by token.
  template <int tokens, CacheShape>
  struct Stream {
    /// Number of earlier tokens that a token sees.
    static constexpr int kBefore = [] {
      static_assert(
          detail::Holds<(conv_shape.causal && conv_shape.stride == 1)>,
          "attune: only a causal Conv1d of stride 1 runs token by token; set .causal in Conv1dShape, "
          "as the model was trained");
      return (conv_shape.kernel - 1) * conv_shape.dilation;
    }();
    /// The earlier tokens, oldest first.
    struct Memory {
      /// [(kernel − 1)·dilation, d_in].
      Scalar earlier[std::size_t{(kBefore > 0 ? kBefore : 1) * conv_shape.d_in}];
    };
    /// The scratch of a step.
    using Scratch = typename Base::InferenceScratch;
    /// y[tokens, d_out] of the next x[tokens, d_in].
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<Tensor<Scalar, tokens, conv_shape.d_in>> x,
                     View<Tensor<Scalar, tokens, conv_shape.d_out>> y, auto& memory, Scratch& scratch) {
      const auto of_taps = [&](int o, int tap) -> const Scalar* {
        const int token = o + tap * conv_shape.dilation - kBefore;  // 0 is the first of x
        if (token >= 0) return x.data + token * conv_shape.d_in;
        if (position < static_cast<std::uint64_t>(-token)) return nullptr;
        return memory.earlier + (kBefore + token) * conv_shape.d_in;
      };
      Base::convolve(parameters, of_taps, y, scratch, Context<>{});
      constexpr int kStay = kBefore > tokens ? kBefore - tokens : 0, kNew = kBefore - kStay;
      std::memmove(memory.earlier, memory.earlier + kNew * conv_shape.d_in,
                   sizeof(Scalar) * std::size_t{kStay * conv_shape.d_in});
      std::memcpy(memory.earlier + kStay * conv_shape.d_in, x.data + (tokens - kNew) * conv_shape.d_in,
                  sizeof(Scalar) * std::size_t{kNew * conv_shape.d_in});
    }
  };
};

/// PyTorch's nn.Conv2d of an image x[height·width, d_in] with one token per pixel, row by row; y has the same
/// layout. In a file its weight is [d_out, d_in/groups, kernel_height, kernel_width]. With groups, the weight
/// is a table (TableOf).
template <Conv2dShape conv_shape, class ScalarType = float>
struct Conv2d : detail::Convolution<conv_shape, ScalarType> {
  /// The general convolution.
  using Base = detail::Convolution<conv_shape, ScalarType>;
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Conv2d<conv_shape, Other>;
  static constexpr std::uint32_t kFingerprint = fingerprint(
      "Conv2d", conv_shape.height, conv_shape.kernel_height, conv_shape.kernel_width,
      conv_shape.stride_height, conv_shape.stride_width, conv_shape.padding_height, conv_shape.padding_width,
      conv_shape.groups, detail::OnlyIf{conv_shape.dilation_height != 1 || conv_shape.dilation_width != 1},
      conv_shape.dilation_height, conv_shape.dilation_width,
      detail::OnlyIf{conv_shape.extra_padding_height != 0 || conv_shape.extra_padding_width != 0},
      conv_shape.extra_padding_height, conv_shape.extra_padding_width);
  /// Height of y.
  static constexpr int kOutHeight = Base::image.height.out;
  /// Width of y.
  static constexpr int kOutWidth = Base::image.width.out;
};

}  // namespace ATTUNE_NAMESPACE
