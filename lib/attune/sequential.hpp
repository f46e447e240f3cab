// Layers one after the other: y = f_n(… f_2(f_1(x))).
//
//   using Model = Sequential<Linear<LinearShape{8, 8, 16}>, LearnedPositions<PositionShape{8, 16}>,
//                            Repeat<2, EncoderLayer<kEncoder>>, Pooling<PoolingShape{8, 16}>,
//                            Linear<LinearShape{1, 16, 10}>>;
//
// The model is a layer itself. What stands between two layers is taped, since the second one's backward reads
// it; a layer's scratch is dead when the next one starts, so all of them share it, and gradients between
// layers take turns in two buffers. A mask goes to every layer that takes one.
#pragma once

#include <attune/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Layers one after the other.
template <class... Layers>
class Sequential {
 public:
  static constexpr int kLayers = static_cast<int>(sizeof...(Layers));
  static_assert(kLayers > 0 && kLayers <= detail::kMostLayers, "attune::Sequential: from 1 to 24 layers");

  template <int index>
  using Layer = typename detail::TypeAt<index, Layers...>::type;
  using Scalar = typename Layer<0>::Scalar;
  using Input = typename Layer<0>::Input;
  using Output = typename Layer<kLayers - 1>::Output;
  template <class Other>
  using WithScalar = Sequential<typename Layers::template WithScalar<Other>...>;

  /// `layer<i>()` has those of layer i, in whose tensors' names it is "i".
  struct Parameters {
    [[no_unique_address]] detail::Members<typename Layers::Parameters...> members;

