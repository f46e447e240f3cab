#include <attune/models/last_block.hpp>

#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr EncoderLayerShape kShape{.attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 8};
using Embed = Linear<LinearShape{.rows = 3, .d_in = 2, .d_out = 4}>;
using Block = EncoderLayer<kShape>;
using Mean = Pooling<PoolingShape{.seq_len = 3, .d_model = 4}>;
using Head = Linear<LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>;
using Whole = Sequential<Embed, Repeat<3, Block>, Mean, Head>;

Whole::Parameters whole;
Whole::ParametersOf<Int8Weights, Tensor> quantized;
using Tuned = LastBlock<Whole, whole>;
static_assert(count_scalars(Tuned::Parameters{}) ==
              count_scalars(Block::Parameters{}) + count_scalars(Head::Parameters{}));

// The same by hand.
using Front = Sequential<Embed, Repeat<2, Block>>;
Front::Parameters front;
using ByHand = Sequential<Frozen<Front, front>, Block, Mean, Head>;

template <class Model>
using TrainerOf = attune::Trainer<Model, CrossEntropy<>>;

void fill() {
  Rng rng(1);
  check::fill_set(whole, rng);
  front.layer<0>() = whole.layer<0>();
  for (int i = 0; i < 2; ++i) front.layer<1>().layers[i] = whole.layer<1>().layers[i];
}
Whole::Input example(int seed) {
  Rng rng(static_cast<std::uint64_t>(seed));
  Whole::Input x;
  check::fill(x, rng);
  return x;
}
/// Tensors one after the other: both sets are types of their own.
template <class Set>
std::uint32_t bits_of(const Set& set) {
  std::uint32_t hash = 0;
  for_each_tensor([&hash](const TensorPath&, const auto& tensor) { hash = hash * 31 + hash_bits(tensor); },
                  set);
  return hash;
}

}  // namespace

TEST(LastBlock, trains_the_last_of_equal_layers_and_all_after_it) {
  fill();
  static TrainerOf<Tuned> tuned;
  static TrainerOf<ByHand> by_hand;
  tuned.initialize(XavierUniform{}, Rng{2});
  static ByHand::Parameters start;
  start.layer<1>() = whole.layer<1>().layers[2];
  start.layer<3>() = whole.layer<3>();
  by_hand.load(start);
  static Whole::InferenceScratch scratch;
  Whole::Output expected, y;
  infer<Whole>(whole, example(3), expected, scratch);
  EXPECT_EQ(tuned.predict(example(3), y), Status::kOk);
  EXPECT_TRUE(check::same_bits(y, expected));
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(bits_of(tuned.parameters()), bits_of(by_hand.parameters()));
    EXPECT_TRUE(tuned.step(example(step), step % 2, {.learning_rate = 0.01f}).ok());
    EXPECT_TRUE(by_hand.step(example(step), step % 2, {.learning_rate = 0.01f}).ok());
  }
  EXPECT_EQ(bits_of(tuned.parameters()), bits_of(by_hand.parameters()));
}

TEST(LastBlock, is_a_single_layer_recomputed_and_in_a_packed_tape_too) {
  fill();
  using Single = Sequential<Embed, Block, Mean, Head>;
  static Single::Parameters single;
  single.layer<0>() = whole.layer<0>();
  single.layer<1>() = whole.layer<1>().layers[2];
  single.layer<3>() = whole.layer<3>();
  using Last = LastBlock<Single, single>;
  static_assert(Last::kLayers == Single::kLayers);
  static_assert(count_scalars(Last::Parameters{}) == count_scalars(Tuned::Parameters{}));
  static TrainerOf<Last> tuned;
  tuned.initialize(XavierUniform{}, Rng{2});
  EXPECT_TRUE(tuned.step(example(1), 1).ok());

  using Recomputed = Sequential<Embed, Repeat<3, Checkpointed<Block>>, Mean, Head>;
  static TrainerOf<LastBlock<Recomputed, whole>> recomputed;
  static TrainerOf<Tuned> kept;
  recomputed.initialize(XavierUniform{}, Rng{2});
  kept.initialize(XavierUniform{}, Rng{2});
  for (int step = 0; step < 2; ++step) {
    EXPECT_TRUE(recomputed.step(example(step), 1).ok());
    EXPECT_TRUE(kept.step(example(step), 1).ok());
  }
  EXPECT_EQ(bits_of(recomputed.parameters()), bits_of(kept.parameters()));
  static TrainerOf<LastBlock<QuantizedTape<Whole>, whole>> packed;
  packed.initialize(XavierUniform{}, Rng{2});
  EXPECT_TRUE(packed.step(example(1), 1).ok());
}

TEST(LastBlock, starts_as_the_numbers_of_quantized_constants) {
  fill();
  EXPECT_EQ(quantize(whole, quantized), Status::kOk);
  static Whole::Parameters dequantized;
  copy_parameters(quantized, dequantized);
  static TrainerOf<LastBlock<Whole, quantized>> tuned;
  static TrainerOf<LastBlock<Whole, dequantized>> of_floats;
  tuned.initialize(XavierUniform{}, Rng{2});
  of_floats.initialize(XavierUniform{}, Rng{2});
  EXPECT_EQ(bits_of(tuned.parameters()), bits_of(of_floats.parameters()));
}
