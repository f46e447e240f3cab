// Models that run token by token: of fewer bits, adapted, trained on windows before, saved in
// the middle of a stream.
#include <algorithm>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/nor_flash.hpp"
#include "own_layer.hpp"
#include "stream_cases.hpp"

namespace {

using attune::CacheShape;
using attune::Status;

constexpr int kLength = 40, kVocabulary = 13, kWidth = 8;

std::array<int, kLength> ids_of(unsigned seed) {
  std::array<int, kLength> ids;
  attune::Rng rng(seed);
  for (int& id : ids) id = static_cast<int>(rng.next() % kVocabulary);
  return ids;
}

// Llama's block: grouped heads, rotated; SwiGLU; RmsNorm before each.
constexpr attune::NormShape kNorm{.rows = kLength, .d_model = kWidth};
using Block = attune::EncoderLayerOf<
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = kLength,
                                                      .d_model = kWidth,
                                                      .num_heads = 4,
                                                      .num_kv_heads = 2,
                                                      .bias = false,
                                                      .rotary_dim = 2}>,
    attune::SwiGlu<attune::FeedForwardShape{.rows = kLength, .d_model = kWidth, .d_ff = 11, .bias = false}>,
    attune::RmsNorm<kNorm>, attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;
using Body = attune::Sequential<attune::Repeat<2, attune::Checkpointed<Block>>, attune::RmsNorm<kNorm>>;
using Llama = attune::Tied<attune::Embedding<attune::EmbeddingShape{kLength, kVocabulary, kWidth}>, Body>;

// PyTorch's layers, some with norms after.
constexpr attune::EncoderLayerShape kPlain{
    .attention = {.seq_len = kLength, .d_model = kWidth, .num_heads = 2}, .d_ff = 11};
using Encoder =
    attune::Sequential<attune::Linear<attune::LinearShape{kLength, 5, kWidth}>, attune::EncoderLayer<kPlain>,
                       attune::Residual<attune::Gelu<kLength, kWidth>>,
                       attune::Linear<attune::LinearShape{kLength, kWidth, 3}>,
                       attune::LogSoftmax<kLength, 3>>;
struct Constants {
  static inline Encoder::ParametersOf<attune::Int8Weights, attune::Tensor> narrow;
  static inline Encoder::ParametersOf<attune::PackedInt8Weights, attune::Tensor> packed;
};
Encoder::Input encoder_input() {
  Encoder::Input x;
  attune::Rng rng(2);
  check::fill(x, rng, -2, 2);
  return x;
}
void fill_constants() {
  static Encoder::Parameters parameters;
  attune::Rng rng(3);
  check::fill_set(parameters, rng);
  ASSERT_EQ(attune::quantize(parameters, Constants::narrow), Status::kOk);
  ASSERT_EQ(attune::pack(Constants::narrow, Constants::packed), Status::kOk);
}
TEST(StreamedModels, weights_of_eight_bits_have_the_bits_of_their_batch) {
  fill_constants();
  check::expect_stream_of_batch<Encoder, CacheShape{.window = 9, .sinks = 2}, 6>(Constants::narrow,
                                                                                 encoder_input());
}
TEST(StreamedModels, products_of_integers_have_the_bits_of_their_batch) {
  fill_constants();
  check::expect_stream_of_batch<Encoder, CacheShape{.window = 9, .sinks = 2}, 6>(Constants::packed,
                                                                                 encoder_input());
}
TEST(StreamedModels, factors_of_low_rank_have_the_bits_of_their_batch) {
  using Adapted = attune::Adapted<Encoder, Constants::narrow, attune::LowRank{.rank = 2}>;
  fill_constants();
  static Adapted::Parameters trained;
  attune::Rng rng(4);
  check::fill_set(trained, rng);
  check::expect_stream_of_batch<Adapted, CacheShape{.window = 9, .sinks = 2}, 6>(trained, encoder_input());
}
TEST(StreamedModels, a_frozen_front_goes_along) {
  using Model = attune::Sequential<attune::Frozen<Encoder, Constants::narrow>,
                                   attune::Linear<attune::LinearShape{kLength, 3, 2}>>;
  fill_constants();
  static Model::Parameters trained;
  attune::Rng rng(5);
  check::fill_set(trained, rng);
  check::expect_stream_of_batch<Model, CacheShape{.capacity = kLength}, 6>(trained, encoder_input());
}

// Trains on windows to tell the next id, which is always one more.
using Trainer = attune::Trainer<Llama, attune::CrossEntropy<>>;
using Cache = attune::KeyValueCache<Llama, CacheShape{.window = kLength}>;
Trainer trainer;
Cache cache;
Cache::Scratch<> scratch;

TEST(StreamedModels, models_trained_on_windows_run_on_endless_streams) {
  static attune::Tensor<float, 1, kVocabulary> logits;
  attune::Rng rng(6);
  trainer.initialize(attune::XavierUniform{}, rng);
  std::array<int, kLength> ids, next;
  for (int step = 0; step < 60; ++step) {
    for (int i = 0; i < kLength; ++i) {
      ids[static_cast<std::size_t>(i)] = (step + i) % kVocabulary;
      next[static_cast<std::size_t>(i)] = (step + i + 1) % kVocabulary;
    }
    ASSERT_EQ(
        trainer.step(ids, next, {.learning_rate = 0.02f}, attune::NoClipping{}, attune::CausalMask{}).status,
        Status::kOk);
  }
  cache = {};
  for (int t = 0; t < 5 * kLength; ++t) {
    ASSERT_EQ(Llama::step(trainer.parameters(), t % kVocabulary, logits, cache, scratch), Status::kOk);
    const auto best = std::max_element(logits.values, logits.values + kVocabulary) - logits.values;
    EXPECT_TRUE(t <= 3 || best == (t + 1) % kVocabulary);
  }
}

