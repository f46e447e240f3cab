// ReducedAttention: derivatives, one token for each token, plans, names. Values: vectors of PyTorch.
#include <attune/models/reduced_attention.hpp>

#include <attune/execution/stream.hpp>
#include <attune/layers/convolution.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/identity.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/reshape.hpp>
#include <attune/layers/window_pooling.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "layer_suite.hpp"
#include "layers/every_plan.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 6, kReduced = 3, kWidth = 4;
template <class Scalar, int kv_len = kReduced, bool drops = false>
using Attention = MultiHeadAttention<AttentionShape{.seq_len = kTokens,
                                                    .d_model = kWidth,
                                                    .num_heads = 2,
                                                    .kv_len = kv_len,
                                                    .dropout = drops ? 0.5 : 0.0},
                                     Scalar>;
/// PVT's, over time.
template <class Scalar>
using Convolved = ReducedAttention<
    Sequential<
        Conv1d<Conv1dShape{.seq_len = kTokens, .d_in = kWidth, .d_out = kWidth, .kernel = 2, .stride = 2},
               Scalar>,
        LayerNorm<NormShape{kReduced, kWidth}, Scalar>>,
    Attention<Scalar>>;
/// Linformer's.
template <class Scalar>
using Projected = ReducedAttention<Sequential<Transpose<kTokens, kWidth, Scalar>,
                                              Linear<LinearShape{kWidth, kTokens, kReduced, false}, Scalar>,
                                              Transpose<kWidth, kReduced, Scalar>>,
                                   Attention<Scalar>>;
/// CvT's, over time: queries are a convolution, too.
template <class Scalar>
using Twice = ReducedAttention<
    typename Convolved<Scalar>::Reduction, Attention<Scalar>,
    Conv1d<Conv1dShape{.seq_len = kTokens, .d_in = kWidth, .d_out = kWidth, .kernel = 3, .padding = 1},
           Scalar>>;
/// Without parameters.
template <class Scalar>
using Averaged =
    ReducedAttention<AvgPool1d<Pool1dShape{.seq_len = kTokens, .d_model = kWidth, .kernel = 2}, Scalar>,
                     Attention<Scalar>>;

}  // namespace

TEST(ReducedAttention, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<Convolved<double>>(-1, 1);
  check::check_layer_gradients<Projected<double>>(-1, 1);
  check::check_layer_gradients<Averaged<double>>(-1, 1);
  check::check_layer_gradients<Twice<double>>(-1, 1);
  check::check_layer_gradients<Repeat<2, Residual<Convolved<double>>>>(-1, 1);
}

TEST(ReducedAttention, to_its_input_is_self_attention) {
  using Own = ReducedAttention<Identity<kTokens, kWidth>, Attention<float, kTokens>>;
  check::Problem<Own> a(3);
  check::Problem<Attention<float, kTokens>> b(3);
  b.parameters = a.parameters.layer<1>(), b.x = a.x, b.dy = a.dy;
  a.infer(), b.infer();
  EXPECT_TRUE(check::same_bits(a.y, b.y));
  a.forward(), b.forward();
  EXPECT_TRUE(check::same_bits(a.y, b.y));
  a.backward(), b.backward();
  EXPECT_TRUE(check::same_bits(a.gradients.layer<1>(), b.gradients));
  for (int i = 0; i < a.dx.size; ++i) EXPECT_NEAR(a.dx.values[i], b.dx.values[i], 1e-5f);
}

TEST(ReducedAttention, of_other_queries_is_attention_of_them) {
  check::Problem<Twice<float>> a(3);
  check::Problem<Twice<float>::Queries> queries(3);
  check::Problem<Twice<float>::Reduction> reduced(3);
  queries.parameters = a.parameters.layer<2>(), reduced.parameters = a.parameters.layer<0>();
  queries.x = a.x, reduced.x = a.x;
  a.infer(), queries.infer(), reduced.infer();
  Twice<float>::Output y;
  Attention<float>::InferenceScratch scratch;
  infer<Attention<float>>(a.parameters.layer<1>(), queries.y, reduced.y, reduced.y, y, scratch);
  EXPECT_TRUE(check::same_bits(a.y, y));
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, y));
}

