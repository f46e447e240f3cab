// Stores and journals of versions 0.1 and 1.0: newer versions read them, and continue to the same bits.
// (journal_of_version_1.hpp has a journal outside of flash.) Fingerprints of 1.0 decide which states are
// read.
#include <cstddef>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/nor_flash.hpp"
#include "persistence/journaled_training.hpp"
#include "persistence/store_of_version_0_1.hpp"
#include "persistence/store_of_version_1_0.hpp"

namespace {

using namespace attune;

using Model =
    MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 2, .window = {.right = 0}}>;
using Training = Trainer<Model, MeanSquaredError, AdamW>;
using Cache = KeyValueCache<Model, CacheShape{.capacity = 4}>;
using Flash = NorFlash<NorShape{.unit = 8, .pages = 80}>;
using Store = FlashStore<Flash, Training::State, Cache>;

struct Continued {
  std::uint32_t parameters, after_a_step, after_a_token;
};

Tensor<float, 4, 4> drawn(std::uint64_t seed) {
  Rng rng(seed);
  Tensor<float, 4, 4> x;
  check::fill(x, rng);
  return x;
}

// The state and the cache as they are, and after one step of each.
template <class AnyTrainer, class AnyCache>
Continued go_on(AnyTrainer& trainer, AnyCache& cache) {
  Continued found{hash_bits(trainer.parameters()), 0, 0};
  static typename AnyCache::template Scratch<> scratch;
  Tensor<float, 1, 4> token{{0.5f, -1, 0.25f, 2}}, y;
  EXPECT_EQ(step(trainer.parameters(), token, y, cache, scratch), Status::kOk);
  check::BitHash hash;
  for (const float value : y.values) hash.add(value);
  found.after_a_token = hash.value();
  EXPECT_TRUE(trainer.step(drawn(4), drawn(5), {.learning_rate = 1e-2f}).ok());
  found.after_a_step = hash_bits(trainer.parameters());
  return found;
}

// Flash that starts with these bytes.
template <class AnyFlash, std::size_t size>
void fill(AnyFlash& flash, const unsigned char (&image)[size]) {
  for (std::uint32_t at = 0; at < AnyFlash::kSize; at += AnyFlash::kPageSize)
    ASSERT_EQ(flash.erase(at), Status::kOk);
  for (std::uint32_t at = 0; at < size; at += AnyFlash::kProgramUnit) {
    ASSERT_EQ(flash.program(at, image + at, AnyFlash::kProgramUnit), Status::kOk);
  }
}

// What was stored: three steps of training, two tokens of a stream.
void make(Training& trainer, Cache& cache) {
  trainer.initialize(XavierUniform{}, Rng{3});
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(trainer.step(drawn(10 + i), drawn(20 + i), {.learning_rate = 1e-2f}).ok());
  }
  static Cache::Scratch<> scratch;
  Tensor<float, 1, 4> y;
  for (int i = 0; i < 2; ++i) {
    const auto x = drawn(30);
    const Tensor<float, 1, 4> token{{x(i, 0), x(i, 1), x(i, 2), x(i, 3)}};
    EXPECT_EQ(step(trainer.parameters(), token, y, cache, scratch), Status::kOk);
  }
}

}  // namespace

TEST(StoredFormats, a_store_of_version_0_1_is_read_and_continued) {
  static Flash flash;
  fill(flash, kStoreOfVersion01);
  static Training trainer;
  static Training::State state;
  static Cache cache;
  trainer.initialize(XavierUniform{}, Rng{1});
  const Status loaded = Store(flash).load(state, cache);
#if ATTUNE_FUSED
  EXPECT_EQ(loaded, Status::kOtherState);  // of another arithmetic: refused, never misread
#else
  ASSERT_EQ(loaded, Status::kOk);
  ASSERT_EQ(trainer.resume(state), Status::kOk);
  const Continued found = go_on(trainer, cache);
  EXPECT_EQ(found.parameters, kContinuedOfVersion01[0]);
  EXPECT_EQ(found.after_a_step, kContinuedOfVersion01[1]);
  EXPECT_EQ(found.after_a_token, kContinuedOfVersion01[2]);
#endif
}

TEST(StoredFormats, this_version_writes_the_same_bytes_but_for_the_number_of_a_state) {
  static Flash flash;
  static Training trainer;
  static Cache cache;
  make(trainer, cache);
  Store store(flash);
  ASSERT_EQ(store.save(trainer.state(), cache), Status::kOk);
#if !ATTUNE_FUSED
  // But for the number of the state, which says that it needs its mark, and the CRC of the head.
  constexpr auto kNumber = offsetof(detail::SlotHead, sequence), kCrc = offsetof(detail::SlotHead, crc);
  for (std::uint32_t at = 0; at < sizeof kStoreOfVersion01; ++at) {
    if ((at >= kNumber && at < kNumber + 4) || (at >= kCrc && at < kCrc + 4)) continue;
    unsigned char byte = 0;
    ASSERT_EQ(flash.read(at, &byte, 1), Status::kOk);
    ASSERT_EQ(byte, kStoreOfVersion01[at]) << at;
  }
#endif
  const Continued found = go_on(trainer, cache);
  EXPECT_NE(found.after_a_step, found.parameters);
}

