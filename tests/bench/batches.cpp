// Batches on the host: tiny sequences in lockstep, against going one by one and against a BLAS; and what
// stacking the sequences of a batch would bring the projections of larger shapes.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <attune/attune.hpp>

#include "timing.hpp"

#if ATTUNE_BENCH_OPENBLAS
#include "cblas_attention.hpp"
#endif

namespace {

constexpr int kBatch = 1024;
constexpr attune::AttentionShape kTiny{.seq_len = 8, .d_model = 4, .num_heads = 1};
constexpr attune::AdamW::Options kOptions{.learning_rate = 1e-3f};
constexpr attune::AdamW::Options kStill{.learning_rate =
                                            1e-12f};  // timed: all contenders stay at the same parameters

template <class Plan>
using Trainer =
    attune::Trainer<attune::MultiHeadAttention<kTiny>, attune::MeanSquaredError, attune::AdamW, kBatch, Plan>;
Trainer<attune::Lockstep> lockstep;
Trainer<attune::BySequence> streaming;
Trainer<attune::Lockstep>::BatchInput inputs;
Trainer<attune::Lockstep>::BatchTarget targets;

[[noreturn]] void disagree(const char* with) {
  std::fprintf(stderr, "batches: a step in lockstep and one %s disagree\n", with);
  std::exit(1);
}

#if ATTUNE_BENCH_OPENBLAS

bool agree(float ours, float theirs, float tolerance) { return std::fabs(ours - theirs) <= tolerance; }

// Both start from the same parameters; after a step their losses and parameters must still be the same. The
// key bias is left out: its gradient is zero in theory, so the optimizer steps along rounding errors.
void check_same_step(bench::CblasAttention& blas) {
  lockstep.load(lockstep.parameters());
  std::memcpy(blas.parameters().data(), &lockstep.parameters(), sizeof lockstep.parameters());
  bool same = agree(lockstep.step(inputs, targets, kOptions).loss,
                    blas.step(inputs.data(), targets.data(), kOptions.learning_rate), 1e-4f);
  auto ours = lockstep.parameters();
  auto theirs = ours;
  std::memcpy(&theirs, blas.parameters().data(), sizeof theirs);
  ours.key.bias = theirs.key.bias;
  attune::for_each_tensor(
      [&same](const attune::TensorPath&, const auto& left, const auto& right) {
        for (int i = 0; i < left.size; ++i)
          same = same && agree(left.values[i], right.values[i], 0.1f * kOptions.learning_rate);
      },
      std::as_const(ours), std::as_const(theirs));
  if (!same) disagree("with cblas");
}

#endif

void measure_steps() {
  attune::Rng rng(1);
  for (float& value : inputs.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : targets.values) value = rng.uniform(-1.0f, 1.0f);
  lockstep.initialize(attune::XavierUniform{}, attune::Rng(rng));
  streaming.initialize(attune::XavierUniform{}, attune::Rng(rng));
  (void)lockstep.step(inputs, targets, kOptions);
  (void)streaming.step(inputs, targets, kOptions);
  if (attune::hash_bits(lockstep.parameters()) != attune::hash_bits(streaming.parameters()))
    disagree("one by one");

#if ATTUNE_BENCH_OPENBLAS
  bench::CblasAttention blas(kBatch, kTiny.seq_len, kTiny.d_model, kTiny.num_heads);
  check_same_step(blas);
#endif

  bench::Race race;
  const int together = race.add([] { (void)lockstep.step(inputs, targets, kStill); });
  const int per_sequence = race.add([] { (void)streaming.step(inputs, targets, kStill); });
#if ATTUNE_BENCH_OPENBLAS
  const int theirs = race.add([&blas] { blas.step(inputs.data(), targets.data(), kStill.learning_rate); });
#endif
  race.run();
  bench::figure("step.batch1024.8x4x1.vs_streaming", race.ratio(per_sequence, together));
#if ATTUNE_BENCH_OPENBLAS
  bench::figure("step.batch1024.8x4x1.vs_openblas", race.ratio(theirs, together));
#endif
}

// Numbers, or ids and classes below `ids`.
void draw(auto& values, attune::Rng& rng, unsigned ids) {
  for (auto& value : values) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, int>) {
      value = static_cast<int>(rng.next() % ids);
    } else {
      value = rng.uniform(-1.0f, 1.0f);
    }
  }
}
void fill(auto& values, attune::Rng& rng, unsigned ids) {
  if constexpr (requires { values.values; }) {
    draw(values.values, rng, ids);
  } else {
    draw(values, rng, ids);
  }
}

