// Initial values of parameters. An initializer fills a weight W[d_in, d_out], and optionally a bias. A set of
// parameters (parameters.hpp) initializes itself with one.
//
// fan_in and fan_out are d_in and d_out.
#pragma once

#include <attune/core/parameters.hpp>
#include <attune/core/rng.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Element, class Scalar>
[[gnu::noinline]] void fill_uniform(int size, Element* values, Scalar bound, Rng& rng) {
  for (int i = 0; i < size; ++i) values[i] = rng.uniform(-bound, bound);
}
template <class TensorType>
void fill_uniform(TensorType& tensor, typename TensorType::Scalar bound, Rng& rng) {
  fill_uniform(TensorType::size, &tensor.values[0], bound, rng);
}
template <class Element, class Scalar>
[[gnu::noinline]] void fill_normal(int size, Element* values, Scalar mean, Scalar deviation, Rng& rng) {
  for (int i = 0; i < size; ++i) {
    values[i] = kernels::multiply_add(rng.normal<Scalar>(), deviation, mean);
  }
}
template <class TensorType>
void fill_normal(TensorType& tensor, typename TensorType::Scalar mean, typename TensorType::Scalar deviation,
                 Rng& rng) {
  fill_normal(TensorType::size, &tensor.values[0], mean, deviation, rng);
}
// √(numerator / n), with correctly rounded operations only, so equal on every target.
template <class Scalar>
[[gnu::noinline]] Scalar root_of_ratio(int numerator, int n) {
  return kernels::square_root(static_cast<Scalar>(numerator) / static_cast<Scalar>(n));
}
// Draws from U(±√(numerator / n)).
template <class TensorType>
void fill_uniform_over(TensorType& tensor, int numerator, int n, Rng& rng) {
  fill_uniform(tensor, root_of_ratio<typename TensorType::Scalar>(numerator, n), rng);
}
// Draws from N(0, numerator / n).
template <class TensorType, class Scalar = typename TensorType::Scalar>
void fill_normal_over(TensorType& tensor, int numerator, int n, Rng& rng) {
  fill_normal(tensor, Scalar(0), root_of_ratio<Scalar>(numerator, n), rng);
}
// W ~ U(±√(6/fans)), with fans = fan_in + fan_out of the whole matrix that contains W.
struct UniformOverFans {
  int fans;
  void weight(auto& w, Rng& rng) const { fill_uniform_over(w, 6, fans, rng); }
};
}  // namespace detail

/// W ~ N(mean, standard_deviation²), b = 0.
struct Normal {
  float mean = 0.0f;                 // of the weights
  float standard_deviation = 0.02f;  // of the weights
  void weight(auto& w, Rng& rng) const { detail::fill_normal(w, mean, standard_deviation, rng); }
};

/// W ~ U(±1/√fan_in), b = 0.
struct UniformInverseSqrt {
  void weight(auto& w, Rng& rng) const { detail::fill_uniform_over(w, 1, w.rows, rng); }
};

/// W ~ U(±√(6/(fan_in + fan_out))), b = 0 (Glorot and Bengio, 2010).
struct XavierUniform {
  void weight(auto& w, Rng& rng) const { detail::fill_uniform_over(w, 6, w.rows + w.cols, rng); }
};

/// W ~ N(0, 2/(fan_in + fan_out)), b = 0 (Glorot and Bengio, 2010).
struct XavierNormal {
  void weight(auto& w, Rng& rng) const { detail::fill_normal_over(w, 2, w.rows + w.cols, rng); }
};

/// W ~ U(±√(6/fan_in)), b = 0 (He et al., 2015, for ReLU).
struct KaimingUniform {
  void weight(auto& w, Rng& rng) const { detail::fill_uniform_over(w, 6, w.rows, rng); }
};

/// W ~ N(0, 2/fan_in), b = 0 (He et al., 2015, for ReLU).
struct KaimingNormal {
  void weight(auto& w, Rng& rng) const { detail::fill_normal_over(w, 2, w.rows, rng); }
};

/// PyTorch's nn.Linear: W ~ U(±1/√fan_in), b ~ U(±1/√fan_in).
struct LinearDefault : UniformInverseSqrt {
  template <class Weight, class Bias>
  void bias(Bias& b, Rng& rng) const {
    detail::fill_uniform_over(b, 1, Weight::rows, rng);
  }
};

/// PyTorch's nn.MultiheadAttention. W_q, W_k and W_v: Xavier uniform, as one [3·d_model, d_model] matrix if
/// their inputs have one width, else each alone. W_o ~ U(±1/√fan_in); every bias is 0. Other linear layers
/// get LinearDefault, as in PyTorch's transformer layers.
struct MultiheadAttentionDefault : LinearDefault {};

namespace detail {

template <class TensorType>
constexpr void fill(TensorType& tensor, typename TensorType::Scalar number) {
  for (auto& value : tensor.values) value = number;
}

template <class Set, class Bias, class Initializer>
void initialize_bias([[maybe_unused]] const Set& set, Bias& bias, const Initializer& initializer, Rng& rng) {
  if constexpr (requires { initializer.template bias<decltype(Set::weight)>(bias, rng); }) {
    initializer.template bias<decltype(Set::weight)>(bias, rng);
  } else {
    bias.set_zero();
  }
}

}  // namespace detail

/// Fills parameters by the set's initialize(initializer, rng). Without it, weights are drawn, biases are 0,
/// and factors of normalizations are 1.
template <class Initializer, class Parameters>
void initialize(Parameters& parameters, const Initializer& initializer, Rng& rng) {
  if constexpr (requires { parameters.initialize(initializer, rng); }) {
    parameters.initialize(initializer, rng);
  } else {
    for_each_tensor(
        [&](const TensorPath& path, auto& tensor) {
          if (path.kind == TensorKind::kWeight) return initializer.weight(tensor, rng);
          for (auto& value : tensor.values) value = path.kind == TensorKind::kNorm ? 1 : 0;
        },
        parameters);
  }
}

}  // namespace ATTUNE_NAMESPACE
