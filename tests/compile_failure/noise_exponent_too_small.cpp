// expect: attune::CrossEntropy: noise_exponent must be 0 or in [0.01, 1]; 0.7 suits many wrong labels, 0 is cross-entropy
#include <attune/attune.hpp>

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.noise_exponent = 1e-3}>;
constexpr bool kMean = Loss::kMeanOverBatch;
