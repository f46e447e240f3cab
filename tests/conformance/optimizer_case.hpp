// An optimizer on given gradients: the parameters after every step, and the moments at the end.
#pragma once

#include "report.hpp"

namespace conformance {

/// Tensors of the given sizes, one after the other.
template <class Scalar, int size, int... rest>
struct Tensors {
  attune::Tensor<Scalar, 1, size> head;
  Tensors<Scalar, rest...> tail;
  ATTUNE_FIELDS(Weight(head), Inline(tail))
};
template <class Scalar, int size>
struct Tensors<Scalar, size> {
  attune::Tensor<Scalar, 1, size> head;
  ATTUNE_FIELDS(Weight(head))
};

/// previous_steps when there is no bias correction, as after very many steps.
inline constexpr int kNoBiasCorrection = -1;

template <class Optimizer>
struct OptimizerData {
  using Scalar = typename Optimizer::Scalar;
  typename Optimizer::Options options;
  int steps;
  int previous_steps = 0;         // steps that the initial moments have seen
  const char* const* names;       // of the tensors
  const Scalar* parameters;       // all tensors, one after the other
  const Scalar* gradients;        // the same for each step
  const Scalar* first = nullptr;  // initial moments; the velocity of SGD; zero if absent
  const Scalar* second = nullptr;
};

template <class Set>
void report_tensors(const Set& set, const char* prefix, const char* const* names) {
  attune::for_each_tensor(
      [prefix, &names](const attune::TensorPath&, const auto& tensor) {
        report(tensor.data(), tensor.size, prefix, *names++);
      },
      set);
}

template <class Optimizer, int... sizes>
void optimizer_case(const OptimizerData<Optimizer>& data) {
  using Set = Tensors<typename Optimizer::Scalar, sizes...>;
  static Set parameters, gradients;
  static typename Optimizer::template Moments<Set> moments;
  constexpr bool kIsAdam = requires { moments.second; };
  constexpr bool kHasVelocity = requires { moments.velocity; };

  load(parameters, data.parameters);
  moments.reset();
  if constexpr (kIsAdam) {
    if (data.first != nullptr) load(moments.first, data.first);
    if (data.second != nullptr) load(moments.second, data.second);
    for (int step = 0; step < data.previous_steps; ++step) {
      moments.beta1_correction.advance(data.options.beta1.fixed_point);
      moments.beta2_correction.advance(data.options.beta2.fixed_point);
    }
    if (data.previous_steps == kNoBiasCorrection) {
      moments.beta1_correction.complement = moments.beta2_correction.complement = ~std::uint64_t{0};
    }
  }
  if constexpr (kHasVelocity) {
    if (data.first != nullptr) load(moments.velocity, data.first);
    moments.started = data.previous_steps > 0;
  }

  for (int step = 0; step < data.steps; ++step) {
    load(gradients, data.gradients + step * (... + sizes));
    expect_ok(Optimizer::step(parameters, gradients, moments, data.options));
    report_tensors(parameters, "params.", data.names);
  }
  if constexpr (kIsAdam) {
    report_tensors(moments.first, "state.exp_avg.", data.names);
    report_tensors(moments.second, "state.exp_avg_sq.", data.names);
  }
  if constexpr (kHasVelocity) report_tensors(moments.velocity, "state.momentum_buffer.", data.names);
}

}  // namespace conformance
