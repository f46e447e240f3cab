// Values: vectors of PyTorch. Gradients: layer_gradients_test.cpp.
#include <attune/attention/query_key_norm.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 3,
                                        .d_model = 8,
                                        .num_heads = 4,
                                        .num_kv_heads = 2,
                                        .query_key_norm = attune::QueryKeyNorm::kRootMeanSquare};

}  // namespace

TEST(QueryKeyNorm, has_parameters_with_names_that_start_at_one) {
  using Layer = attune::MultiHeadAttention<kShape>;
  Layer::Parameters parameters{};
  attune::Rng rng(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  int found = 0;
  attune::for_each_tensor(
      [&](const attune::TensorPath& path, const auto& tensor) {
        if (path.kind != attune::TensorKind::kNorm) return;
        const std::string_view module = path.parent->name;
        EXPECT_TRUE(module == "query_norm" || module == "key_norm");
        ++found;
        for (const float weight : tensor.values) EXPECT_EQ(weight, 1.0f);
      },
      parameters);
  EXPECT_EQ(found, 2);
}