TEST(StoredFormats, a_store_of_version_1_0_with_fewer_bits_is_read_and_continued) {
  using Rounded = Trainer<Model, MeanSquaredError,
                          StochasticBfloat16<Adam<AdamVariant{.moments = MomentPrecision::kInt8}>>>;
  using Ring = KeyValueCache<Model, CacheShape{.window = 4, .precision = CachePrecision::kInt8}>;
  static NorFlash<NorShape{.unit = 8, .pages = 64}> flash;
  fill(flash, kStoreOfVersion10);
  static Rounded trainer;
  static Ring cache;
  FlashStore<decltype(flash), Rounded::State, Ring> store(flash);
  const Status resumed = trainer.resume([&](Rounded::State& state) { return store.load(state, cache); });
#if ATTUNE_FUSED
  EXPECT_EQ(resumed, Status::kOtherState);
#else
  ASSERT_EQ(resumed, Status::kOk);
  ASSERT_EQ(store.save(trainer.state(), cache), Status::kOk);  // over the older one
  const Continued found = go_on(trainer, cache);
  EXPECT_EQ(found.parameters, kContinuedOfVersion10[0]);
  EXPECT_EQ(found.after_a_step, kContinuedOfVersion10[1]);
  EXPECT_EQ(found.after_a_token, kContinuedOfVersion10[2]);
#endif
}

TEST(StoredFormats, a_journal_in_flash_of_version_1_0_is_read_and_continued) {
  using JournalFlash = NorFlash<NorShape{.unit = 8, .pages = 16}>;
  static JournalFlash flash;
  fill(flash, kFlashJournalOfVersion10);
  static journaled::Trainer trainer;
  static journaled::Memory memory;
  FlashJournal<JournalFlash> log(flash);
  ASSERT_EQ(log.open(), Status::kOk);
  const auto count = [&] {
    memory.clear();
    EXPECT_EQ(log.write_to(memory), Status::kOk);
    JournalReader reader(memory.all());
    JournalEntry entry;
    int entries = 0;
    while (reader.next(entry) == Status::kOk) ++entries;
    return entries;
  };
  EXPECT_EQ(count(), 8);  // the session, its start, and three for each step
  journaled::start(trainer, 7);
  TrainingJournal journal(trainer, log);
  journal.started(7);
  ASSERT_TRUE(journaled::step(journal, 0) && journaled::step(journal, 1));
#if !ATTUNE_FUSED
  EXPECT_EQ(hash_bits(trainer.parameters()), kJournaledOfVersion10);
#endif
  EXPECT_EQ(count(), 16);
}

// ---- Fingerprints of 1.0: a state is read where model and optimizer have the same one. ----

