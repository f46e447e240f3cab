// A layer of [kTokens, kWidth], or one that pools these, in a model: derivatives, forms of weights, parts
// that are trained, files. `Of` has a template Own<Scalar>, the layer, and kScalars and kVectors, its numbers
// and the numbers of its vectors.
#pragma once

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/memory_file.hpp"
#include "training/plan_check.hpp"

namespace check::in_models {

constexpr int kTokens = 5, kWidth = 6, kClasses = 3;

template <class Own>
struct ModelWith {
  using Scalar = typename Own::Scalar;
  using Embed = attune::Linear<attune::LinearShape{kTokens, 4, kWidth}, Scalar>;
  using Pool = attune::Pooling<attune::PoolingShape{kTokens, kWidth}, Scalar>;
  using Head = attune::Linear<attune::LinearShape{1, kWidth, kClasses}, Scalar>;
  using type = std::conditional_t<Own::Output::rows == 1, attune::Sequential<Embed, Own, Head>,
                                  attune::Sequential<Embed, Own, Pool, Head>>;
};
template <class Own>
using ModelOf = typename ModelWith<Own>::type;
constexpr int kScalarsBeside = 4 * kWidth + kWidth + kWidth * kClasses + kClasses;

template <class Of>
using Model = ModelOf<typename Of::template Own<float>>;
template <class Of>
constexpr typename Model<Of>::Parameters kConstants = [] {
  typename Model<Of>::Parameters constants{};
  int i = 0;
  attune::for_each_tensor(
      [&i](const attune::TensorPath&, auto& tensor) {
        for (float& value : tensor.values) value = static_cast<float>(i++ * 37 % 19 - 9) / 17;
      },
      constants);
  return constants;
}();

template <class Model>
struct Sequence {
  typename Model::Input x;
  typename Model::Output target;
  Sequence() {
    attune::Rng rng(3);
    check::fill(x, rng);
    check::fill(target, rng);
  }
};
template <class Model>
const Sequence<Model>& sequence() {
  static const Sequence<Model> one;
  return one;
}
inline attune::SequenceLength<kTokens> of_length(int length) {
  attune::SequenceLength<kTokens> mask;
  (void)mask.set_length(length);
  return mask;
}

constexpr attune::AdamW::Options kOptions{.learning_rate = 0.01f};

// The loss falls.
template <class Model>
void expect_training(const auto&... mask) {
  static attune::Trainer<Model, attune::MeanSquaredError> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{5});
  const Sequence<Model>& one = sequence<Model>();
  const auto step = [&] {
    if constexpr (sizeof...(mask) > 0) {
      return trainer.step(one.x, one.target, kOptions, attune::NoClipping{}, mask...);
    } else {
      return trainer.step(one.x, one.target, kOptions);
    }
  };
  const float first = step().loss;
  float last = first;
  for (int i = 0; i < 60; ++i) last = step().loss;
  EXPECT_LT(last, 0.5f * first);
}
template <class Of, class Set>
typename Model<Of>::Output infer(const Set& set) {
  typename Model<Of>::InferenceScratch scratch;
  typename Model<Of>::Output y;
  Model<Of>::forward(set, sequence<Model<Of>>().x, y, scratch);
  return y;
}

template <class Of>
void has_the_gradients_of_finite_differences() {
  if constexpr (check::kDepth >= check::kBoard) {
    using Own = typename Of::template Own<double>;
    EXPECT_TRUE(attune::check_gradients<Own>().ok());
    EXPECT_TRUE((attune::check_gradients<ModelOf<Own>>({}, of_length(3)).ok()));
  } else {
    check::leave_case();
  }
}

template <class Of>
void trains() {
  expect_training<Model<Of>>();
  expect_training<Model<Of>>(of_length(3));
}

