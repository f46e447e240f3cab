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
/// counters and alignment. Zeros if a model has nothing to train like this.
using Figures = std::array<std::uint32_t, 7>;
constexpr Figures as_figures(const attune::MemoryReport& memory) {
  const auto figure = [](std::size_t bytes) { return static_cast<std::uint32_t>(bytes); };
  return {figure(memory.parameters), figure(memory.gradients), figure(memory.moments), figure(memory.tape),
          figure(memory.scratch),    figure(memory.inputs),    figure(memory.state)};
}
/// Whether a head in closed form can learn the loss's classes.
template <class Model, class Loss>
constexpr bool kHasHead = attune::detail::EndsWithHead<Model>&&
    std::is_same_v<typename attune::detail::TargetOf<Loss, typename Model::Output>::type, std::array<int, 1>>;

/// A model whose encoder layers recompute: all of a layer, or its attention.
template <class Model, bool all>
struct Recomputed {
  using type = Model;
};
template <class... Layers, bool all>
struct Recomputed<attune::Sequential<Layers...>, all> {
  using type = attune::Sequential<typename Recomputed<Layers, all>::type...>;
};
template <int count, class Layer, bool all>
struct Recomputed<attune::Repeat<count, Layer>, all> {
  using type = attune::Repeat<count, typename Recomputed<Layer, all>::type>;
};
template <int count, class Layer, bool all>
struct Recomputed<attune::SharedRepeat<count, Layer>, all> {
  using type = attune::SharedRepeat<count, typename Recomputed<Layer, all>::type>;
};
template <attune::EncoderLayerShape shape, class Scalar, bool all>
struct Recomputed<attune::EncoderLayer<shape, Scalar>, all> {
  static constexpr attune::EncoderLayerShape kShape = [] {
    attune::EncoderLayerShape recomputed = shape;
    recomputed.attention.keep_weights = all && recomputed.attention.keep_weights;
    return recomputed;
  }();
  using Layer = attune::EncoderLayer<kShape, Scalar>;
  using type = std::conditional_t<all, attune::Checkpointed<Layer>, Layer>;
};
template <class Model>
using AttentionRecomputed = typename Recomputed<Model, false>::type;
template <class Model>
using BlocksRecomputed = typename Recomputed<Model, true>::type;

template <class Model>
using TapeInInt8 = typename attune::detail::WithQuantizedTape<Model, attune::TapePrecision::kInt8>::type;

/// Does not compile if a model takes no such mask.
template <class Model, class Mask>
[[gnu::used]] void takes_mask(const typename Model::Parameters& parameters, const typename Model::Input& x,
                              typename Model::Output& y, typename Model::InferenceScratch& scratch,
                              const Mask& mask) {
  static_cast<void>(attune::infer<Model>(parameters, x, y, scratch, mask));
}

#if defined(__arm__)
/// Weights in flash that nobody has trained: the constant attune_fit_weights, of numbers between 1/32 and 1/8
/// and their negatives.
template <class Parameters>
[[gnu::noinline]] void define_weights() {
  static_assert(sizeof(Parameters) % 4 == 0);
  asm volatile(
      ".pushsection .rodata.attune_fit_weights, \"a\"\n"
      ".balign 16\n"
      ".globl attune_fit_weights\n"
      "attune_fit_weights:\n"
      ".set attune_fit_drawn, 1\n"
      ".rept %c0\n"
      ".set attune_fit_drawn, (attune_fit_drawn * 1664525 + 1013904223) & 0xffffffff\n"
      ".word 0x3d000000 | (attune_fit_drawn & 0x80ffffff)\n"
      ".endr\n"
      ".popsection" ::"i"(sizeof(Parameters) / 4));
}
#endif

/// The mask of a sequence that is as long as its model's, which the compiler does not know.
template <class Mask>
Mask longest() {
  Mask mask{};
  if constexpr (attune::kMasks<Mask>) {
    int length = mask.length();
    asm volatile("" : "+r"(length));
    static_cast<void>(mask.set_length(length));
  }
  return mask;
}

/// A step with one sequence, as an image counts it. No guard ends it.
template <class Trainer>
[[gnu::always_inline]] inline bool step(Trainer& trainer, const auto& input, const auto& target,
                                        const auto& mask, float rate) {
  auto options = options_with<Trainer>(rate);
  if constexpr (LearnsTakes<Trainer>) {
    if constexpr (requires { options.guard; }) {
      options.guard = {.least_clear = 0, .most_clear = 1, .largest_imbalance = 1, .least_agreement = 0};
    }
    const auto take = [&](int, const auto& learn) { return learn(input, attune::kUnlabeled, mask); };
    return trainer.learn(1, take, options).ok();
  } else if constexpr (requires { trainer.step(input, target, options); }) {
    return trainer.step(input, target, options, attune::NoClipping{}, mask).ok();
  } else {
    return trainer.accumulate(input, target, mask).ok() && trainer.update(options).ok();
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
