// Trains in lockstep, in a file that is compiled for one of several vector units of a program.
#include <attune/attention/multi_head_attention.hpp>
#include <attune/training/trainer.hpp>

#include "lockstep_unit.hpp"

#if defined(ATTUNE_TEST_MAIN)

#include <cstdio>

int main() {
  const std::uint32_t hashes[] = {hash_sse2(), hash_avx2(), hash_avx512()};
  for (const std::uint32_t hash : hashes) std::printf("%08x\n", hash);
  return hashes[0] == hashes[1] && hashes[0] == hashes[2] ? 0 : 1;
}

#else

// A Trainer in lockstep here and one that the next file makes lie beside each other if they have one name.
std::uint32_t ATTUNE_TEST_UNIT() {
  using Layer =
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 2}>;
  static attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 37, attune::Lockstep> trainer;
  static decltype(trainer)::BatchInput x;
  static decltype(trainer)::BatchTarget target;
  attune::Rng rng(1);
  trainer.initialise(attune::XavierUniform{}, rng);
  for (int step = 0; step < 3; ++step) {
    for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
    for (float& value : target.values) value = rng.uniform(-1.0f, 1.0f);
    if (!trainer.step(x, target, {}).ok()) return 0;
  }
  return attune::hash(trainer.parameters());
}

#endif
