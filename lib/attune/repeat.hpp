// The same layer several times, each with parameters of its own, in one copy of its code.
#pragma once

#include <attune/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// `count` equal layers one after the other, in one copy of their code. What one gives is what the next
/// takes.
template <int count, class Layer>
class Repeat {
 public:
  static_assert(count > 0 && count <= detail::kMostLayers, "attune::Repeat: from 1 to 24 layers");
  static_assert(detail::kFits<Layer>);

  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  template <class Other>
  using WithScalar = Repeat<count, typename Layer::template WithScalar<Other>>;

  /// layers[i] is in its tensors' names "i".
  struct Parameters {
    typename Layer::Parameters layers[count];

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&... sets) {
      for (int i = 0; i < count; ++i) {
        const TensorPath path{detail::kNumbers[i], parent};
        Layer::Parameters::visit(visitor, &path, sets.layers[i]...);
      }
    }
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      for (typename Layer::Parameters& layer : layers) attune::initialise(layer, initialiser, rng);
    }
  };

 private:
  struct Nothing {};
  struct Outputs {
    Output outputs[count > 1 ? count - 1 : 1];
  };
  using Turns = detail::Turns<Scalar, Output::size, count - 1>;

 public:
  struct Tape {
    typename Layer::Tape layers[count];
    [[no_unique_address]] std::conditional_t<(count > 1), Outputs, Nothing> between;

    /// With dropout: starts all masks from a generator's next numbers.
    void draw_seeds(Rng& rng) requires detail::kDropsIn<typename Layer::Tape> {
      for (typename Layer::Tape& layer : layers) layer.draw_seeds(rng);
    }
  };
  struct Scratch {
    [[no_unique_address]] typename Layer::Scratch layer;
    [[no_unique_address]] Turns gradients;
  };
  struct InferenceScratch {
    [[no_unique_address]] typename Layer::InferenceScratch layer;
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
    for (int i = 0; i < count; ++i) {
      OutputView to = y;
      if constexpr (count > 1) {
        if (i < count - 1) to = scratch.activations.template at<Output>(i);
      }
      detail::forward_through<Layer>(mask, parameters.layers[i], x, to, scratch.layer);
      x = to;
    }
  }
  /// Training. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters& parameters, InputView x, OutputView y, Tape& tape, Scratch& scratch,
                      const Mask& mask = {}) {
    for (int i = 0; i < count; ++i) {
      OutputView to = y;
      if constexpr (count > 1) {
        if (i < count - 1) to = OutputView(tape.between.outputs[i]);
      }
      detail::forward_through<Layer>(mask, parameters.layers[i], x, to, tape.layers[i], scratch.layer);
      x = to;
    }
  }
  /// dx from dy, overwritten; gradients accumulate. The tape is used up. `dx` may overlap neither `dy` nor
  /// `x`.
  static void backward(const Parameters& parameters, InputView x, Tape& tape, OutputGradientView dy,
                       InputGradientView dx, Parameters& gradients, Scratch& scratch) {
    dy = backward_to_first(parameters, tape, dy, gradients, scratch);
    Layer::backward(parameters.layers[0], x, tape.layers[0], dy, dx, gradients.layers[0], scratch.layer);
  }
  /// The same where nobody asks for dx.
  static void backward(const Parameters& parameters, InputView x, Tape& tape, OutputGradientView dy,
                       Parameters& gradients, Scratch& scratch) {
    dy = backward_to_first(parameters, tape, dy, gradients, scratch);
    Layer::backward(parameters.layers[0], x, tape.layers[0], dy, gradients.layers[0], scratch.layer);
  }

 private:
  // All layers but the first. Returns dL/dy of the first.
  static OutputGradientView backward_to_first(const Parameters& parameters, Tape& tape, OutputGradientView dy,
                                              Parameters& gradients, Scratch& scratch) {
    if constexpr (count > 1) {
      for (int i = count - 1; i > 0; --i) {
        const auto d_before = scratch.gradients.template at<Input>(i - 1);
        Layer::backward(parameters.layers[i], tape.between.outputs[i - 1], tape.layers[i], dy, d_before,
                        gradients.layers[i], scratch.layer);
        dy = d_before;
      }
    }
    return dy;
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
