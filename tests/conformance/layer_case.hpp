// A layer or a model with one input, or of ids: output, and where the case has an output gradient, every
// gradient, sequence by sequence.
#pragma once

#include "case_mask.hpp"

namespace conformance {

template <class Layer, class Scalar = typename Layer::Scalar>
struct LayerData {
  const std::conditional_t<attune::detail::TakesIds<Layer>, int, Scalar>* input;
  const Scalar* parameters = nullptr;  // tensor after tensor; none where the layer has none
  const Scalar* grad_out = nullptr;
  int batch = 1;
  MaskData<Scalar> mask = {};
  MaskData<Scalar> source_mask = {};  // with mask and memory_mask of an EncoderDecoder
  MaskData<Scalar> memory_mask = {};
};

/// `options`: of a mask, or of those of source, target and memory.
template <class Layer, MaskOptions... options>
auto mask_of(const LayerData<Layer>& data, int sequence) {
  constexpr MaskOptions kOptions[] = {options..., {}, {}, {}};
  if constexpr (sizeof...(options) == 0) {
    return attune::NoMask{};
  } else if constexpr (sizeof...(options) == 1) {
    constexpr int kTokens = Layer::Input::rows;
    return case_mask<kOptions[0], kTokens, kTokens>(data.mask, sequence);
  } else {
    constexpr int kSource = Layer::Encoder::Input::rows, kTarget = Layer::Decoder::Input::rows;
    return attune::EncoderDecoderMask{case_mask<kOptions[0], kSource, kSource>(data.source_mask, sequence),
                                      case_mask<kOptions[1], kTarget, kTarget>(data.mask, sequence),
                                      case_mask<kOptions[2], kTarget, kSource>(data.memory_mask, sequence)};
  }
}

template <class Layer, MaskOptions... options>
void layer_case(const LayerData<Layer>& data) {
  static check::LayerMemory<Layer> memory;
  auto& [parameters, gradients, y, tape, scratch, inference] = memory;
  static typename Layer::Input dx;
  constexpr bool kTakesIds = attune::detail::TakesIds<Layer>;

  load(parameters, data.parameters);
  attune::set_zero(gradients);
  for (int i = 0; i < data.batch; ++i) {
    const attune::ConstView<typename Layer::Input> x(data.input +
                                                     i * static_cast<int>(sizeof dx / sizeof *data.input));
    const auto mask = mask_of<Layer, options...>(data, i);
    expect_accepted(
        [&] { return attune::infer<Layer>(memory.parameters, x, memory.y, memory.inference, mask); });
    report(y, "out_inference");
    expect_accepted([&] {
      return attune::forward<Layer>(memory.parameters, x, memory.y, memory.tape, memory.scratch, mask);
    });
    report(y, "out");
    if constexpr (requires(typename Layer::Tape kept) { kept.inverse_deviation; }) {
      for (int row = 0; row < Layer::Input::rows; ++row) {
        const typename Layer::Scalar mean = x(row, 0) + tape.mean_offset.values[row];
        report(&mean, 1, "mean");
      }
      report(tape.inverse_deviation, "inverse_deviation");
    }
    if (data.grad_out == nullptr) continue;
    const attune::ConstView<typename Layer::Output> dy(data.grad_out + i * Layer::Output::size);
    if constexpr (kTakesIds) {
      attune::backward<Layer>(parameters, x, tape, dy, attune::NoGradient{}, gradients, scratch, mask);
    } else {
      attune::backward<Layer>(parameters, x, tape, dy, dx, gradients, scratch, mask);
      report(dx, "grad.input");
    }
  }
  if (data.grad_out != nullptr) report_set(gradients, "grad.");
}

}  // namespace conformance