namespace {

constexpr AttentionShape kPlain{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Attention = MultiHeadAttention<kPlain>;
using Encoder = EncoderLayer<EncoderLayerShape{.attention = kPlain, .d_ff = 16}>;
using Embed = Linear<LinearShape{.rows = 4, .d_in = 3, .d_out = 8}>;
using Pool = Pooling<PoolingShape{.seq_len = 4, .d_model = 8}>;
using Head = Linear<LinearShape{.rows = 1, .d_in = 8, .d_out = 3}>;
using Body =
    Sequential<Embed, LearnedPositions<PositionShape{.seq_len = 4, .d_model = 8}>, Repeat<2, Encoder>, Pool>;
using Classifier = Sequential<Body, Head>;
constexpr Classifier::Parameters kClassifier{};
constexpr Body::Parameters kBody{};
constexpr LowRank kAdapters{.rank = 2, .roles = Role::kAttention, .alpha = 4, .biases_and_norms = true};
constexpr EmbeddingShape kTokens{.seq_len = 4, .vocabulary = 8, .d_model = 16};
constexpr FeedForwardShape kNetwork{.rows = 4, .d_model = 16, .d_ff = 24, .bias = false};
constexpr NormShape kNorm{.rows = 4, .d_model = 16};
using Block = EncoderLayerOf<
    MultiHeadAttention<AttentionShape{
        .seq_len = 4, .d_model = 16, .num_heads = 4, .num_kv_heads = 2, .bias = false, .rotary_dim = 4}>,
    SwiGlu<kNetwork>, RmsNorm<kNorm>, BranchOptions{.norm = NormPlacement::kBefore}>;
using Llama = Tied<Embedding<kTokens>, Sequential<Repeat<2, Block>, RmsNorm<kNorm>>>;
constexpr DecoderLayerShape kDecoder{
    .attention = {.seq_len = 3, .d_model = 8, .num_heads = 2}, .d_ff = 16, .memory_len = 4};
using Both = EncoderDecoder<
    Sequential<Embedding<EmbeddingShape{.seq_len = 4, .vocabulary = 8, .d_model = 8}>, Encoder>,
    Sequential<Embedding<EmbeddingShape{.seq_len = 3, .vocabulary = 8, .d_model = 8}>,
               DecoderLayer<kDecoder>>>;
template <MomentPrecision precision>
using Moments = Adam<AdamVariant{.moments = precision}>;
constexpr AdamVariant kWithoutFirst{.moments = MomentPrecision::kInt8, .first_moment = FirstMoment::kNone};

template <class Trained, class Optimizer = AdamW>
constexpr std::uint32_t kState = TrainingState<Trained, Optimizer>::kFingerprint;

}  // namespace

TEST(StoredFormats, states_have_the_fingerprints_of_version_1_0) {
  EXPECT_EQ((kState<Attention>), 0xe3061dcfu);
  EXPECT_EQ((kState<Encoder>), 0x9cd9643au);
  EXPECT_EQ((kState<Classifier>), 0x1bb76342u);
  EXPECT_EQ((kState<Adapted<Classifier, kClassifier, LowRank{.rank = 2}>>), 0x06dcbb67u);
  EXPECT_EQ((kState<Sequential<Adapted<Body, kBody, kAdapters>, Head>>), 0xa848930du);
  EXPECT_EQ((kState<BiasesAndNorms<Classifier, kClassifier>>), 0x9860df59u);
  EXPECT_EQ((kState<LinearProbe<Classifier, kClassifier>>), 0x3fcd529eu);
  EXPECT_EQ((kState<Sequential<Frozen<Body, kBody>, Head>>), 0x97be4736u);
  EXPECT_EQ((kState<Llama>), 0x19238f70u);
  EXPECT_EQ((kState<Both>), 0x747c1eb8u);
  EXPECT_EQ((kState<QuantizedTape<Sequential<Embed, Repeat<3, Encoder>, Pool, Head>>>), 0xa8b2db45u);
  EXPECT_EQ((kState<Sequential<Embed, Repeat<2, Checkpointed<Encoder>>, Pool, Head>>), 0xdf6178c7u);
  EXPECT_EQ((kState<Classifier, Moments<MomentPrecision::kBfloat16>>), 0x0a2f6d0cu);
  EXPECT_EQ((kState<Classifier, Moments<MomentPrecision::kInt8>>), 0x6af919deu);
  EXPECT_EQ((kState<Classifier, Moments<MomentPrecision::kInt8Stochastic>>), 0x97fa0faeu);
  EXPECT_EQ((kState<Classifier, Adam<kWithoutFirst>>), 0x45042720u);
  EXPECT_EQ((kState<Classifier, Sgd<>>), 0x9b075cc4u);
  EXPECT_EQ((kState<Classifier, Sgd<Momentum::kClassic>>), 0x29971333u);
  EXPECT_EQ((kState<Classifier, Sgd<Momentum::kNesterov>>), 0x57a0e658u);
  EXPECT_EQ((kState<Classifier, Sgd<Momentum::kClassic, float, MomentPrecision::kInt8>>), 0x9d6f718eu);
  EXPECT_EQ((kState<Classifier, Adafactor<>>), 0x8d5409ddu);
  EXPECT_EQ((kState<Classifier, Adafactor<StepScale::kRelative>>), 0xe2f8ef7du);
  EXPECT_EQ((kState<Classifier, ParameterGroups<AdamW>>), 0xca879ef7u);
  EXPECT_EQ((kState<Classifier, StochasticBfloat16<AdamW>>), 0x8acc5b62u);
  EXPECT_EQ((kState<Classifier, StochasticBfloat16<Moments<MomentPrecision::kInt8>>>), 0xc4a21a57u);
}

TEST(StoredFormats, layers_have_the_fingerprints_of_version_1_0) {
  EXPECT_EQ(
      (kFingerprintOf<Conv1d<Conv1dShape{.seq_len = 8, .d_in = 4, .d_out = 4, .kernel = 3, .padding = 1}>>),
      0x9c18f6f4u);
  EXPECT_EQ((kFingerprintOf<Conv1d<Conv1dShape{
                 .seq_len = 8, .d_in = 4, .d_out = 4, .kernel = 3, .groups = 4, .causal = true}>>),
            0xafa4e5f1u);
  EXPECT_EQ((kFingerprintOf<Conv2d<Conv2dShape{
                 .height = 4, .width = 4, .d_in = 2, .d_out = 2, .kernel_height = 3, .kernel_width = 3}>>),
            0xbd198346u);
  EXPECT_EQ((kFingerprintOf<AvgPool1d<Pool1dShape{.seq_len = 4, .d_model = 8, .kernel = 2, .stride = 2}>>),
            0x3e72792cu);
  EXPECT_EQ((kFingerprintOf<AvgPool2d<Pool2dShape{.height = 4,
                                                  .width = 4,
                                                  .d_model = 8,
                                                  .kernel_height = 2,
                                                  .kernel_width = 2,
                                                  .stride_height = 2,
                                                  .stride_width = 2}>>),
            0x13f39369u);
  EXPECT_EQ((kFingerprintOf<Pooling<PoolingShape{.seq_len = 4, .d_model = 8, .kind = PoolingKind::kFirst}>>),
            0xa1e407cdu);
  EXPECT_EQ((kFingerprintOf<Pooling<PoolingShape{.seq_len = 4, .d_model = 8, .kind = PoolingKind::kMax}>>),
            0xff4566eeu);
  EXPECT_EQ((kFingerprintOf<Pool>), 0x5ca6c60fu);
  EXPECT_EQ((kFingerprintOf<ClassToken<TokenShape{.seq_len = 4, .d_model = 8}>>), 0x2787443cu);
  EXPECT_EQ((kFingerprintOf<TokenType<TokenTypeShape{.seq_len = 4, .d_model = 8}>>), 0x16e605c6u);
  EXPECT_EQ((kFingerprintOf<EmbeddingSum<Embedding<kTokens>, Embedding<kTokens>>>), 0x93d4f513u);
  EXPECT_EQ((kFingerprintOf<LayerScale<ScaleShape{.rows = 4, .d_model = 8}>>), 0x7412ce5cu);
  EXPECT_EQ((kFingerprintOf<SinusoidalPositions<PositionShape{.seq_len = 4, .d_model = 8}>>), 0x79a48135u);
  EXPECT_EQ((kFingerprintOf<LayerNorm<kNorm>>), 0x55644e8cu);
  EXPECT_EQ((kFingerprintOf<RmsNorm<kNorm>>), 0x7fd97d81u);
  EXPECT_EQ((kFingerprintOf<Softmax<4, 8>>), 0xdbbf2fcbu);
  EXPECT_EQ((kFingerprintOf<LogSoftmax<4, 8>>), 0x36d5e757u);
  EXPECT_EQ((kFingerprintOf<Relu<4, 8>>), 0x19fd011au);
  EXPECT_EQ((kFingerprintOf<Gelu<4, 8>>), 0x5f3a42d8u);
  EXPECT_EQ((kFingerprintOf<GeluTanh<4, 8>>), 0xbc9ba1f9u);
  EXPECT_EQ((kFingerprintOf<Silu<4, 8>>), 0x775e603bu);
  EXPECT_EQ((kFingerprintOf<Tanh<4, 8>>), 0x8f827d9eu);
  EXPECT_EQ((kFingerprintOf<Sigmoid<4, 8>>), 0xece3dcbfu);
  EXPECT_EQ((kFingerprintOf<QuickGelu<4, 8>>), 0xd4bfbf5cu);
  EXPECT_EQ((kFingerprintOf<SquaredRelu<4, 8>>), 0x32211e7du);
  EXPECT_EQ((kFingerprintOf<Dropout<DropoutShape{.rows = 4, .d_model = 8, .probability = 0.1}>>),
            0xb797d93du);
  EXPECT_EQ((kFingerprintOf<FeedForward<kNetwork>>), 0x7af0b1ceu);
  EXPECT_EQ((kFingerprintOf<SwiGlu<kNetwork>>), 0x8e5b4b64u);
  EXPECT_EQ((kFingerprintOf<Residual<Encoder>>), 0xde944d38u);
  EXPECT_EQ(
      (kFingerprintOf<
          MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .softcap = 3}>>),
      0xf5d89f17u);
  EXPECT_EQ(
      (kFingerprintOf<MultiHeadAttention<AttentionShape{
           .seq_len = 4, .d_model = 8, .num_heads = 2, .window = {.left = 2, .right = 0, .sinks = 1}}>>),
      0x88b3729au);
  EXPECT_EQ(
      (kFingerprintOf<
          MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .dropout = 0.1}>>),
      0xd9e9cf92u);
  EXPECT_EQ((kFingerprintOf<MultiHeadAttention<AttentionShape{
                 .seq_len = 4, .d_model = 8, .num_heads = 2, .add_bias_kv = true, .add_zero_attn = true}>>),
            0xdb1ca6b9u);
  EXPECT_EQ(
      (kFingerprintOf<
          MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .alibi = true}>>),
      0x2ff4f4beu);
}