// Lockstep against one by one: where rows fill packets by themselves, it has only its larger working set. And
// against itself where the batch has a length: of all tokens, half and a quarter of them.
template <class Model, class Loss, int batch, int tokens = 0>
void measure_model(const std::string& name, unsigned ids = 1) {
  static attune::Trainer<Model, Loss, attune::AdamW, batch, attune::Lockstep> together;
  static attune::Trainer<Model, Loss, attune::AdamW, batch, attune::BySequence> per_sequence;
  static typename decltype(together)::BatchInput x;
  static typename decltype(together)::BatchTarget target;
  attune::Rng rng(1);
  fill(x, rng, ids);
  fill(target, rng, ids);
  together.initialize(attune::XavierUniform{}, attune::Rng(rng));
  per_sequence.initialize(attune::XavierUniform{}, attune::Rng(rng));
  const std::string key = "step.batch" + std::to_string(batch) + "." + name;
  bench::Race race;
  const int lanes = race.add([] { (void)together.step(x, target, kStill); });
  const int streamed = race.add([] { (void)per_sequence.step(x, target, kStill); });
  race.run();
  bench::figure(key + ".vs_streaming", race.ratio(streamed, lanes));
  if constexpr (tokens > 0) {
    bench::Race lengths;
    const auto add = [&lengths]<class Mask>(Mask mask, int length) {
      (void)mask.set_length(length);
      return lengths.add([mask] { (void)together.step(x, target, kStill, attune::NoClipping{}, mask); });
    };
    using Length = attune::SequenceLength<tokens>;
    const int padded = add(attune::KeyPaddingMask<tokens>{}, tokens / 2), all = add(Length{}, tokens);
    const int half = add(Length{}, tokens / 2), quarter = add(Length{}, tokens / 4);
    lengths.run();
    bench::figure(key + ".half_vs_padded", lengths.ratio(padded, half));
    bench::figure(key + ".half_vs_all", lengths.ratio(all, half));
    bench::figure(key + ".quarter_vs_all", lengths.ratio(all, quarter));
  }
}

using Digits = attune::Sequential<
    attune::Linear<attune::LinearShape{8, 8, 16}>, attune::LearnedPositions<attune::PositionShape{8, 16}>,
    attune::EncoderLayer<attune::EncoderLayerShape{.attention = {.seq_len = 8, .d_model = 16, .num_heads = 2},
                                                   .d_ff = 32,
                                                   .activation = attune::Activation::kGelu,
                                                   .norm = attune::NormPlacement::kBefore}>,
    attune::Pooling<attune::PoolingShape{8, 16}>, attune::Linear<attune::LinearShape{1, 16, 10}>>;

// A language model of 32 ids, with dropout.
using OfIds = attune::Embedding<attune::EmbeddingShape{16, 32, 8}>;
using Body =
    attune::Sequential<attune::LearnedPositions<attune::PositionShape{16, 8}>,
                       attune::EncoderLayer<attune::EncoderLayerShape{
                           .attention = {.seq_len = 16, .d_model = 8, .num_heads = 2, .dropout = 0.1},
                           .d_ff = 16,
                           .activation = attune::Activation::kGelu,
                           .norm = attune::NormPlacement::kBefore}>>;
using Language = attune::Sequential<OfIds, Body, attune::Linear<attune::LinearShape{16, 8, 32}>>;
using TiedLanguage = attune::Tied<OfIds, Body>;

// Layers of one's own go one by one: here a decoder layer whose tokens are its memory, in the middle.
using Decoder =
    attune::DecoderLayer<attune::DecoderLayerShape{.attention = {.seq_len = 8, .d_model = 8, .num_heads = 2},
                                                   .d_ff = 16,
                                                   .activation = attune::Activation::kGelu}>;
struct OwnDecoder {
  using Scalar = float;
  using Input = Decoder::Input;
  using Output = Decoder::Output;
  using Parameters = Decoder::Parameters;
  using Tape = Decoder::Tape;
  struct Scratch {
    Decoder::Scratch layer;
    Decoder::Memory d_memory;
  };
  using InferenceScratch = Decoder::InferenceScratch;

  static void forward(const Parameters& p, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch& scratch) {
    Decoder::forward(p, x, x, y, scratch);
  }
  static void forward(const Parameters& p, attune::ConstView<Input> x, attune::View<Output> y, Tape& tape,
                      Scratch& scratch) {
    Decoder::forward(p, x, x, y, tape, scratch.layer);
  }
  static void backward(const Parameters& p, attune::ConstView<Input> x, Tape& tape,
                       attune::ConstView<Output> dy, auto&& dx, Parameters& gradients, Scratch& scratch) {
    if constexpr (attune::kWanted<decltype(dx)>) {
      Decoder::backward(p, x, x, tape, dy, dx, scratch.d_memory, gradients, scratch.layer);
      for (int i = 0; i < Input::size; ++i) dx.data[i] += scratch.d_memory.values[i];
    } else {
      Decoder::backward(p, x, x, tape, dy, attune::NoGradient{}, attune::NoGradient{}, gradients,
                        scratch.layer);
    }
  }
};
using Decoding = attune::Sequential<attune::Linear<attune::LinearShape{8, 4, 8}>, OwnDecoder,
                                    attune::Linear<attune::LinearShape{8, 8, 4}>>;

