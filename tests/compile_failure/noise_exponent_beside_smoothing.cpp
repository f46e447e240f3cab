// expect: attune::CrossEntropy: noise_exponent and label_smoothing exclude each other; choose one
#include <attune/attune.hpp>

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1, .noise_exponent = 0.7}>;
constexpr bool kMean = Loss::kMeanOverBatch;
