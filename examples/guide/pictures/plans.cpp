// RAM and time of training, for the picture: a line `plan NAME: PARAMETERS GRADIENTS MOMENTS TAPE SCRATCH`
// for each memory plan and optimizer, and the instructions of its second step, counted by the emulator. The
// model is two encoder layers 16 × 32 × 4 and a head of 10 classes.
#include <attune/attune.hpp>
#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>

namespace {

template <bool keep_weights>
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 16, .d_model = 32, .num_heads = 4, .keep_weights = keep_weights}, .d_ff = 64}>;
template <class Layer>
using BodyOf =
    attune::Sequential<attune::Linear<attune::LinearShape{.rows = 16, .d_in = 8, .d_out = 32}>,
                       attune::LearnedPositions<attune::PositionShape{.seq_len = 16, .d_model = 32}>,
                       attune::Repeat<2, Layer>,
                       attune::Pooling<attune::PoolingShape{.seq_len = 16, .d_model = 32}>>;
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 32, .d_out = 10}>;
using Body = BodyOf<Encoder<true>>;
using Model = attune::Sequential<Body, Head>;
using Recomputed = attune::Sequential<BodyOf<attune::Checkpointed<Encoder<false>>>, Head>;
using Packed = attune::QuantizedTape<attune::Sequential<BodyOf<Encoder<false>>, Head>>;

constexpr Body::Parameters kBody{};
constexpr Model::Parameters kModel{};
constexpr attune::LowRank kLora{.rank = 4};
using Adapters = attune::Sequential<attune::Adapted<Body, kBody, kLora>, Head>;
using LinearProbe = attune::Sequential<attune::Frozen<Body, kBody>, Head>;
using HalfMoments = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kBfloat16}>;

template <class Trained, class Optimizer, class Plan>
bool measure(const char* name) {
  using Trainer = attune::Trainer<Trained, attune::CrossEntropy<>, Optimizer, 1, Plan>;
  constexpr attune::MemoryReport kMemory = Trainer::memory();
  port::print("plan ", name, ": ", kMemory.parameters, ' ', kMemory.gradients, ' ', kMemory.moments, ' ',
              kMemory.tape, ' ', kMemory.scratch + kMemory.state, '\n');
  static Trainer trainer;
  static typename Trained::Input x;
  attune::Rng rng(1);
  trainer.initialize(attune::XavierUniform{}, rng);
  for (float& value : x.values) value = rng.uniform(-1, 1);
  const typename Optimizer::Options options{.learning_rate = 1e-3f};
  const bool begun = trainer.step(x, 3, options).ok();
  port::begin_counting();
  const bool stepped = trainer.step(x, 3, options).ok();
  port::end_counting();
  return begun && stepped;
}

}  // namespace

int main() {
  using attune::AdamW, attune::Sgd, attune::BySequence, attune::UpdateInBackward;
  const bool measured =
      measure<Model, AdamW, BySequence>("Everything, AdamW") &&
      measure<Recomputed, AdamW, BySequence>("Everything, tapes recomputed") &&
      measure<Packed, AdamW, BySequence>("Everything, tape in 8 bits") &&
      measure<Model, HalfMoments, BySequence>("Everything, 16-bit moments") &&
      measure<Model, AdamW, UpdateInBackward>("UpdateInBackward") &&
      measure<Model, HalfMoments, UpdateInBackward>("UpdateInBackward, 16-bit moments") &&
      measure<Recomputed, Sgd<>, UpdateInBackward>("UpdateInBackward, SGD, recomputed") &&
      measure<attune::BiasesAndNorms<Model, kModel>, AdamW, BySequence>("Biases and norms") &&
      measure<Adapters, AdamW, BySequence>("LoRA, rank 4") && measure<LinearProbe, AdamW, BySequence>("Head");
  return measured ? 0 : 1;
}
