// A layer of [kTokens, kWidth] in a model and all that models do: plans, slices, lengths, forms of weights,
// files. `Of` has a template Own<Scalar>, the layer, and kScalars and kVectors, its numbers and the numbers
// of its vectors.
#pragma once

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/memory_file.hpp"
#include "training/plan_check.hpp"

namespace check::in_models {

constexpr int kTokens = 5, kWidth = 6, kClasses = 3;

template <class Own>
using ModelOf =
    attune::Sequential<attune::Linear<attune::LinearShape{kTokens, 4, kWidth}, typename Own::Scalar>, Own,
                       attune::Pooling<attune::PoolingShape{kTokens, kWidth}, typename Own::Scalar>,
                       attune::Linear<attune::LinearShape{1, kWidth, kClasses}, typename Own::Scalar>>;
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
struct Sequences {
  static constexpr int kCount = 19;
  typename Model::Input inputs[kCount];
  typename Model::Output targets[kCount];
  Sequences() {
    attune::Rng rng(3);
    for (auto& x : inputs) check::fill(x, rng);
    for (auto& y : targets) check::fill(y, rng);
  }
};
template <class Model>
const Sequences<Model>& sequences() {
  static const Sequences<Model> all;
  return all;
}
// As long as `length` says, and what must not be read behind.
template <class Model>
typename Model::Input shortened(typename Model::Input x, int length) {
  for (int i = length * Model::Input::cols; i < Model::Input::size; ++i) {
    x.values[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return x;
}

inline attune::SequenceLength<kTokens> of_length(int length) {
  attune::SequenceLength<kTokens> mask;
  (void)mask.set_length(length);
  return mask;
}

template <class Model, class Plan = attune::BySequence, int batch = 1>
using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, batch, Plan>;
constexpr attune::AdamW::Options kOptions{.learning_rate = 0.01f};

template <class Trainer>
void start(Trainer& trainer) {
  trainer.initialize(attune::XavierUniform{}, attune::Rng{5});
}
// The loss falls.
template <class Model, class Plan = attune::BySequence>
void expect_training(const auto&... mask) {
  static Trainer<Model, Plan> trainer;
  start(trainer);
  const auto& x = sequences<Model>().inputs[0];
  const auto& target = sequences<Model>().targets[0];
  const auto step = [&] {
    if constexpr (sizeof...(mask) > 0) {
      return trainer.step(x, target, kOptions, attune::NoClipping{}, mask...);
    } else {
      return trainer.step(x, target, kOptions);
    }
  };
  const float first = step().loss;
  float last = first;
  for (int i = 0; i < 60; ++i) last = step().loss;
  EXPECT_LT(last, 0.5f * first);
}
// Steps by one plan leave the bits of BySequence: one sequence at every length, or a batch of whole ones.
template <class Model, class Plan, int batch>
void expect_bits_of_streaming() {
  static Trainer<Model, attune::BySequence, batch> expected;
  static Trainer<Model, Plan, batch> trainer;
  start(expected);
  start(trainer);
  const auto& all = sequences<Model>();
  for (int step = 0; step < (batch == 1 ? kTokens : 3); ++step) {
    if constexpr (batch == 1) {
      const auto length = of_length(1 + step);
      const auto x = shortened<Model>(all.inputs[step], 1 + step);
      EXPECT_TRUE(expected.step(x, all.targets[step], kOptions, attune::NoClipping{}, length).ok());
      EXPECT_TRUE(trainer.step(x, all.targets[step], kOptions, attune::NoClipping{}, length).ok());
    } else {
      const std::span<const typename Model::Input, batch> inputs(all.inputs, batch);
      const std::span<const typename Model::Output, batch> targets(all.targets, batch);
      EXPECT_TRUE(expected.step(inputs, targets, kOptions).ok());
      EXPECT_TRUE(trainer.step(inputs, targets, kOptions).ok());
    }
    EXPECT_TRUE(check::same_bits(expected.parameters(), trainer.parameters()));
  }
}
// Without lanes, Lockstep is BySequence.
template <class Model>
void expect_lockstep() {
  if constexpr (check::kHasLanes) {
    expect_bits_of_streaming<Model, attune::Lockstep, Sequences<Model>::kCount>();
  }
}

template <class Of, class Set>
typename Model<Of>::Output infer(const Set& set) {
  typename Model<Of>::InferenceScratch scratch;
  typename Model<Of>::Output y;
  Model<Of>::forward(set, sequences<Model<Of>>().inputs[0], y, scratch);
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
void has_weights_of_8_and_16_bits() {
  expect_near<Of, attune::Int8Weights>();
  expect_near<Of, attune::PackedInt8Weights>();
  expect_near<Of, attune::Bfloat16Weights>();
  expect_near<Of, attune::Float16Weights>();
}

template <class Of>
using Tuned = attune::BiasesAndNorms<Model<Of>, kConstants<Of>>;
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
  expect_bits_of_streaming<WithLora<Of>, attune::UpdateInBackward, 1>();
  expect_lockstep<WithLora<Of>>();
}

template <class Of>
void trains_biases_and_norms() {
  static_assert(attune::count_scalars(typename Tuned<Of>::Parameters{}) == Of::kVectors + kWidth + kClasses);
  expect_training<Tuned<Of>>(of_length(kTokens));
  expect_bits_of_streaming<Tuned<Of>, attune::UpdateInBackward, 1>();
  expect_lockstep<Tuned<Of>>();
}

template <class Of>
void updates_in_backward() {
  static_assert(attune::count_scalars(typename Model<Of>::Parameters{}) == kScalarsBeside + Of::kScalars);
  expect_training<Model<Of>, attune::UpdateInBackward>();
  expect_bits_of_streaming<Model<Of>, attune::UpdateInBackward, 1>();
}

template <class Of>
void runs_in_lockstep() {
  expect_lockstep<Model<Of>>();
}

// `Other` computes what the layer computes.
template <class Of, class Other>
void expect_bits_of() {
  using OtherModel = ModelOf<Other>;
  static Trainer<Model<Of>> expected;
  static Trainer<OtherModel> trainer;
  start(expected);
  start(trainer);
  const auto& all = sequences<Model<Of>>();
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(expected.step(all.inputs[step], all.targets[step], kOptions).ok());
    EXPECT_TRUE(trainer.step(all.inputs[step], all.targets[step], kOptions).ok());
  }
  EXPECT_EQ(attune::hash_bits(expected.parameters()), attune::hash_bits(trainer.parameters()));
}
template <class Of>
void is_recomputed_in_models_of_models() {
  using Own = typename Of::template Own<float>;
  expect_bits_of<Of, attune::Checkpointed<attune::Repeat<1, Own>>>();
  using Nested = ModelOf<attune::Residual<attune::Repeat<2, attune::Checkpointed<Own>>>>;
  expect_training<Nested>(of_length(kTokens));
  expect_bits_of_streaming<Nested, attune::UpdateInBackward, 1>();
}

// The valid tokens alone decide the bits, by length or as padding.
template <class Of>
void reads_no_padding() {
  static Trainer<Model<Of>> padded, trainer;
  static_assert(attune::detail::kTakesLength<Model<Of>>);
  const auto& all = sequences<Model<Of>>();
  for (int length = 1; length <= kTokens; ++length) {
    start(padded);
    start(trainer);
    auto clean = all.inputs[length];
    for (int i = length * 4; i < clean.size; ++i) clean.values[i] = 1;
    attune::KeyPaddingMask<kTokens> padding;
    (void)padding.set_length(length);
    const auto dirty = shortened<Model<Of>>(clean, length);
    const auto mask = of_length(length);
    EXPECT_TRUE(padded.accumulate(length % 2 == 0 ? clean : dirty, all.targets[0], padding).ok());
    EXPECT_TRUE(trainer.accumulate(dirty, all.targets[0], mask).ok());
    EXPECT_TRUE(check::same_bits(padded.gradients(), trainer.gradients()));
    EXPECT_TRUE(padded.update(kOptions).ok());
    EXPECT_TRUE(trainer.update(kOptions).ok());
    typename Model<Of>::Output expected, y;
    (void)padded.predict(clean, expected, padding);
    (void)trainer.predict(dirty, y, mask);
    EXPECT_TRUE(check::same_bits(expected, y));
  }
}

template <class Of, int work>
void expect_slices(int length) {
  static Trainer<Model<Of>> at_once, in_slices;
  start(at_once);
  start(in_slices);
  const auto& all = sequences<Model<Of>>();
  const auto mask = of_length(length);
  const auto x = shortened<Model<Of>>(all.inputs[0], length);
  EXPECT_TRUE(at_once.accumulate(x, all.targets[0], mask).ok());
  auto pass = in_slices.template accumulate_in_slices<work>(x, all.targets[0], mask);
  int count = 0;
  while (pass.advance()) ++count;
  EXPECT_GT(count, work < 20 ? 2 * length : 0);
  EXPECT_TRUE(check::same_bits(at_once.gradients(), in_slices.gradients()));
  EXPECT_TRUE(at_once.update(kOptions).ok());
  EXPECT_TRUE(in_slices.update(kOptions).ok());
  typename Model<Of>::Output expected, y;
  (void)at_once.predict(x, expected, mask);
  static typename Model<Of>::InferenceScratch scratch;
  auto prediction = attune::infer_in_slices<Model<Of>, work>(in_slices.parameters(), x, y, scratch, mask);
  while (prediction.advance()) {
  }
  EXPECT_TRUE(check::same_bits(expected, y));
}
template <class Of>
void runs_in_slices() {
  for (int length = 1; length <= kTokens; ++length) {
    expect_slices<Of, 1>(length);
    if constexpr (!check::kQuickBuild) expect_slices<Of, 8192>(length);
  }
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

// TEST of a layer, named after the function.
#define ATTUNE_TEST_IN_MODELS(Suite, prefix, Of)                                                            \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##has_the_gradients_of_finite_differences,                              \
                       has_the_gradients_of_finite_differences, Of)                                         \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##trains, trains, Of)                                                   \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##sits_in_flash, sits_in_flash, Of)                                     \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##has_weights_of_8_and_16_bits, has_weights_of_8_and_16_bits, Of)       \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##takes_lora_beside_it, takes_lora_beside_it, Of)                       \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##trains_biases_and_norms, trains_biases_and_norms, Of)                 \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##updates_in_backward, updates_in_backward, Of)                         \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##runs_in_lockstep, runs_in_lockstep, Of)                               \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##is_recomputed_in_models_of_models, is_recomputed_in_models_of_models, \
                       Of)                                                                                  \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##reads_no_padding, reads_no_padding, Of)                               \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##runs_in_slices, runs_in_slices, Of)                                   \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##goes_to_pytorch_and_back, goes_to_pytorch_and_back, Of)
// Of a layer beside one with the whole suite, from which it differs in its own functions alone: what a model
// does with any layer is left to a full build.
#if ATTUNE_TEST_QUICK
#define ATTUNE_TEST_BRIEFLY_IN_MODELS(Suite, prefix, Of)                                              \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##has_the_gradients_of_finite_differences,                        \
                       has_the_gradients_of_finite_differences, Of)                                   \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##has_weights_of_8_and_16_bits, has_weights_of_8_and_16_bits, Of) \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##updates_in_backward, updates_in_backward, Of)                   \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##runs_in_lockstep, runs_in_lockstep, Of)                         \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##reads_no_padding, reads_no_padding, Of)                         \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##runs_in_slices, runs_in_slices, Of)                             \
  ATTUNE_TEST_IN_MODEL(Suite, prefix##goes_to_pytorch_and_back, goes_to_pytorch_and_back, Of)
#else
#define ATTUNE_TEST_BRIEFLY_IN_MODELS ATTUNE_TEST_IN_MODELS
#endif
#define ATTUNE_TEST_IN_MODEL(Suite, name, behavior, Of) \
  TEST(Suite, name) { check::in_models::behavior<Of>(); }
