#include <attune/execution/checked_step.hpp>

#include <cstddef>
#include <cstring>
#include <string>

#include <attune/attune.hpp>

#include "check.hpp"

#if ATTUNE_CHECKED

namespace {

using namespace attune;

/// The messages of all checks that fail in `call`, after which it goes on; nothing if none fails.
std::string failed_checks(const auto& call) {
  static std::string messages;
  messages.clear();
  auto* const before = on_failed_check;
  on_failed_check = [](const char* what) { messages += std::string(what) + '\n'; };
  call();
  on_failed_check = before;
  return messages;
}

enum class Fault {
  kNone,
  kNaNInOutput,
  kNaNInDx,
  kNaNInGradients,
  kAfterTape,
  kBeforeTape,
  kAfterScratch,
  kAfterOutput,
  kAfterTapeInBackward,
};
Fault fault = Fault::kNone;  // of all FaultyLayer

/// y = x + bias, with a fault.
template <int kRows = 2, int kCols = 3>
struct FaultyLayer {
  using Scalar = float;
  using Input = Tensor<float, kRows, kCols>;
  using Output = Input;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Vector<float, 1, kCols> bias;
    ATTUNE_FIELDS(Bias(bias))
  };
  using Parameters = ParametersOf<Tensor>;
  struct Tape {
    float kept[4];
  };
  struct Scratch {
    float numbers[4];
  };
  struct InferenceScratch {
    float numbers[4];
  };
  template <int tokens, CacheShape>
  using Stream = FaultyLayer<tokens, kCols>;

  static void forward(const auto& p, ConstView<Input> x, View<Output> y, InferenceScratch& scratch) {
    for (float& number : scratch.numbers) number = 1;
    add(p, x, y);
    if (fault == Fault::kAfterScratch) write(&scratch.numbers[0], 4);
  }
  static void forward(const auto& p, ConstView<Input> x, View<Output> y, Tape& tape, Scratch& scratch) {
    for (int i = 0; i < 4; ++i) tape.kept[i] = scratch.numbers[i] = static_cast<float>(i);
    add(p, x, y);
    if (fault == Fault::kAfterTape) write(&tape.kept[0], 4);
    if (fault == Fault::kBeforeTape) write(&tape.kept[0], -1);
    if (fault == Fault::kAfterScratch) write(&scratch.numbers[0], 4);
  }
  static void backward(const auto&, ConstView<Input>, Tape& tape, ConstView<Output> dy, auto&& dx,
                       auto& gradients, Scratch& scratch) {
    for (int i = 0; i < 4; ++i) tape.kept[i] = scratch.numbers[i] = 0;
    if (fault == Fault::kAfterTapeInBackward) write(&tape.kept[0], 4);
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kCols; ++j) {
        gradients.bias(0, j) += dy(i, j);
        dx(i, j) = dy(i, j);
      }
    }
    if (fault == Fault::kNaNInGradients) gradients.bias(0, 2) = check::kNan<float>;
    if constexpr (kWanted<decltype(dx)>) {
      if (fault == Fault::kNaNInDx) dx(0, 1) = check::kNan<float>;
    }
  }

 private:
  static void add(const auto& p, ConstView<Input> x, View<Output> y) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kCols; ++j) y(i, j) = x(i, j) + p.bias(0, j);
    }
    if (fault == Fault::kNaNInOutput) y(1, 2) = check::kNan<float>;
    if (fault == Fault::kAfterOutput) write(y.data, kRows * kCols);
  }
  // Writes a number at a distance that the compiler does not know.
  static void write(float* from, std::ptrdiff_t distance) {
    const volatile std::ptrdiff_t unknown = distance;
    from[unknown] += 1234;
  }
};

using Layer = Linear<LinearShape{.rows = 2, .d_in = 3, .d_out = 3}>;
using Pool = Pooling<PoolingShape{.seq_len = 2, .d_model = 3}>;

/// The messages of a step of `Model`, and of a prediction, with a fault.
template <class Model>
std::string with(Fault of_layers) {
  static Trainer<Model> trainer;
  Rng rng(1);
  trainer.initialize(XavierUniform{}, rng);
  typename Model::Input x;
  typename Model::Output y;
  check::fill(x, rng);
  check::fill(y, rng);
  fault = of_layers;
  std::string messages = failed_checks([&] { (void)trainer.step(x, y, {.learning_rate = 0.1f}); });
  fault = Fault::kNone;
  return messages.substr(0, messages.find('\n'));  // the others follow from it
}

}  // namespace

using InSequence = Sequential<Layer, FaultyLayer<>, Layer, Pool>;

TEST(CheckedStep, a_layer_without_a_fault_passes) {
  EXPECT_EQ(with<InSequence>(Fault::kNone), "");
  EXPECT_EQ((with<Repeat<3, FaultyLayer<>>>(Fault::kNone)), "");
}

