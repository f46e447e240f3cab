// Which weights are which, for what is trained of them: weights/roles_test.cpp. Values:
// core/initialize_test.cpp.
#include <attune/attention/attention_parameters.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "attention_shapes.hpp"
#include "gradient_suite.hpp"

TEST(AttentionParameters, are_named_and_shaped_as_their_projections) {
  constexpr attune::AttentionShape kShape = check::changed(check::kAllSizesDiffer, [](auto& shape) {
    shape.num_kv_heads = 1;
    shape.add_bias_kv = true;
  });
  using Layer = attune::MultiHeadAttention<kShape>;
  static_assert(
      std::is_same_v<Layer::Parameters,
                     attune::detail::AttentionParameters<kShape, float>::ParametersOf<attune::Tensor>>);
  struct Expected {
    const char *parent, *name;
    int rows, cols;
  };
  constexpr Expected kExpected[] = {{"query", "weight", 4, 12},   {"query", "bias", 1, 12},
                                    {"key", "weight", 8, 6},      {"key", "bias", 1, 6},
                                    {"value", "weight", 9, 7},    {"value", "bias", 1, 7},
                                    {"output", "weight", 14, 10}, {"output", "bias", 1, 10},
                                    {nullptr, "bias_k", 1, 6},    {nullptr, "bias_v", 1, 7}};
  static Layer::Parameters parameters;
  int count = 0;
  attune::for_each_tensor(
      [&](const attune::TensorPath& path, const auto& tensor) {
        ASSERT_TRUE(count < 10);
        const Expected& expected = kExpected[count++];
        EXPECT_EQ(std::string_view(path.name), expected.name);
        EXPECT_EQ(path.parent == nullptr, expected.parent == nullptr);
        if (path.parent != nullptr && expected.parent != nullptr) {
          EXPECT_EQ(std::string_view(path.parent->name), expected.parent);
        }
        EXPECT_EQ(tensor.rows, expected.rows);
        EXPECT_EQ(tensor.cols, expected.cols);
      },
      parameters);
  EXPECT_EQ(count, 10);
}

TEST(AttentionParameters, d_k_may_be_set_to_the_quotient_that_does_not_divide) {
  constexpr attune::AttentionShape kShape{.seq_len = 2, .d_model = 5, .num_heads = 2, .d_k = 2};
  using Layer = attune::MultiHeadAttention<kShape>;
  static_assert(Layer::HeadOutputs::cols == 4 && Layer::QueryProjection::Output::cols == 4);
  EXPECT_TRUE(attune::IsLayer<Layer>);
}

TEST(AttentionParameters, the_output_may_be_without_a_bias) {
  using Layer = attune::MultiHeadAttention<
      attune::AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2, .output_bias = false}, double>;
  EXPECT_EQ(attune::count_scalars(Layer::Parameters{}), 4 * 4 * 4 + 3 * 4);
  check::check_layer_gradients<Layer>(-1, 1);
}