    template <int index>
    constexpr decltype(auto) layer() {
      return detail::member<index>(members);
    }
    template <int index>
    constexpr decltype(auto) layer() const {
      return detail::member<index>(members);
    }
    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&... sets) {
      for_each_index([&]<int index>() {
        if constexpr (!std::is_empty_v<typename Layer<index>::Parameters>) {
          const TensorPath path{detail::kNumbers[index], parent};
          Layer<index>::Parameters::visit(visitor, &path, sets.template layer<index>()...);
        }
      });
    }
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      for_each_index([&]<int index>() {
        if constexpr (!std::is_empty_v<typename Layer<index>::Parameters>) {
          attune::initialise(layer<index>(), initialiser, rng);
        }
      });
    }
  };

 private:
  template <class Body>
  static constexpr void for_each_index(const Body& body) {
    [&]<std::size_t... index>(std::index_sequence<index...>) {
      (body.template operator()<static_cast<int>(index)>(), ...);
    }
    (std::make_index_sequence<kLayers>{});
  }
  template <class Indices>
  struct Boundaries;
  template <std::size_t... index>
  struct Boundaries<std::index_sequence<index...>> {
    using Outputs = detail::Members<typename Layer<static_cast<int>(index)>::Output...>;
    static constexpr int kLargest = std::max({1, Layer<static_cast<int>(index)>::Output::size...});
    static constexpr bool kAllFit =
        (detail::kFits<Layer<static_cast<int>(index)>, Layer<static_cast<int>(index) + 1>> && ...);
  };
  using Between = Boundaries<std::make_index_sequence<kLayers - 1>>;
  using Turns = detail::Turns<Scalar, Between::kLargest, kLayers - 1>;

 public:
  /// What each layer tapes, and what stands between them.
  struct Tape {
    [[no_unique_address]] detail::Members<typename Layers::Tape...> layers;
    [[no_unique_address]] typename Between::Outputs between;

    /// With dropout: starts all masks from a generator's next numbers.
    void draw_seeds(Rng& rng) requires(detail::kDropsIn<typename Layers::Tape> || ...) {
      for_each_index([&]<int index>() {
        if constexpr (detail::kDropsIn<typename Layer<index>::Tape>) {
          detail::member<index>(layers).draw_seeds(rng);
        }
      });
    }
  };
  struct Scratch {
    detail::OneOf<typename Layers::Scratch...> layers;
    [[no_unique_address]] Turns gradients;
  };
  struct InferenceScratch {
    detail::OneOf<typename Layers::InferenceScratch...> layers;
    [[no_unique_address]] Turns activations;
  };

  using InputView = detail::ConstView<Input>;
  using InputGradientView = detail::MutableView<Input>;
  using OutputView = detail::MutableView<Output>;
  using OutputGradientView = detail::ConstView<Output>;

  /// Inference. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters& parameters, InputView x, OutputView y, InferenceScratch& scratch,
                      const Mask& mask = {}) {
    infer_from<0>(parameters, x, y, scratch, mask);
  }
  /// Training. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters& parameters, InputView x, OutputView y, Tape& tape, Scratch& scratch,
                      const Mask& mask = {}) {
    forward_from<0>(parameters, x, y, tape, scratch, mask);
  }
  /// dx from dy, overwritten; gradients accumulate. The tape is used up. `dx` may overlap neither `dy` nor
  /// `x`.
  static void backward(const Parameters& parameters, InputView x, Tape& tape, OutputGradientView dy,
                       InputGradientView dx, Parameters& gradients, Scratch& scratch) {
    backward_from<kLayers - 1>(parameters, x, tape, dy, gradients, scratch, dx);
  }
  /// The same where nobody asks for dx.
  static void backward(const Parameters& parameters, InputView x, Tape& tape, OutputGradientView dy,
                       Parameters& gradients, Scratch& scratch) {
    backward_from<kLayers - 1>(parameters, x, tape, dy, gradients, scratch);
  }

 private:
  template <int index, class Mask>
  ATTUNE_INLINE static void infer_from(const Parameters& parameters,
                                       detail::ConstView<typename Layer<index>::Input> x, OutputView y,
                                       InferenceScratch& scratch, const Mask& mask) {
    auto&& own = parameters.template layer<index>();
    auto& layer_scratch = detail::one_of<index>(scratch.layers);
    if constexpr (index + 1 == kLayers) {
      detail::forward_through<Layer<index>>(mask, own, x, y, layer_scratch);
    } else {
      const auto next = scratch.activations.template at<typename Layer<index>::Output>(index);
      detail::forward_through<Layer<index>>(mask, own, x, next, layer_scratch);
      infer_from<index + 1>(parameters, next, y, scratch, mask);
    }
  }

  template <int index, class Mask>
  ATTUNE_INLINE static void forward_from(const Parameters& parameters,
                                         detail::ConstView<typename Layer<index>::Input> x, OutputView y,
                                         Tape& tape, Scratch& scratch, const Mask& mask) {
    auto&& own = parameters.template layer<index>();
    auto&& layer_tape = detail::member<index>(tape.layers);
    auto& layer_scratch = detail::one_of<index>(scratch.layers);
    if constexpr (index + 1 == kLayers) {
      detail::forward_through<Layer<index>>(mask, own, x, y, layer_tape, layer_scratch);
    } else {
      auto& next = detail::member<index>(tape.between);
      detail::forward_through<Layer<index>>(mask, own, x, view(next), layer_tape, layer_scratch);
      forward_from<index + 1>(parameters, next, y, tape, scratch, mask);
    }
  }

  // The first layer with parameters: what stands before it needs no gradient unless dx is asked for.
  static constexpr int kFirstTrained = [] {
    const bool trained[] = {!std::is_empty_v<typename Layers::Parameters>...};
    int first = 0;
    while (first < kLayers - 1 && !trained[first]) ++first;
    return first;
  }();

  template <int index, class... Dx>
  ATTUNE_INLINE static void backward_from(const Parameters& parameters, InputView x, Tape& tape,
                                          detail::ConstView<typename Layer<index>::Output> dy,
                                          Parameters& gradients, Scratch& scratch, Dx... dx) {
    auto&& own = parameters.template layer<index>();
    auto&& gradient = gradients.template layer<index>();
    auto&& layer_tape = detail::member<index>(tape.layers);
    auto& layer_scratch = detail::one_of<index>(scratch.layers);
    if constexpr (index == 0) {
      Layer<0>::backward(own, x, layer_tape, dy, dx..., gradient, layer_scratch);
    } else if constexpr (sizeof...(Dx) == 0 && kFirstTrained >= index) {
      const detail::ConstView<typename Layer<index>::Input> before(detail::member<index - 1>(tape.between));
      Layer<index>::backward(own, before, layer_tape, dy, gradient, layer_scratch);
    } else {
      const auto d_before = scratch.gradients.template at<typename Layer<index>::Input>(index - 1);
      const detail::ConstView<typename Layer<index>::Input> before(detail::member<index - 1>(tape.between));
      Layer<index>::backward(own, before, layer_tape, dy, d_before, gradient, layer_scratch);
      backward_from<index - 1>(parameters, x, tape, d_before, gradients, scratch, dx...);
    }
  }

  static_assert(Between::kAllFit);
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
