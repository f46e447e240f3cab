#include <attune/training/crew_inference.hpp>

#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using namespace attune;

using Model = Sequential<Embedding<EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 4}>,
                         Linear<LinearShape{3, 4, 2}>>;
CrewInference<OneCore, Model> inference;
Model::Parameters parameters;
Model::InferenceScratch scratch;
Tensor<float, 6, 2> outputs;
Model::Output y, expected;

}  // namespace

TEST(CrewInference, one_core_has_the_bits_of_infer) {
  OneCore core;
  Rng rng(1);
  check::fill_set(parameters, rng);
  std::array<int, 6> ids{0, 1, 2, 4, 4, 3};
  EXPECT_EQ(inference.infer_batch<2>(core, parameters, ids, outputs), Status::kOk);
  for (int i = 0; i < 2; ++i) {
    const Ids<3> one(ids.data() + 3 * i);
    EXPECT_EQ(infer<Model>(parameters, one, expected, scratch), Status::kOk);
    EXPECT_EQ(inference.infer(core, parameters, one, y), Status::kOk);
    EXPECT_TRUE(check::same_bits(y, expected));
    EXPECT_EQ(std::memcmp(&outputs.values[i * 6], &expected, sizeof expected), 0);
  }
  ids[4] = 5;
  EXPECT_EQ(inference.infer_batch<2>(core, parameters, ids, outputs), Status::kInvalidToken);
}
