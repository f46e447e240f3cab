// What ways to train a model take, for `python3 -m attune_torch fit` (fit.py): RAM of many candidates from
// one translation unit, and a step of one of them in an image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <attune/attune.hpp>
#include <attune_torch/trainings.hpp>

namespace attune_torch {

/// Bytes of a training: parameters, gradients, moments, tape, scratch, input and target of one sequence,
/// counters and alignment. Zeros if the model has nothing to train like this.
using Figures = std::array<std::uint32_t, 7>;
template <bool kHasParameters, class Model, class Loss, class Optimizer, class Plan>
constexpr Figures figures() {
  if constexpr (kHasParameters) {
    constexpr auto kMemory =
        attune::Trainer<Model, Loss, Optimizer, 1, Plan>::memory(attune::Feeding::kOneByOne);
    const auto figure = [](std::size_t bytes) { return static_cast<std::uint32_t>(bytes); };
    return {figure(kMemory.parameters), figure(kMemory.gradients), figure(kMemory.moments),
            figure(kMemory.tape),       figure(kMemory.scratch),   figure(kMemory.inputs),
            figure(kMemory.state)};
  } else {
    return {};
  }
}

/// Numbers as in earnest; token ids and classes are zeros.
template <class Input>
void draw(Input& input, attune::Rng& rng) {
  if constexpr (requires { input.values; }) {
    for (auto& value : input.values) {
      using Value = std::remove_reference_t<decltype(value)>;
      if constexpr (std::is_floating_point_v<Value>) value = rng.template uniform<Value>(-1, 1);
    }
  }
}

}  // namespace attune_torch