TEST(ReducedAttention, trains_in_a_model) {
  using Model = Sequential<Linear<LinearShape{kTokens, 3, kWidth}>, Repeat<2, Residual<Convolved<float>>>,
                           Checkpointed<Residual<Projected<float>>>, Residual<Averaged<float>>,
                           QuantizedTape<Residual<Twice<float>>>, Linear<LinearShape{kTokens, kWidth, 2}>>;
  check::in_models::expect_training<Model>();
}

TEST(ReducedAttention, has_the_same_bits_in_every_plan) {
  check::expect_same_bits_in_every_plan<Convolved<float>>();
  check::expect_same_bits_in_every_plan<Twice<float>>();
}

TEST(ReducedAttention, infers_from_weights_of_8_bits) {
  using Model = Sequential<Convolved<float>, Linear<LinearShape{kTokens, kWidth, 2}>>;
  static check::Problem<Model> a(3);
  a.infer();
  static Model::ParametersOf<PackedInt8Weights, Tensor> quantized;
  ASSERT_EQ(quantize(a.parameters, quantized), Status::kOk);
  Model::Output y;
  infer<Model>(quantized, a.x, y, a.inference, NoMask{}, Int8Products{});
  EXPECT_FALSE(check::same_bits(a.y, y));
  for (int i = 0; i < y.size; ++i) EXPECT_NEAR(y.values[i], a.y.values[i], 0.05f);
}

TEST(ReducedAttention, trains_beside_constants) {
  using Layers = Sequential<Convolved<float>, Linear<LinearShape{kTokens, kWidth, 2}>>;
  static constexpr Layers::Parameters kConstants = [] {
    Layers::Parameters constants{};
    int i = 0;
    for_each_tensor(
        [&i](const TensorPath&, auto& tensor) {
          for (float& value : tensor.values) value = static_cast<float>(i++ * 37 % 19 - 9) / 17;
        },
        constants);
    return constants;
  }();
  check::in_models::expect_training<BiasesAndNorms<Layers, kConstants>>();
  check::in_models::expect_training<Adapted<Layers, kConstants, LowRank{.rank = 2}>>();
}

TEST(ReducedAttention, drops_weights_in_training_alone) {
  using Drops = ReducedAttention<AvgPool1d<Pool1dShape{.seq_len = kTokens, .d_model = kWidth, .kernel = 2}>,
                                 Attention<float, kReduced, true>>;
  static_assert(detail::DropsIn<Drops::Tape>);
  check::check_layer_gradients<
      ReducedAttention<AvgPool1d<Pool1dShape{.seq_len = kTokens, .d_model = kWidth, .kernel = 2}, double>,
                       Attention<double, kReduced, true>>>(-1, 1);
}

TEST(ReducedAttention, draws_dropout_for_each_sequence_in_front_of_a_model) {
  using Drops = Dropout<DropoutShape{.rows = kTokens, .d_model = kWidth, .probability = 0.5}>;
  const auto expect_other_masks = []<class Layer>() {
    static Trainer<Layer, MeanSquaredError, AdamW, 2> trainer;
    trainer.initialize(XavierUniform{}, Rng{5});
    Rng rng(3);
    static typename Layer::Input x;
    static typename Layer::Output target;
    check::fill(x, rng);
    check::fill(target, rng);
    const auto first = trainer.accumulate(x, target), second = trainer.accumulate(x, target);
    EXPECT_TRUE(first.ok() && second.ok());
    EXPECT_NE(second.loss, first.loss);
  };
  // Nothing before them is trained, so they have no backward.
  expect_other_masks.template operator()<ReducedAttention<Drops, Attention<float, kTokens>>>();
  expect_other_masks
      .template operator()<ReducedAttention<Averaged<float>::Reduction, Attention<float>, Drops>>();
}
