// A small encoder behind a layer of tokens, for tests of layers that add to tokens or stand in front of them.
#pragma once

#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/check_gradients.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace check {

/// Two classes of x[tokens, 2]. `Token` maps [tokens, 4] to [4, 4].
template <class Token, class Scalar = typename Token::Scalar>
using TokenModel = attune::Sequential<
    attune::Linear<attune::LinearShape{Token::Input::rows, 2, 4}, Scalar>, Token,
    attune::LearnedPositions<attune::PositionShape{4, 4}, Scalar>,
    attune::EncoderLayer<attune::EncoderLayerShape{.attention = {.seq_len = 4, .d_model = 4, .num_heads = 2},
                                                   .d_ff = 6,
                                                   .norm = attune::NormPlacement::kBefore},
                         Scalar>,
    attune::Pooling<attune::PoolingShape{4, 4, attune::PoolingKind::kFirst}, Scalar>,
    attune::Linear<attune::LinearShape{1, 4, 2}, Scalar>>;

template <class Model>
inline typename Model::Parameters constant_tokens;
/// The table is a constant if biases and norms are trained.
template <class Model>
void expect_constant_tokens_beside_a_trained_head() {
  attune::Rng rng(5);
  fill_set(constant_tokens<Model>, rng);
  using Tuned = attune::BiasesAndNorms<Model, constant_tokens<Model>>;
  static attune::Trainer<Tuned, attune::CrossEntropy<>> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{6});
  EXPECT_TRUE(trainer.step(typename Model::Input{}, 1, {.learning_rate = 1e-2f}).ok());
}

}  // namespace check
