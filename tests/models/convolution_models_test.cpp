// Convolutions over time in models: derivatives, forms of weights, files.
#include <attune/attune.hpp>

#include "check.hpp"
#include "layer_suite.hpp"

namespace {

using namespace check::in_models;

struct OfConvolution {
  template <class Scalar>
  using Own =
      attune::Conv1d<attune::Conv1dShape{
                         .seq_len = kTokens, .d_in = kWidth, .d_out = kWidth, .kernel = 3, .padding = 1},
                     Scalar>;
  static constexpr int kScalars = 3 * kWidth * kWidth + kWidth, kVectors = kWidth;
  static constexpr int kLowRank = 2 * (3 * kWidth + kWidth);
};
struct OfGroups {
  template <class Scalar>
  using Own = attune::Conv1d<
      attune::Conv1dShape{
          .seq_len = kTokens, .d_in = kWidth, .d_out = kWidth, .kernel = 2, .groups = 2, .causal = true},
      Scalar>;
  static constexpr int kScalars = 2 * kWidth * kWidth / 2 + kWidth, kVectors = kWidth;
};
struct OfDepthwise {
  template <class Scalar>
  using Own = attune::Conv1d<attune::Conv1dShape{.seq_len = kTokens,
                                                 .d_in = kWidth,
                                                 .d_out = kWidth,
                                                 .kernel = 3,
                                                 .padding = 1,
                                                 .groups = kWidth,
                                                 .bias = false},
                             Scalar>;
  static constexpr int kScalars = 3 * kWidth, kVectors = 0;
};

}  // namespace

ATTUNE_TEST_IN_MODELS(Convolution, of_all_features_, OfConvolution)
ATTUNE_TEST_BRIEFLY_IN_MODELS(Convolution, of_groups_, OfGroups)
ATTUNE_TEST_BRIEFLY_IN_MODELS(Convolution, of_each_feature_, OfDepthwise)
