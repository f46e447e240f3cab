// expect: attune::PyTorchModule: it is unknown which matrices of this layer PyTorch stores transposed; give
// known; give it ParametersOf<Matrix, Vector>, or specialize
#include <attune/attune.hpp>

struct Mixing {
  using Scalar = float;
  struct Parameters {
    attune::Tensor<float, 4, 4> weight;
    static constexpr void visit(const auto& visitor, const attune::TensorPath* parent, auto&&... sets) {
      visitor(attune::TensorPath{"weight", parent}, sets.weight...);
    }
  };
};
static_assert(attune::SafetensorsLayout<attune::PyTorchModule<Mixing>>::kTensors == 1);
