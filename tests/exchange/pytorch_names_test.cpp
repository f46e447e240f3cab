#include <attune/exchange/pytorch_names.hpp>

#include <attune/exchange/pytorch_file.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/linear_probe.hpp>

#include "exchange/expect_tensors.hpp"

using namespace attune;
using check::expect_tensors, check::kDecoder, check::kEncoder;

TEST(PyTorchNames, of_layers_within_a_residual_are_given_one_by_one) {
  using Square = Linear<LinearShape{5, 6, 6, false}>;
  using Model = Sequential<Residual<Sequential<Square, Relu<5, 6>, Square>>, Residual<Square>>;
  expect_tensors<PyTorchModule<Model, "up", "down", "last">>(
      "down.weight[6,6] last.weight[6,6] up.weight[6,6]");
}
TEST(PyTorchNames, of_layers_in_a_sum_are_given_one_by_one) {
  using Linears = Sum<Linear<LinearShape{2, 3, 4}>, Linear<LinearShape{2, 3, 4, false}>>;
  expect_tensors<PyTorchModule<Linears, "a", "b">>("a.*[4,3] b.weight[4,3]");
  expect_tensors<PyTorchModule<Linears>>("0.*[4,3] 1.weight[4,3]");
}
TEST(PyTorchNames, of_the_factors_of_a_product_are_given_one_by_one) {
  using Squeeze = Sequential<Pooling<PoolingShape{.seq_len = 2, .d_model = 3}>, Linear<LinearShape{1, 3, 4}>,
                             Linear<LinearShape{1, 4, 3}>>;
  using Excited = Product<Identity<2, 3>, Squeeze>;
  expect_tensors<PyTorchModule<Excited, "down", "up">>("down.*[4,3] up.*[3,4]");
  expect_tensors<PyTorchModule<Excited>>("1.1.*[4,3] 1.2.*[3,4]");
  using Gated = Product<Linear<LinearShape{2, 3, 4}>, Linear<LinearShape{2, 3, 4, false}>>;
  expect_tensors<PyTorchModule<Gated, "a", "b">>("a.*[4,3] b.weight[4,3]");
}
TEST(PyTorchNames, of_a_reversible_norm_name_its_model) {
  using Square = Linear<LinearShape{5, 3, 3, false}>;
  using Affine = ReversibleNorm<Square, ReversibleNormOptions{.affine = true}>;
  expect_tensors<PyTorchModule<ReversibleNorm<Square>, "time">>("time.weight[3,3]");
  expect_tensors<PyTorchModule<Affine, "norm", "time">>("norm.bias[3] norm.weight[3] time.weight[3,3]");
  expect_tensors<PyTorchModule<Affine>>("model.weight[3,3] norm.bias[3] norm.weight[3]");
}
TEST(PyTorchNames, of_each_group_name_its_layer) {
  using Square = Linear<LinearShape{2, 3, 3, false}>;
  expect_tensors<PyTorchModule<EachGroup<4, Sequential<Square, Residual<Square>>>, "a", "b">>(
      "a.weight[3,3] b.weight[3,3]");
  expect_tensors<PyTorchModule<EachGroup<4, Sequential<Square, Square>>>>("0.weight[3,3] 1.weight[3,3]");
}
TEST(PyTorchNames, user_modules_name_their_parts_with_parameters) {
  using Model =
      Sequential<Linear<LinearShape{5, 3, 6, false}>, LearnedPositions<PositionShape{5, 6}>,
                 Repeat<2, Residual<Linear<LinearShape{5, 6, 6, false}>>>,
                 Pooling<PoolingShape{.seq_len = 5, .d_model = 6}>, Linear<LinearShape{1, 6, 2, false}>>;
  using Names = PyTorchModule<Model, "embed", "pos", "net.layers", "head">;
  expect_tensors<Names>(
      "embed.weight[6,3] head.weight[2,6] net.layers.0.weight[6,6] net.layers.1.weight[6,6] "
      "pos[5,6]");
  expect_tensors<PyTorchPart<Names, "digits">>(
      "digits.embed.weight[6,3] digits.head.weight[2,6] digits.net.layers.0.weight[6,6] "
      "digits.net.layers.1.weight[6,6] digits.pos[5,6]");
  // Without names it is an nn.Sequential, which counts what has no parameters, too.
  expect_tensors<PyTorchModule<Model>>("0.weight[6,3] 1[5,6] 2.0.weight[6,6] 2.1.weight[6,6] 4.weight[2,6]");
}