TEST(StreamedModels, a_stream_resumes_from_a_saved_cache_and_state) {
  static Trainer::State state;
  static Cache restored;
  static attune::Tensor<float, 1, kVocabulary> expected, y;
  attune::Rng rng(7);
  trainer.initialize(attune::XavierUniform{}, rng);
  const auto ids = ids_of(8);
  cache = {};
  for (int t = 0; t < 20; ++t) {
    ASSERT_EQ(Llama::step(trainer.parameters(), ids[static_cast<std::size_t>(t)], y, cache, scratch),
              Status::kOk);
  }
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 4, .page_size = 16384}>;
  static Flash flash;
  ASSERT_EQ((attune::FlashStore<Flash, Trainer::State, Cache>(flash).save(trainer.state(), cache)),
            Status::kOk);
  ASSERT_EQ(Llama::step(trainer.parameters(), ids[20], expected, cache, scratch), Status::kOk);

  ASSERT_EQ((attune::FlashStore<Flash, Trainer::State, Cache>(flash).load(state, restored)), Status::kOk);
  EXPECT_EQ(restored.tokens, 20u);
  ASSERT_EQ(Llama::step(state.parameters, ids[20], y, restored, scratch), Status::kOk);
  EXPECT_TRUE(check::same_bits(y, expected));
  EXPECT_TRUE(check::same_bits(restored, cache));

  // As large, but of another shape: the slots of a window of 40 are those of one of 41.
  using Other = attune::KeyValueCache<Llama, CacheShape{.window = kLength + 1}>;
  static_assert(sizeof(Other) == sizeof(Cache));
  static Other other;
  EXPECT_EQ((attune::FlashStore<Flash, Trainer::State, Other>(flash).load(state, other)),
            Status::kOtherState);
  EXPECT_EQ(other.tokens, 0u);
}

// Keeps the last token; where, two versions of it say differently.
template <std::uint32_t layout>
struct KeepsLast : OwnLayer<2, 2> {
  static void forward(const Parameters&, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch&) {
    for (int i = 0; i < Input::size; ++i) y.data[i] = x.data[i];
  }
  static void forward(const Parameters& none, attune::ConstView<Input> x, attune::View<Output> y, Tape&,
                      Scratch&) {
    InferenceScratch inference;
    forward(none, x, y, inference);
  }
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, Parameters&, Scratch&) {
    if constexpr (attune::kWanted<decltype(dx)>) {
      for (int i = 0; i < Input::size; ++i) dx.data[i] = dy.data[i];
    }
  }
  template <int tokens, CacheShape>
  struct Stream {
    struct Memory {
      static constexpr std::uint32_t kFingerprint = layout;
      float last[2];
    };
    struct Scratch {};
    static void step(std::uint64_t, const auto&, attune::ConstView<attune::Tensor<float, tokens, 2>> x,
                     attune::View<attune::Tensor<float, tokens, 2>> y, auto& memory, Scratch&) {
      for (int i = 0; i < 2 * tokens; ++i) memory.last[i % 2] = y.data[i] = x.data[i];
    }
  };
};
template <std::uint32_t layout>
using CacheLaidOut =
    attune::KeyValueCache<attune::Sequential<attune::Linear<attune::LinearShape{2, 2, 2}>,
                                             attune::Repeat<2, attune::Residual<KeepsLast<layout>>>>,
                          CacheShape{.capacity = 4}>;

TEST(KeyValueCache, of_another_layout_in_memory_is_not_restored) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 2, .page_size = 256}>;
  static Flash flash;
  static CacheLaidOut<1> saved;
  saved.tokens = 3;
  ASSERT_EQ((attune::FlashStore<Flash, CacheLaidOut<1>>(flash).save(saved)), Status::kOk);
  static CacheLaidOut<2> other;
  static_assert(sizeof other == sizeof saved);
  EXPECT_EQ((attune::FlashStore<Flash, CacheLaidOut<2>>(flash).load(other)), Status::kOtherState);
  EXPECT_EQ(other.tokens, 0u);
  static CacheLaidOut<1> restored;
  EXPECT_EQ((attune::FlashStore<Flash, CacheLaidOut<1>>(flash).load(restored)), Status::kOk);
  EXPECT_EQ(restored.tokens, 3u);

  // Keys in a ring and in a row, as many blocks of them.
  using Attention = attune::MultiHeadAttention<attune::AttentionShape{2, 4, 1}>;
  using Ring = Attention::Stream<1, CacheShape{.window = 17}>::Memory;
  using Linear = Attention::Stream<1, CacheShape{.capacity = 32}>::Memory;
  static_assert(sizeof(Ring) == sizeof(Linear));
  EXPECT_NE(attune::kFingerprintOf<Ring>, attune::kFingerprintOf<Linear>);
}

}  // namespace
