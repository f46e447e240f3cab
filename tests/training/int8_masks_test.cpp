// Training in integers behind masks. Attention skips keys that a mask hides, in blocks whose size differs by
// target, while integers are quantized together: the results may not show these blocks.
#include <attune/training/int8_training.hpp>

#include <array>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/attention/sequence_length.hpp>
#include <attune/attention/window_mask.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "training/plan_check.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 41;  // one more than blocks of 8, and part of a block of 16 and of 32
constexpr int kEdges[] = {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 41};

constexpr int kWidth = 8;
template <int heads, int d_k, bool kKeepsWeights>
using ModelOf = Sequential<MultiHeadAttention<AttentionShape{.seq_len = kTokens,
                                                             .d_model = kWidth,
                                                             .num_heads = heads,
                                                             .d_k = d_k,
                                                             .keep_weights = kKeepsWeights}>,
                           Pooling<PoolingShape{kTokens, kWidth}>, Linear<LinearShape{1, kWidth, 3}>>;
using Keeping = ModelOf<2, 4, true>;
// Sums over a block of eight queries are integers only with at least 32 features.
using Recomputing = ModelOf<1, 32, false>;

// Hides what `Mask` hides, and does not tell that the last keys are hidden: attention skips none.
template <class Mask>
struct WithoutEnd {
  Mask mask;
  template <int kv_len>
    requires(detail::SaysPadding<Mask>)
  [[nodiscard]] constexpr bool keeps_key(int key) const { return mask.template keeps_key<kv_len>(key); }
  template <int kv_len, class Scalar>
  constexpr void hide(int head, int query, Scalar* row) const {
    mask.template hide<kv_len>(head, query, row);
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int head, int query, Scalar* row) const {
    mask.template bias<kv_len>(head, query, row);
  }
};

// The parameters after two steps behind a mask.
template <class Model, class Mask>
std::uint32_t trained(const Mask& mask) {
  auto& trainer = check::fresh<0, Trainer<Model, CrossEntropy<>, AdamW, 1, Int8Training>>();
  Rng rng(5);
  for (int step = 0; step < 2; ++step) {
    static typename Model::Input x;
    check::fill(x, rng);
    const int label[1] = {step};
    EXPECT_TRUE(trainer.step(x, label, {.learning_rate = 0.1f}, NoClipping{}, mask).ok());
  }
  return hash_bits(trainer.parameters());
}

KeyPaddingMask<kTokens> padding_from(int length) {
  KeyPaddingMask<kTokens> mask;
  EXPECT_EQ(mask.set_length(length), Status::kOk);
  return mask;
}
SequenceLength<kTokens> length_of(int length) {
  SequenceLength<kTokens> mask;
  EXPECT_EQ(mask.set_length(length), Status::kOk);
  return mask;
}

// One number of the parameters behind masks around every edge of a block.
template <class Model>
std::uint32_t trained_behind_masks() {
  std::uint32_t hash = 0;
  const auto add = [&hash](std::uint32_t parameters) { hash = hash * 16777619u ^ parameters; };
  for (const int edge : kEdges) {
    add(trained<Model>(CausalMask{edge - 8}));
    add(trained<Model>(padding_from(edge)));
    if constexpr (!check::kQuickBuild) {
      add(trained<Model>(length_of(edge)));
      add(trained<Model>(CausalMask{} && padding_from(edge)));
      add(trained<Model>(SlidingWindowMask{.left = edge - 1, .right = 0}));
    }
  }
  return hash;
}

template <class Model, class Mask>
void expect_same_without_end(const Mask& mask, int edge) {
  EXPECT_EQ(trained<Model>(mask), trained<Model>(WithoutEnd<Mask>{mask})) << edge;
}

}  // namespace

TEST(Int8Masks, with_a_known_last_key_have_the_same_bits) {
  for (const int edge : kEdges) {
    expect_same_without_end<Keeping>(CausalMask{edge - 8}, edge);
    if constexpr (!check::kQuickBuild) {
      expect_same_without_end<Recomputing>(CausalMask{edge - 8}, edge);
      expect_same_without_end<Keeping>(padding_from(edge), edge);
      expect_same_without_end<Recomputing>(padding_from(edge), edge);
      expect_same_without_end<QuantizedTape<Keeping>>(CausalMask{edge - 8}, edge);
    }
  }
}

TEST(Int8Masks, of_padding_have_the_bits_of_a_length) {
  for (const int edge : kEdges) {
    EXPECT_EQ(trained<Keeping>(padding_from(edge)), trained<Keeping>(length_of(edge))) << edge;
    if constexpr (!check::kQuickBuild) {
      EXPECT_EQ(trained<Recomputing>(padding_from(edge)), trained<Recomputing>(length_of(edge))) << edge;
      EXPECT_EQ(trained<QuantizedTape<Recomputing>>(padding_from(edge)),
                trained<QuantizedTape<Recomputing>>(length_of(edge)))
          << edge;
    }
  }
}

TEST(Int8Masks, have_the_same_bits_on_all_targets) {
  if constexpr (check::kQuickBuild) {
    EXPECT_EQ(trained_behind_masks<Keeping>(), check::by_policy(0x46D0B65Cu, 0xF9CFBC24u));
    EXPECT_EQ(trained_behind_masks<Recomputing>(), check::by_policy(0x7B91263Fu, 0x585E042Fu));
  } else {
    EXPECT_EQ(trained_behind_masks<Keeping>(), check::by_policy(0x38F3CF9Cu, 0xE5566BB2u));
    EXPECT_EQ(trained_behind_masks<Recomputing>(), check::by_policy(0xC9E12481u, 0xC43E65E7u));
    EXPECT_EQ(trained_behind_masks<QuantizedTape<Keeping>>(), check::by_policy(0x42F6E354u, 0x4BCE95E6u));
    EXPECT_EQ(trained_behind_masks<QuantizedTape<Recomputing>>(), check::by_policy(0x9BDC4653u, 0x4C8CBF54u));
  }
}