template <class Of>
void sits_in_flash() {
  constexpr auto elsewhere = attune::references_to<Model<Of>>(kConstants<Of>);
  EXPECT_TRUE(check::same_bits(infer<Of>(elsewhere), infer<Of>(kConstants<Of>)));
}

template <class Of, template <class, int, int> class Weights>
void expect_near() {
  static typename Model<Of>::template ParametersOf<Weights, attune::Tensor> quantized;
  EXPECT_EQ(attune::quantize(kConstants<Of>, quantized), attune::Status::kOk);
  const auto expected = infer<Of>(kConstants<Of>), y = infer<Of>(quantized);
  EXPECT_FALSE(check::same_bits(expected, y));
  for (int i = 0; i < expected.size; ++i) EXPECT_NEAR(y.values[i], expected.values[i], 0.02f);
}
template <class Of>
using Tuned = attune::BiasesAndNorms<Model<Of>, kConstants<Of>>;
template <class Of>
void has_weights_of_8_and_16_bits() {
  static_assert(attune::count_scalars(typename Model<Of>::Parameters{}) == kScalarsBeside + Of::kScalars);
  static_assert(attune::count_scalars(typename Tuned<Of>::Parameters{}) == Of::kVectors + kWidth + kClasses);
  expect_near<Of, attune::Int8Weights>();
  expect_near<Of, attune::PackedInt8Weights>();
  expect_near<Of, attune::Bfloat16Weights>();
  expect_near<Of, attune::Float16Weights>();
}

template <class Of>
using WithLora = attune::Adapted<Model<Of>, kConstants<Of>,
                                 attune::LowRank{.rank = 2, .roles = attune::Role::kProjections}>;

// Numbers of LoRA's factors beside its weights of projections: kLowRank, else none.
template <class Of>
constexpr int kFactors = [] {
  if constexpr (requires { Of::kLowRank; }) {
    return Of::kLowRank;
  } else {
    return 0;
  }
}();

template <class Of>
void takes_lora_beside_it() {
  static_assert(attune::count_scalars(typename WithLora<Of>::Parameters{}) ==
                2 * (4 + kWidth) + 2 * (kWidth + kClasses) + kFactors<Of>);
  expect_training<WithLora<Of>>(of_length(kTokens));
}

template <class Of>
void trains_biases_and_norms() {
  expect_training<Tuned<Of>>(of_length(kTokens));
}

template <class Of>
void goes_to_pytorch_and_back() {
  using Names = attune::PyTorchModule<Model<Of>, "embed", "own", "head">;
  static check::MemoryFile file;
  file = {};
  EXPECT_EQ(attune::write_safetensors<Names>(kConstants<Of>, file), attune::Status::kOk);
  static typename Model<Of>::Parameters read;
  EXPECT_EQ(attune::read_safetensors<Names>(file, read), attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(read, kConstants<Of>));
}

}  // namespace check::in_models

// TESTs of a layer, named after the functions.
#define ATTUNE_TEST_IN_MODELS(Suite, prefix, Of)                                            \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##trains, trains, Of)                                   \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##sits_in_flash, sits_in_flash, Of)                     \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##takes_lora_beside_it, takes_lora_beside_it, Of)       \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##trains_biases_and_norms, trains_biases_and_norms, Of) \
  ATTUNE_TEST_BRIEFLY_IN_MODELS(Suite, prefix, Of)
// Of a layer beside one with all of them, from which it differs in its own functions alone.
#define ATTUNE_TEST_BRIEFLY_IN_MODELS(Suite, prefix, Of)                                              \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##has_the_gradients_of_finite_differences,                        \
                       has_the_gradients_of_finite_differences, Of)                                   \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##has_weights_of_8_and_16_bits, has_weights_of_8_and_16_bits, Of) \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##goes_to_pytorch_and_back, goes_to_pytorch_and_back, Of)
#define ATTUNE_TEST_IN_MODEL(Suite, name, behavior, Of) \
  TEST(Suite, name) { check::in_models::behavior<Of>(); }
