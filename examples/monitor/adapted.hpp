// What the device trains of the classifier: the linear layers at both ends, and biases and norms of the
// encoder, whose matrices stay in flash as the PC trained them.
#pragma once

#include "base.hpp"
#include "model.hpp"

namespace monitor {

inline constexpr Base::Parameters kBase = attune::from_flat<Base::Parameters>(kBaseParameters);
inline constexpr Encoder::Parameters kEncoderInFlash = kBase.layer<2>();

using Model = Around<attune::BiasesAndNorms<Encoder, kEncoderInFlash>>;

/// As it leaves the factory.
inline constexpr Model::Parameters kFactory = [] {
  Model::Parameters parameters{};
  parameters.layer<0>() = kBase.layer<0>();
  parameters.layer<4>() = kBase.layer<4>();
  attune::for_each_tensor([](const attune::TensorPath&, auto& trained, const auto& base) { trained = base; },
                          parameters.layer<2>(), kEncoderInFlash);
  return parameters;
}();

}  // namespace monitor