// X·W + b of `batch` sequences as one product, against one product a sequence.
template <int seq_len, int d_model, int batch>
void measure_stacking() {
  static attune::Tensor<float, batch * seq_len, d_model> x, y;
  static attune::Tensor<float, d_model, d_model> weight;
  static attune::Tensor<float, 1, d_model> bias;
  const attune::kernels::AddBias<float> add_bias{bias.data()};
  bench::Race race;
  const int stacked = race.add([&] {
    attune::kernels::gemm(attune::view(std::as_const(x)), attune::view(std::as_const(weight)),
                          attune::view(y), add_bias);
  });
  const int per_sequence = race.add([&] {
    for (int row = 0; row < batch * seq_len; row += seq_len) {
      attune::kernels::gemm(attune::view(std::as_const(x)).template rows_at<seq_len>(row),
                            attune::view(std::as_const(weight)),
                            attune::view(y).template rows_at<seq_len>(row), add_bias);
    }
  });
  race.run();
  bench::figure("projection." + std::to_string(seq_len) + "x" + std::to_string(d_model) + ".batch" +
                    std::to_string(batch) + ".stacked_vs_streaming",
                race.ratio(per_sequence, stacked));
}

// Samples of one row each: as the rows of one sequence, as a batch one by one, and as a batch in lockstep.
template <int rows>
using Mlp = attune::Sequential<
    attune::Linear<attune::LinearShape{.rows = rows, .d_in = 64, .d_out = 64}>, attune::Relu<rows, 64>,
    attune::Linear<attune::LinearShape{.rows = rows, .d_in = 64, .d_out = 64}>, attune::Relu<rows, 64>,
    attune::Linear<attune::LinearShape{.rows = rows, .d_in = 64, .d_out = 8}>>;

template <int rows, int batch, class Plan>
using MlpTrainer = attune::Trainer<Mlp<rows>, attune::MeanSquaredError, attune::Adam<>, batch, Plan>;

void measure_samples() {
  constexpr int kSamples = 32;
  static MlpTrainer<kSamples, 1, attune::BySequence> in_rows;
  static MlpTrainer<1, kSamples, attune::BySequence> per_sample;
  static MlpTrainer<1, kSamples, attune::Lockstep> lanes;
  static decltype(in_rows)::BatchInput x;
  static decltype(in_rows)::BatchTarget target;
  attune::Rng rng(1);
  for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : target.values) value = rng.uniform(-1.0f, 1.0f);
  const auto loss = [&](auto& trainer) {
    trainer.initialize(attune::XavierUniform{}, attune::Rng(rng));
    return trainer.step(x, target, {.learning_rate = 1e-3f}).loss;
  };
  const float expected = loss(per_sample);
  if (loss(lanes) != expected) disagree("one by one");
  if (!(std::fabs(loss(in_rows) - expected) <= 1e-5f * expected)) disagree("of rows");
  constexpr attune::Adam<>::Options kStays{.learning_rate = 1e-12f};
  bench::Race race;
  const int rows = race.add([&] { (void)in_rows.step(x, target, kStays); });
  const int samples = race.add([&] { (void)per_sample.step(x, target, kStays); });
  const int together = race.add([&] { (void)lanes.step(x, target, kStays); });
  race.run();
  bench::figure("samples.mlp64.batch32.rows_vs_batch", race.ratio(samples, rows));
  bench::figure("samples.mlp64.batch32.lockstep_vs_batch", race.ratio(samples, together));
}

}  // namespace

int main() {
  measure_samples();
  measure_steps();
  using attune::CrossEntropy, attune::MeanSquaredError;
  using Attention =
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 8, .d_model = 16, .num_heads = 2}>;
  measure_model<Attention, MeanSquaredError, 256>("8x16x2");
  measure_model<Digits, CrossEntropy<>, 64, 8>("digits", 10);
  measure_model<Language, CrossEntropy<>, 64, 16>("ids", 32);
  measure_model<TiedLanguage, CrossEntropy<>, 64>("tied", 32);
  measure_model<Decoding, MeanSquaredError, 64>("decoder");
  measure_stacking<8, 16, 32>();
  measure_stacking<16, 32, 32>();
  measure_stacking<32, 64, 16>();
  measure_stacking<64, 64, 16>();
  measure_stacking<128, 128, 8>();
  measure_stacking<64, 512, 8>();
}
