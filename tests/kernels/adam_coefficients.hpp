// Coefficients of a step of Adam in which each one counts.
#pragma once

#include <attune/kernels/ops/update.hpp>

namespace check {

/// With decoupled decay, and neither L2 nor another scale of gradients.
inline constexpr attune::kernels::AdamCoefficients<float> kAdam{.beta1 = 0.9f,
                                                                .one_minus_beta1 = 0.1f,
                                                                .beta2 = 0.999f,
                                                                .one_minus_beta2 = 0.001f,
                                                                .step_size = 0.01f,
                                                                .second_scale = 1.5f,
                                                                .epsilon = 1e-8f,
                                                                .decay = 0.999f,
                                                                .l2 = 0,
                                                                .gradient_scale = 1};

}  // namespace check
