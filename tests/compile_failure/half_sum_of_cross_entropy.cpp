// expect: attune::CrossEntropy: reduction must be kMean or kSum; for neither use forward_rows
#include <attune/training/cross_entropy.hpp>

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.reduction = attune::Reduction::kHalfSum}>;
constexpr bool kUse = Loss::kMeanOverBatch;
