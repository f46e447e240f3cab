// Trains in lockstep and one sequence at a time, in a file that is compiled for one of several vector units
// of a program. With an argument the program runs the code for the least of them alone.
#include <attune/attention/multi_head_attention.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/training/trainer.hpp>

#include "lockstep_unit.hpp"

#if defined(ATTUNE_TEST_MAIN)

#include <cstdio>

int main(int argc, char**) {
  if (argc > 1) return hash_sse2() == 0;
  const std::uint32_t hashes[] = {hash_sse2(), hash_avx2(), hash_avx512()};
  for (const std::uint32_t hash : hashes) std::printf("%08x\n", hash);
  return hashes[0] == hashes[1] && hashes[0] == hashes[2] ? 0 : 1;
}

#else

namespace {

template <class AnyTrainer>
std::uint32_t hash_of_training(AnyTrainer& trainer) {
  static typename AnyTrainer::BatchInput x;
  static typename AnyTrainer::BatchTarget target;
  attune::Rng rng(1);
  trainer.initialize(attune::XavierUniform{}, rng);
  for (int step = 0; step < 3; ++step) {
    for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
    for (float& value : target.values) value = rng.uniform(-1.0f, 1.0f);
    if (!trainer.step(x, target, {}).ok()) return 0;
  }
  return attune::hash_bits(trainer.parameters());
}

}  // namespace

// A Trainer in lockstep here and one that the next file makes lie beside each other if they have one name.
std::uint32_t ATTUNE_TEST_UNIT() {
  using Attention =
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 2}>;
  static attune::Trainer<Attention, attune::MeanSquaredError, attune::AdamW, 37, attune::Lockstep>
      in_lockstep;
  using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
      .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 16}>;
  static attune::Trainer<Encoder, attune::MeanSquaredError, attune::AdamW, 5> per_sequence;
  const std::uint32_t first = hash_of_training(in_lockstep), second = hash_of_training(per_sequence);
  return first == 0 || second == 0 ? 0 : first ^ second;
}

#endif
