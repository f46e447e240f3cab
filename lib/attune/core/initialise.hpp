// Initial values of parameters. Every initialiser sets the weight and the bias of one Linear; `initialise`
// walks a layer.
//
// fan_in and fan_out are d_in and d_out of the Linear (its weight is [d_in, d_out]).
#pragma once

#include <attune/layers/linear.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/core/rng.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

template <class TensorType>
void fill_uniform(TensorType& tensor, typename TensorType::Scalar bound, Rng& rng) {
  for (auto& value : tensor.values) value = rng.uniform(-bound, bound);
}
template <class TensorType>
void fill_normal(TensorType& tensor, typename TensorType::Scalar mean, typename TensorType::Scalar deviation,
                 Rng& rng) {
  using Scalar = typename TensorType::Scalar;
  for (auto& value : tensor.values) value = kernels::multiply_add(rng.normal<Scalar>(), deviation, mean);
}
// √(numerator / n), correctly rounded operations only, so the same everywhere.
template <class Scalar>
Scalar root_of_ratio(int numerator, int n) {
  return kernels::square_root(static_cast<Scalar>(numerator) / static_cast<Scalar>(n));
}
// W ~ U(±√(6/fans)), fans = fan_in + fan_out of the matrix that W is a part of.
struct UniformOverFans {
  int fans;
  template <class Weight>
  void weight(Weight& w, Rng& rng) const {
    fill_uniform(w, root_of_ratio<typename Weight::Scalar>(6, fans), rng);
  }
};
template <class Parameters, class Initialiser>
inline constexpr bool kInitialisesItself = requires(Parameters& parameters, const Initialiser& initialiser,
                                                    Rng& rng) {
  parameters.initialise(initialiser, rng);
};

}  // namespace detail

/// W ~ N(mean, standard_deviation²), b = 0.
struct Normal {
  float mean = 0.0f;
  float standard_deviation = 0.02f;
  template <class Weight>
  void weight(Weight& w, Rng& rng) const {
    using Scalar = typename Weight::Scalar;
    detail::fill_normal(w, static_cast<Scalar>(mean), static_cast<Scalar>(standard_deviation), rng);
  }
};

/// W ~ U(±1/√fan_in), b = 0.
struct UniformInverseSqrt {
  template <class Weight>
  void weight(Weight& w, Rng& rng) const {
    detail::fill_uniform(w, detail::root_of_ratio<typename Weight::Scalar>(1, Weight::rows), rng);
  }
};

/// W ~ U(±√(6/(fan_in + fan_out))), b = 0 (Glorot and Bengio, 2010).
struct XavierUniform {
  template <class Weight>
  void weight(Weight& w, Rng& rng) const {
    detail::fill_uniform(w, detail::root_of_ratio<typename Weight::Scalar>(6, Weight::rows + Weight::cols),
                         rng);
  }
};

/// W ~ N(0, 2/(fan_in + fan_out)), b = 0 (Glorot and Bengio, 2010).
struct XavierNormal {
  template <class Weight>
  void weight(Weight& w, Rng& rng) const {
    using Scalar = typename Weight::Scalar;
    detail::fill_normal(w, Scalar(0), detail::root_of_ratio<Scalar>(2, Weight::rows + Weight::cols), rng);
  }
};

/// W ~ U(±√(6/fan_in)), b = 0 (He et al., 2015, for ReLU).
struct KaimingUniform {
  template <class Weight>
  void weight(Weight& w, Rng& rng) const {
    detail::fill_uniform(w, detail::root_of_ratio<typename Weight::Scalar>(6, Weight::rows), rng);
  }
};

/// W ~ N(0, 2/fan_in), b = 0 (He et al., 2015, for ReLU).
struct KaimingNormal {
  template <class Weight>
  void weight(Weight& w, Rng& rng) const {
    using Scalar = typename Weight::Scalar;
    detail::fill_normal(w, Scalar(0), detail::root_of_ratio<Scalar>(2, Weight::rows), rng);
  }
};

/// PyTorch's nn.Linear: W ~ U(±1/√fan_in), b ~ U(±1/√fan_in).
struct LinearDefault : UniformInverseSqrt {
  template <class Weight, class Bias>
  void bias(Bias& b, Rng& rng) const {
    detail::fill_uniform(b, detail::root_of_ratio<typename Weight::Scalar>(1, Weight::rows), rng);
  }
};

/// PyTorch's nn.MultiheadAttention: W_q, W_k, W_v Xavier uniform (as one [3·d_model, d_model] matrix when
/// their inputs have one width, each alone otherwise), W_o ~ U(±1/√fan_in), every bias 0.
struct MultiheadAttentionDefault {};

/// Fills the parameters of a Linear.
template <class Initialiser, class Scalar, int d_in, int d_out, bool kBias>
void initialise(LinearParameters<Scalar, d_in, d_out, kBias>& parameters, const Initialiser& initialiser,
                Rng& rng) {
  using Weight = Tensor<Scalar, d_in, d_out>;
  initialiser.weight(parameters.weight, rng);
  if constexpr (kBias) {
    if constexpr (requires { initialiser.template bias<Weight>(parameters.bias, rng); }) {
      initialiser.template bias<Weight>(parameters.bias, rng);
    } else {
      parameters.bias.set_zero();
    }
  }
}

/// Fills the parameters of attention: query, key, value, output, in this order.
template <class Initialiser, class Parameters>
  requires(requires(Parameters& p) { p.query.weight, p.key.weight, p.value.weight, p.output.weight; } &&
           !detail::kInitialisesItself<Parameters, Initialiser>)
void initialise(Parameters& parameters, const Initialiser& initialiser, Rng& rng) {
  if constexpr (std::is_same_v<Initialiser, MultiheadAttentionDefault>) {
    using Query = decltype(parameters.query.weight);
    using Key = decltype(parameters.key.weight);
    using Value = decltype(parameters.value.weight);
    constexpr bool kPacked = Query::rows == Key::rows && Query::rows == Value::rows;
    constexpr int kPackedFans = Query::rows + Query::cols + Key::cols + Value::cols;
    initialise(parameters.query, detail::UniformOverFans{kPacked ? kPackedFans : Query::rows + Query::cols},
               rng);
    initialise(parameters.key, detail::UniformOverFans{kPacked ? kPackedFans : Key::rows + Key::cols}, rng);
    initialise(parameters.value, detail::UniformOverFans{kPacked ? kPackedFans : Value::rows + Value::cols},
               rng);
    initialise(parameters.output, UniformInverseSqrt{}, rng);
  } else {
    initialise(parameters.query, initialiser, rng);
    initialise(parameters.key, initialiser, rng);
    initialise(parameters.value, initialiser, rng);
    initialise(parameters.output, initialiser, rng);
  }
}

/// Fills parameters that know how: those of several layers, which pass it on, and those that start from fixed
/// values.
template <class Initialiser, class Parameters>
  requires(detail::kInitialisesItself<Parameters, Initialiser>)
void initialise(Parameters& parameters, const Initialiser& initialiser, Rng& rng) {
  parameters.initialise(initialiser, rng);
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
