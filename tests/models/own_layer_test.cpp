// Two layers of one's own in models and files: one in which tokens do not meet, and one in which they do.
#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "exchange/memory_file.hpp"
#include "layer_suite.hpp"
#include "models/own_layer/depthwise_convolution.hpp"
#include "models/own_layer/prelu.hpp"

namespace {

using namespace check::in_models;

struct OfPRelu {
  template <class Scalar>
  using Own = PRelu<kTokens, kWidth, Scalar>;
  static constexpr int kScalars = kWidth, kVectors = kWidth;
};
struct OfConvolution {
  template <class Scalar>
  using Own = DepthwiseConvolution<kTokens, kWidth, 3, Scalar>;
  static constexpr int kScalars = 4 * kWidth, kVectors = kWidth;
};

}  // namespace

ATTUNE_TEST_IN_MODELS(OwnLayer, of_tokens_, OfPRelu)
ATTUNE_TEST_BRIEFLY_IN_MODELS(OwnLayer, that_mixes_tokens_, OfConvolution)

TEST(OwnLayer, has_names_and_shapes_in_pytorch) {
  check::expect_tensors<attune::PyTorchModule<PRelu<kTokens, kWidth>, "own">>("own.slope[6]");
  check::expect_tensors<attune::PyTorchModule<DepthwiseConvolution<kTokens, kWidth, 3>, "own">>(
      "own.bias[6] own.weight[6,3]");
}

TEST(OwnLayer, reads_the_filters_of_a_convolution_by_channels) {
  using Own = DepthwiseConvolution<kTokens, 2, 3>;
  static check::MemoryFile file;
  file.start<float>(R"({"own.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                    R"("own.weight":{"dtype":"F32","shape":[2,1,3],"data_offsets":[8,32]}})",
                    {0.5f, -0.5f, 1, 2, 3, 4, 5, 6});
  Own::Parameters parameters;
  EXPECT_EQ((attune::read_safetensors<attune::PyTorchModule<Own, "own">>(file, parameters)),
            attune::Status::kOk);
  EXPECT_EQ(parameters.bias(0, 1), -0.5f);
  EXPECT_EQ(parameters.weight(0, 2), 3.0f);
  EXPECT_EQ(parameters.weight(1, 0), 4.0f);
}

TEST(OwnLayer, of_tokens_streams) {
  using Streamed =
      attune::Sequential<attune::Linear<attune::LinearShape{kTokens, 4, kWidth}>, PRelu<kTokens, kWidth>>;
  static attune::KeyValueCache<Streamed, attune::CacheShape{.capacity = kTokens}> cache;
  static decltype(cache)::Scratch<> scratch;
  static Streamed::InferenceScratch inference;
  Streamed::Parameters parameters;
  attune::Rng rng(2);
  check::fill_set(parameters, rng);
  const Streamed::Input& x = sequence<Model<OfPRelu>>().x;
  Streamed::Output whole;
  Streamed::forward(parameters, x, whole, inference);
  for (int i = 0; i < kTokens; ++i) {
    attune::Tensor<float, 1, kWidth> y;
    EXPECT_EQ(Streamed::step(parameters, view(x).rows_at<1>(i), y, cache, scratch), attune::Status::kOk);
    for (int j = 0; j < kWidth; ++j) EXPECT_EQ(y(0, j), whole(i, j));
  }
}