TEST(CheckedStep, a_layer_that_writes_nan_is_named) {
  EXPECT_EQ(with<InSequence>(Fault::kNaNInOutput),
            "attune: FaultyLayer (2x3 to 2x3) wrote NaN to y in forward, from numbers below 1e9");
  EXPECT_EQ(with<InSequence>(Fault::kNaNInDx),
            "attune: FaultyLayer (2x3 to 2x3) wrote NaN to dx in backward, from numbers below 1e9");
  EXPECT_EQ(
      with<InSequence>(Fault::kNaNInGradients),
      "attune: FaultyLayer (2x3 to 2x3) wrote NaN to its gradients in backward, from numbers below 1e9");
  EXPECT_EQ(with<Residual<FaultyLayer<>>>(Fault::kNaNInOutput),
            "attune: FaultyLayer (2x3 to 2x3) wrote NaN to y in forward, from numbers below 1e9");
  EXPECT_EQ(with<FaultyLayer<>>(Fault::kNaNInOutput),
            "attune: FaultyLayer (2x3 to 2x3) wrote NaN to y in forward, from numbers below 1e9");
}

TEST(CheckedStep, numbers_that_come_in_are_not_a_layers_fault) {
  for (const float number : {check::kNan<float>, check::kInfinity<float>, 1e30f}) {
    using Norm = LayerNorm<NormShape{2, 3}>;
    static Norm::Parameters parameters{};
    Norm::Input x{};
    x(0, 0) = number;
    Norm::Output y;
    Norm::InferenceScratch scratch;
    EXPECT_EQ(failed_checks([&] { infer<Norm>(parameters, x, y, scratch); }), "");
  }
}

TEST(CheckedStep, parameters_that_overflow_are_not_a_layers_fault) {
  static Layer::Parameters parameters{};
  parameters.weight(1, 1) = check::kInfinity<float>;
  const Layer::Input x{};
  Layer::Output y;
  Layer::InferenceScratch scratch;
  EXPECT_EQ(failed_checks([&] { infer<Layer>(parameters, x, y, scratch); }), "");
}

TEST(CheckedStep, rows_after_the_valid_tokens_may_have_any_numbers) {
  using Model = Sequential<Layer, Pool>;
  static Model::Parameters parameters{};
  Model::Input x{};
  x(1, 0) = check::kNan<float>;
  Model::Output y;
  Model::InferenceScratch scratch;
  std::memset(static_cast<void*>(&scratch), 0xFF, sizeof scratch);  // NaN
  SequenceLength<2> length;
  ASSERT_EQ(length.set_length(1), Status::kOk);
  EXPECT_EQ(failed_checks([&] { infer<Model>(parameters, x, y, scratch, length); }), "");
}

TEST(CheckedStep, a_layer_that_writes_outside_of_its_memory_is_named_with_the_value) {
  using Model = Sequential<Layer, FaultyLayer<>, FaultyLayer<>, FaultyLayer<>, Layer>;
  EXPECT_EQ(with<Model>(Fault::kAfterTape),
            "attune: layer 1, FaultyLayer (2x3 to 2x3), changed the tape of layer 2 in forward");
  EXPECT_EQ(with<Model>(Fault::kBeforeTape),
            "attune: layer 2, FaultyLayer (2x3 to 2x3), changed the tape of layer 1 in forward");
  EXPECT_EQ(with<Model>(Fault::kAfterOutput),
            "attune: layer 1, FaultyLayer (2x3 to 2x3), changed the output of layer 2 in forward");
  EXPECT_EQ(with<Model>(Fault::kAfterScratch),
            "attune: layer 1, FaultyLayer (2x3 to 2x3), changed scratch that is not its own in forward");
  EXPECT_EQ(with<Model>(Fault::kAfterTapeInBackward),
            "attune: layer 3, FaultyLayer (2x3 to 2x3), changed the output of layer 0 in backward");
}

TEST(CheckedStep, a_layer_of_a_repeat_is_named_with_its_number) {
  using Model = Repeat<3, FaultyLayer<>>;
  EXPECT_EQ(with<Model>(Fault::kAfterTape),
            "attune: layer 0, FaultyLayer (2x3 to 2x3), changed the tape of another layer in forward");
  EXPECT_EQ(with<Model>(Fault::kBeforeTape),
            "attune: layer 1, FaultyLayer (2x3 to 2x3), changed the tape of another layer in forward");
}

TEST(CheckedStep, writing_outside_is_found_in_slices) {
  using Model = Sequential<Layer, FaultyLayer<>, FaultyLayer<>, Pool>;
  static Trainer<Model> trainer;
  trainer.initialize(XavierUniform{}, Rng{1});
  Model::Input x{};
  Model::Output target{};
  fault = Fault::kAfterTape;
  const std::string messages = failed_checks([&] {
    auto pass = trainer.accumulate_in_slices(x, target);
    while (pass.advance()) {
    }
  });
  fault = Fault::kNone;
  EXPECT_EQ(messages.substr(0, messages.find('\n')),
            "attune: layer 1, FaultyLayer (2x3 to 2x3), changed the tape of layer 2 in forward");
}

#endif
