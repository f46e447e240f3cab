// Tests whether this build, on this processor, computes the same bits as every other target.
//
//   static attune::SelfTest self_test;   // .bss
//   if (self_test.run() != attune::Status::kOk) …
//
// Int8SelfTest does the same for products in integers.
//
// Compiler options that reorder, contract or approximate arithmetic silently change the results of training.
// So do processor modes with another rounding, or with subnormal numbers flushed to zero. The test detects
// them with a few training steps, single operations and a NaN. Compile it with the options of the
// firmware. It takes sizeof(SelfTest) of RAM, and the time of four training steps of a tiny layer.
#pragma once

#include <attune/attention/multi_head_attention.hpp>
#include <attune/training/int8_training.hpp>
#include <attune/training/trainer.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// The hash of the parameters after the test's steps.
struct SelfTestHash {
  std::uint32_t fused, unfused;
};

// A template, so that only programs that run the test compile it.
template <class Layer, class Plan, SelfTestHash hash>
class SelfTestOf {
 public:
  /// Returns kOk or kWrongArithmetic.
  Status run() {
    return keeps_subnormals() && keeps_operations() && sees_nan() && trains_to_the_same_bits()
               ? Status::kOk
               : Status::kWrongArithmetic;
  }

 private:
  static constexpr std::uint32_t kHash = ATTUNE_FUSED ? hash.fused : hash.unfused;

  // The policy's name (kernels/policy.hpp) includes vector units that flush subnormals.
  bool keeps_subnormals() {
    if (kFlushesSubnormals) return true;
    for (float& value : x_.values) value = std::bit_cast<float>(std::uint32_t{2});
    kernels::scale<Layer::Input::size>(x_.data(), 0.5f);
    bool kept = true;
    for (const float value : x_.values) kept &= std::bit_cast<std::uint32_t>(value) == 1;
    return kept;
  }

  // Single operations on powers of two, which the compiler does not know. Clang has no macros for
  // -freciprocal-math and -fno-signed-zeros.
  bool keeps_operations() {
    Rng rng{1};
    for (float& value : x_.values) value = static_cast<float>(1 << (rng.next() % 8));
    bool kept = true;
    for (const float power : x_.values) {
      kept &= 41 * power / 41 == power;                                // 41 · (1/41) is not 1
      kept &= std::bit_cast<std::uint32_t>(0.0f - 0.0f * power) == 0;  // not −(0)
      kept &= power + 0x1.8p-24f * power == power * (1 + 0x1p-23f);    // rounded to nearest
    }
    return kept;
  }

  bool sees_nan() {
    draw(Rng{1});
    target_(1, 2) = std::bit_cast<float>(std::uint32_t{0x7FC00000u});
    trainer_.initialize(XavierUniform{}, Rng{2});
    const std::uint32_t before = hash_bits(trainer_.parameters());
    return trainer_.step(x_, target_, {}).status == Status::kNotFinite &&
           hash_bits(trainer_.parameters()) == before;
  }

  bool trains_to_the_same_bits() {
    trainer_.initialize(XavierUniform{}, Rng{2});
    for (std::uint64_t step = 0; step < 3; ++step) {
      draw(Rng{step});
      if (!trainer_.step(x_, target_, {.learning_rate = 0.01f}, GradientClipping{0.1f}, CausalMask{}).ok())
        return false;
    }
    return hash_bits(trainer_.parameters()) == kHash;
  }

  void draw(Rng rng) {
    for (float& value : x_.values) value = rng.uniform(-2.0f, 2.0f);
    for (float& value : target_.values) value = rng.uniform(-2.0f, 2.0f);
  }

  Trainer<Layer, MeanSquaredError, AdamW, 1, Plan> trainer_;
  typename Layer::Input x_;
  typename Layer::Output target_;
};

}  // namespace detail

/// Tests whether this build, on this processor, computes the same bits as every other target. Its RAM is the
/// training of a tiny layer. run() takes four steps and returns kOk or kWrongArithmetic.
using SelfTest =
    detail::SelfTestOf<MultiHeadAttention<AttentionShape{.seq_len = 6, .d_model = 4, .num_heads = 2}>,
                       BySequence, detail::SelfTestHash{.fused = 0x7073D479u, .unfused = 0xB78660D1u}>;
/// The same for products in integers, forward and backward, with weights and between activations
/// (int8_training.hpp). Tokens and features of a head are 16, so that all sums of attention are in integers.
using Int8SelfTest = detail::SelfTestOf<
    MultiHeadAttention<AttentionShape{.seq_len = 16, .d_model = 4, .num_heads = 1, .d_k = 16}>, Int8Training,
    detail::SelfTestHash{.fused = 0x8690A29Eu, .unfused = 0x29F40FABu}>;

}  // namespace ATTUNE_NAMESPACE
