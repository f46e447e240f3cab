// Decoder layers: output and, where the case has an output gradient, every gradient, sequence by sequence.
#pragma once

#include "case_mask.hpp"
#include "stack_parameters.hpp"

namespace conformance {

/// Every layer attends to the same memory.
template <attune::DecoderLayerShape shape, int kLayers, bool kFinalNorm, class ScalarType>
struct DecoderStack {
  using Scalar = ScalarType;
  using Layer = attune::DecoderLayer<shape, Scalar>;
  using Norm = FinalNorm<shape, kFinalNorm, Scalar>;
  using Input = typename Layer::Input;
  using InputView = attune::ConstView<Input>;
  using Output = Input;
  using Memory = typename Layer::Memory;
  using MemoryView = attune::ConstView<Memory>;
  using Parameters = StackParameters<Layer, kLayers, Norm>;
  using Tape = StackTape<Layer, kLayers, Norm>;
  using Scratch = typename Layer::Scratch;
  using InferenceScratch = typename Layer::InferenceScratch;

  template <class SelfMask, class MemoryMask>
  static void forward(const Parameters& parameters, InputView x, MemoryView memory, Input& y,
                      InferenceScratch& scratch, const SelfMask& mask, const MemoryMask& memory_mask) {
    typename Norm::InferenceScratch none;
    Input tokens;
    for (int i = 0; i < kLayers; ++i) {
      attune::infer<Layer>(parameters.layers[i], i == 0 ? x : InputView(tokens), memory, y, scratch, mask,
                           memory_mask);
      tokens = y;
    }
    if (kFinalNorm) Norm::forward(parameters.norm, y, y, none);
  }
  template <class SelfMask, class MemoryMask>
  static void forward(const Parameters& parameters, InputView x, MemoryView memory, Input& y, Tape& tape,
                      Scratch& scratch, const SelfMask& mask, const MemoryMask& memory_mask) {
    typename Norm::Scratch none;
    for (int i = 0; i < kLayers; ++i) {
      attune::forward<Layer>(parameters.layers[i], i == 0 ? x : InputView(tape.outputs[i - 1]), memory,
                             tape.outputs[i], tape.layers[i], scratch, mask, memory_mask);
    }
    y = tape.outputs[kLayers - 1];
    if (kFinalNorm) Norm::forward(parameters.norm, y, y, tape.norm, none);
  }
  template <class SelfMask, class MemoryMask>
  static void backward(const Parameters& parameters, InputView x, MemoryView memory, Tape& tape, InputView dy,
                       Input& dx, Memory& d_memory, Parameters& gradients, Scratch& scratch,
                       const SelfMask& mask, const MemoryMask& memory_mask) {
    typename Norm::Scratch none;
    for (int i = 0; i < Input::size; ++i) dx.values[i] = dy.data[i];
    if (kFinalNorm) {
      Norm::backward(parameters.norm, tape.outputs[kLayers - 1], tape.norm, dx, dx, gradients.norm, none);
    }
    d_memory.set_zero();
    for (int i = kLayers - 1; i >= 0; --i) {
      Memory of_layer;
      attune::backward<Layer>(parameters.layers[i], i == 0 ? x : InputView(tape.outputs[i - 1]), memory,
                              tape.layers[i], dx, dx, of_layer, gradients.layers[i], scratch, mask,
                              memory_mask);
      for (int k = 0; k < Memory::size; ++k) d_memory.values[k] += of_layer.values[k];
    }
  }
};

template <class Scalar>
struct DecoderData {
  int batch;
  const Scalar* parameters;  // layer after layer, then the final normalization
  const Scalar* src;         // [batch, seq_len, d_model]
  const Scalar* memory;      // [batch, memory_len, d_model]
  const Scalar* grad_out = nullptr;
  MaskData<Scalar> mask;
  MaskData<Scalar> memory_mask;
};

template <attune::DecoderLayerShape shape, int layers, bool final_norm, MaskOptions options,
          MaskOptions memory_options, class Scalar>
void decoder_case(const DecoderData<Scalar>& data) {
  using Stack = DecoderStack<shape, layers, final_norm, Scalar>;
  static check::LayerMemory<Stack> of_stack;
  auto& [parameters, gradients, y, tape, scratch, inference_scratch] = of_stack;
  static typename Stack::Input dx;
  static typename Stack::Memory d_memory;

  load(parameters, data.parameters);
  attune::set_zero(gradients);
  for (int i = 0; i < data.batch; ++i) {
    const typename Stack::InputView x(data.src + i * Stack::Input::size);
    const typename Stack::MemoryView memory(data.memory + i * Stack::Memory::size);
    const auto mask = case_mask<options, shape.attention.seq_len, shape.attention.seq_len>(data.mask, i);
    const auto memory_mask =
        case_mask<memory_options, shape.attention.seq_len, shape.memory_len>(data.memory_mask, i);
    Stack::forward(parameters, x, memory, y, inference_scratch, mask, memory_mask);
    report(y, "out_inference");
    Stack::forward(parameters, x, memory, y, tape, scratch, mask, memory_mask);
    report(y, "out");
    if (data.grad_out == nullptr) continue;
    const typename Stack::InputView dy(data.grad_out + i * Stack::Input::size);
    Stack::backward(parameters, x, memory, tape, dy, dx, d_memory, gradients, scratch, mask, memory_mask);
    report(dx, "grad.tgt");
    report(d_memory, "grad.memory");
  }
  if (data.grad_out != nullptr) report_set(gradients, "grad.");
}

}  // namespace conformance
