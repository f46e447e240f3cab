// A sequence of n tokens that attends to a memory of m, by two SequenceLengths: the bits that it has with
// padding and masks, around the edges of blocks and in cross-attention alone.
#include <cstring>

#include <attune/attention/sequence_length.hpp>
#include <attune/models/decoder_layer.hpp>

#include "check.hpp"
#include "lengths.hpp"

namespace {

using check::expect_same_and_zeros_behind, check::fill_behind, check::of_length;

constexpr int kMemory = 7;

template <class Layer>
struct Pass {
  typename Layer::Parameters gradients;
  typename Layer::Input x, dx;
  typename Layer::Memory memory, d_memory;
  typename Layer::Output y, dy, inferred;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  void pass(const auto& parameters, const auto& mask, const auto& memory_mask) {
    gradients = {};
    const auto forget = [](auto& room) { std::memset(static_cast<void*>(&room), 0xFF, sizeof room); };  // NaN
    forget(tape), forget(scratch), forget(inference), forget(d_memory);
    attune::infer<Layer>(parameters, x, memory, inferred, inference, mask, memory_mask);
    attune::forward<Layer>(parameters, x, memory, y, tape, scratch, mask, memory_mask);
    attune::backward<Layer>(parameters, x, memory, tape, dy, dx, d_memory, gradients, scratch, mask,
                            memory_mask);
  }
};

}  // namespace

TEST(MemoryLength, alone_leaves_all_tokens) {
  using Layer = attune::DecoderLayer<attune::DecoderLayerShape{
      .attention = {.seq_len = 3, .d_model = 4, .num_heads = 1}, .d_ff = 4, .memory_len = 40}>;
  static Pass<Layer> padded, own;
  static Layer::Parameters parameters;
  attune::Rng rng(2);
  check::fill_set(parameters, rng);
  for (const int memory : {1, 15, 16, 17, 31, 32, 33, 40}) {
    check::fill(padded.x, rng), check::fill(padded.memory, rng), check::fill(padded.dy, rng);
    own.x = padded.x, own.memory = padded.memory, own.dy = padded.dy;
    fill_behind(own.memory, memory, check::kNan<float>);
    padded.pass(parameters, attune::CausalMask{}, of_length<attune::KeyPaddingMask<40>>(memory));
    own.pass(parameters, attune::CausalMask{}, of_length<attune::SequenceLength<40>>(memory));
    EXPECT_TRUE(check::same_bits(own.gradients, padded.gradients));
    EXPECT_TRUE(check::same_bits(own.y, padded.y) && check::same_bits(own.dx, padded.dx));
    expect_same_and_zeros_behind(own.d_memory, padded.d_memory, memory);
  }
}

TEST(MemoryLength, of_cross_attention_is_said_by_its_mask) {
  using Layer = attune::MultiHeadAttention<attune::AttentionShape{
      .seq_len = 3, .d_model = 4, .num_heads = 2, .kv_len = kMemory, .d_key = 6, .d_value = 5}>;
  static Layer::Parameters parameters, gradients[2];
  static Layer::Tape tape[2];
  Layer::Scratch scratch;
  Layer::Input query, d_query[2];
  Layer::KeyInput key[2], d_key[2];
  Layer::ValueInput value[2], d_value[2];
  Layer::Output y[2], dy;
  attune::Rng rng(4);
  check::fill_set(parameters, rng);
  for (int length = 1; length <= kMemory; ++length) {
    check::fill(query, rng), check::fill(key[0], rng), check::fill(value[0], rng), check::fill(dy, rng);
    key[1] = key[0], value[1] = value[0];
    fill_behind(key[1], length, check::kNan<float>), fill_behind(value[1], length, check::kNan<float>);
    const auto run = [&](int i, const auto& mask) {
      gradients[i] = {};
      std::memset(static_cast<void*>(&tape[i]), 0xFF, sizeof tape[i]);
      attune::forward<Layer>(parameters, query, key[i], value[i], y[i], tape[i], scratch, mask);
      attune::backward<Layer>(parameters, query, key[i], value[i], tape[i], dy, d_query[i], d_key[i],
                              d_value[i], gradients[i], scratch, mask);
    };
    run(0, of_length<attune::KeyPaddingMask<kMemory>>(length));
    run(1, of_length<attune::SequenceLength<kMemory>>(length));
    EXPECT_TRUE(check::same_bits(y[1], y[0]) && check::same_bits(d_query[1], d_query[0]));
    EXPECT_TRUE(check::same_bits(gradients[1], gradients[0]));
    expect_same_and_zeros_behind(d_key[1], d_key[0], length);
    expect_same_and_zeros_behind(d_value[1], d_value[0], length);
  }
}
