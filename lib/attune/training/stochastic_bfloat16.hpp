// Weights in bf16: parameters in half the RAM, with stochastic rounding of each update.
//
//   attune::Trainer<Model, attune::CrossEntropy<>, attune::StochasticBfloat16<attune::AdamW>> trainer;
//
// Weights and tables are Bfloat16Tensors (core/bfloat16_tensor.hpp), and there is no copy in floats: forward
// and backward read the 16 bits, gradients are floats of the same shapes, and the optimizer computes in
// floats what it then rounds. Biases and normalizations stay floats: they are few, and errors in them shift a
// whole feature. Factors of low rank (models/frozen.hpp) are weights, in bf16.
//
// The random bits depend on the seed of the training, the number of the step and the index of the weight. So
// every plan and trainer gives the same bits, in slices, on any number of threads, and after a resume.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <attune/execution/layer.hpp>
#include <attune/kernels/ops/bfloat16_weights.hpp>
#include <attune/training/moment_sets.hpp>
#include <attune/training/optimizer.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Parameters of one tensor: floats, or weights in bf16 and the number of parameters in the set before them.
struct MasterPointer {
  float* floats;
  Bfloat16* halves = nullptr;
  std::uint32_t position = 0;

  MasterPointer(float* all_floats) : floats(all_floats) {}  // NOLINT: stands for either
  MasterPointer(Bfloat16* all_halves, std::uint32_t before)
      : floats(nullptr), halves(all_halves), position(before) {}

  friend MasterPointer operator+(MasterPointer pointer, int count) {
    if (pointer.halves == nullptr) return pointer.floats + count;
    return {pointer.halves + count, pointer.position + static_cast<std::uint32_t>(count)};
  }
};

/// A tensor of parameters, in place of a Bfloat16Tensor.
template <int kRows, int kCols>
struct MasterTensor {
  static constexpr int rows = kRows, cols = kCols, size = kRows * kCols;
  MasterPointer pointer;
  [[nodiscard]] MasterPointer data() const { return pointer; }
};

template <class Leaf>
Leaf& with_position(Leaf& leaf, std::uint32_t) {
  return leaf;
}
template <class Scalar, int rows, int cols>
MasterTensor<rows, cols> with_position(Bfloat16Tensor<Scalar, rows, cols>& tensor, std::uint32_t position) {
  return {{tensor.data(), position}};
}

}  // namespace detail

/// The optimizer `Base`, of any kind, with weights in bf16. Its options are Base's.
template <class Base>
struct StochasticBfloat16 : OptimizerStep<StochasticBfloat16<Base>> {
  using Scalar = typename Base::Scalar;
  using Options = typename Base::Options;
  /// The name of 1.0, whose states are read.
  static constexpr std::uint32_t kFingerprint = fingerprint("Bfloat16MasterWeights", kFingerprintOf<Base>);
  static_assert(detail::Holds<std::is_same_v<Scalar, float>>,
                "attune::StochasticBfloat16: bf16 weights need a model in float");
  static_assert(detail::Holds<!detail::HasMasters<Base>>,
                "attune::StochasticBfloat16: the optimizer already has bf16 weights; leave out one");
  static_assert(detail::Holds<(detail::kUpdateBlockIn<Base> == 0 ||
                               kernels::kBfloat16Block % detail::kUpdateBlockIn<Base> == 0)>,
                "attune::StochasticBfloat16: the optimizer's kUpdateBlock must divide 64, or be 0");

  /// The model's parameters: weights in bf16, biases and norms in floats.
  template <class Model>
  using Masters = detail::SetOf<Model, Bfloat16Tensor, Tensor>;

  /// Base's moments, and the state of the rounding. All zero at the start.
  template <class Parameters>
  struct Moments : Base::template Moments<Parameters> {
    using OfBase = typename Base::template Moments<Parameters>;  // Base's part
    detail::RoundingKeys weights;                                // of the rounding of weights

    void reset() {
      std::memset(static_cast<void*>(this), 0, sizeof *this);  // padding, too
      OfBase::reset();
    }
    /// Sets the start of the random bits for rounding.
    void seed(std::uint64_t bits) {
      if constexpr (requires(OfBase & of_base) { of_base.seed(bits); }) OfBase::seed(bits);
      weights.state = detail::mix(bits);  // not the random bits of moments
    }
  };

  static constexpr Status check(const Options& options) { return Base::check(options); }

  // ---- The parts of a step, for callers that update tensor by tensor. ----

  struct Coefficients {
    typename Base::Coefficients of_base;  // Base's factors
    kernels::PositionBits rounding;       // of weights
  };
  using ParameterPointer = detail::MasterPointer;
  using MomentPointer = typename detail::MomentPointerOf<Base>::type;
  static constexpr int kMoments = Base::kMoments;
  static constexpr int kUpdateBlock = detail::kUpdateBlockIn<Base>;
  static constexpr bool kByKind = detail::UpdatesByKind<Base>;

  /// Counts a step. check() must have accepted the options.
  template <class Parameters>
  static Coefficients advance(Moments<Parameters>& moments, const Options& options, Scalar gradient_scale) {
    return {Base::advance(static_cast<typename Base::template Moments<Parameters>&>(moments), options,
                          gradient_scale),
            moments.weights.next()};
  }
  /// Updates `size` parameters of a tensor of kind `kind` from their gradients and moments.
  template <class... Pointers>
  static void update(const Coefficients& coefficients, TensorKind kind, int size, ParameterPointer p,
                     const Scalar* g, Pointers... moments) {
    if (p.halves == nullptr) {
      return Base::update(coefficients.of_base, kind, size, p.floats, g, moments...);
    }
    const kernels::Bfloat16Parameters weights{p.halves, p.position, coefficients.rounding};
    if constexpr (kUpdateBlock == 0) {
      Base::update(coefficients.of_base, kind, size, weights, g, moments...);
    } else {
      kernels::update_parameters(weights, size, [&](int first, int count, Scalar* floats) {
        Base::update(coefficients.of_base, kind, count, floats, g + first, (moments + first)...);
      });
    }
  }
  /// Calls visitor(path, tensor of each set…, tensor of each moment…).
  template <class Visitor, class Parameters, class... Sets>
  static void for_each_with_moments(const Visitor& visitor, Moments<Parameters>& moments, Sets&... sets) {
    std::uint32_t position = 0;
    Base::for_each_with_moments(
        [&]<class... Tensors>(const TensorPath& path, Tensors&... tensors) ATTUNE_INLINE_LAMBDA {
          using Shape = detail::ShapeOf<std::remove_const_t<Tensors>...>;
          [&](auto&&... of_tensor) ATTUNE_INLINE_LAMBDA {
            visitor(path, of_tensor...);
          }(detail::with_position(tensors, position)...);
          position += static_cast<std::uint32_t>(Shape::rows * Shape::cols);
        },
        static_cast<typename Base::template Moments<Parameters>&>(moments), sets...);
  }
};

}  // namespace ATTUNE_NAMESPACE