TEST(PyTorchNames, of_a_sequential_in_a_sequential_are_given_layer_by_layer_frozen_or_not) {
  using Backbone = Sequential<Linear<LinearShape{5, 3, 6}>, LearnedPositions<PositionShape{5, 6}>>;
  static constexpr Backbone::Parameters kBackbone{};
  using Head = Linear<LinearShape{5, 6, 2}>;
  constexpr std::string_view expected = "embed.*[6,3] head.*[2,6] pos[5,6]";
  expect_tensors<PyTorchModule<Sequential<Backbone, Head>, "embed", "pos", "head">>(expected);
  expect_tensors<PyTorchModule<Sequential<Frozen<Backbone, kBackbone>, Head>, "embed", "pos", "head">>(
      expected);
  expect_tensors<
      PyTorchModule<Sequential<BiasesAndNorms<Backbone, kBackbone>, Head>, "embed", "pos", "head">>(expected);
  expect_tensors<PyTorchModule<Sequential<Frozen<Backbone, kBackbone>, Head>>>(
      "0.0.*[6,3] 0.1[5,6] 1.*[2,6]");
  // Constants within other layers have their names, too.
  using Square = Linear<LinearShape{5, 6, 6, false}>;
  static constexpr Square::Parameters kSquare{};
  using Constant = Frozen<Square, kSquare>;
  constexpr std::string_view repeated = "a.0.weight[6,6] a.1.weight[6,6] b.weight[6,6] head.*[2,6]";
  expect_tensors<PyTorchModule<Sequential<Repeat<2, Constant>, Residual<Constant>, Head>, "a", "b", "head">>(
      repeated);
  expect_tensors<PyTorchModule<Sequential<Repeat<2, Constant>, Head>>>(
      "0.0.weight[6,6] 0.1.weight[6,6] 1.*[2,6]");
}

namespace {

// What a layer of one's own and a model of one's own say of themselves.
template <int kRows, int kCols>
struct Scale {
  using Scalar = float;
  struct Parameters {
    Tensor<float, 1, kCols> slope;
    static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&&... sets) {
      visitor(TensorPath{"slope", parent}, sets.slope...);
    }
  };
};

// A matrix and a table of one row each, beside vectors.
struct OfOneFeature {
  using Scalar = float;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    Matrix<float, 1, 5> weight;
    TableOf<Matrix, float, 1, 5> table;
    Vector<float, 1, 5> bias;
    Vector<float, 2, 5> shifts;
    ATTUNE_FIELDS(Weight(weight), Weight(table), Bias(bias), Bias(shifts))
  };
  using Parameters = ParametersOf<Tensor>;
};

}  // namespace

TEST(PyTorchNames, own_layers_use_their_field_names) {
  expect_tensors<PyTorchModule<Scale<2, 5>>>("slope[5]");
}
TEST(PyTorchNames, own_layers_have_vectors_by_type_not_by_size) {
  expect_tensors<PyTorchModule<OfOneFeature>>("bias[5] shifts[2,5] table[1,5] weight[5,1]");
}

TEST(PyTorchNames, encoder_decoder_names_combine_both) {
  using Model = EncoderDecoder<Repeat<1, EncoderLayer<kEncoder>>, Repeat<1, DecoderLayer<kDecoder>>>;
  constexpr auto& kTensors = detail::kStateDict<PyTorchModule<Model, "encoder.layers", "decoder.layers">>;
  EXPECT_EQ(kTensors.kTensors, 12 + 18);
  EXPECT_GE(kTensors.find("decoder.layers.0.norm3.bias"), 0);
  EXPECT_GE(kTensors.find("encoder.layers.0.self_attn.in_proj_weight"), 0);
  EXPECT_GE((detail::kStateDict<PyTorchModule<Model>>.find("decoder.0.multihead_attn.in_proj_bias")), 0);
}

TEST(PyTorchNames, do_not_depend_on_which_parts_are_constant) {
  using Body = Linear<LinearShape{5, 3, 6}>;
  using Model = Sequential<Body, Linear<LinearShape{5, 6, 2}>>;
  static constexpr Model::Parameters kConstants{};
  using Names = PyTorchFile<PyTorchPart<PyTorchModule<Model, "body", "head">, "net">,
                            TensorShape<"net.head.bias", 1, 2>>;
  using Tuned = NamesFor<LinearProbe<Model, kConstants>, Names>;
  expect_tensors<Tuned>("net.body.*[6,3] net.head.*[2,6]");
  expect_tensors<NamesFor<BiasesAndNorms<Model, kConstants>, PyTorchModule<Model, "body", "head">>>(
      "body.*[6,3] head.*[2,6]");
}
