// expect: noise_exponent and label_smoothing are two ways to doubt a label
#include <attune/attune.hpp>

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1, .noise_exponent = 0.7}>;
constexpr bool kMean = Loss::kMeanOverBatch;
