// A classifier of ATTUNE_LAYERS encoder layers, of which ATTUNE_TRAINED says what is trained; the rest stands
// in flash.
#include <attune/attune.hpp>

using namespace attune;

constexpr EncoderLayerShape kEncoder{.attention = {.seq_len = 8, .d_model = 16, .num_heads = 2},
                                     .d_ff = 32,
                                     .activation = Activation::kGelu,
                                     .norm = NormPlacement::kBefore};
using Embed = Sequential<Linear<LinearShape{8, 8, 16}>, LearnedPositions<PositionShape{8, 16}>>;
template <int layers>
using Blocks = Repeat<layers, EncoderLayer<kEncoder>>;
using Mean = Pooling<PoolingShape{8, 16}>;
using Head = Linear<LinearShape{1, 16, 10}>;
constexpr int kVectorsOfABlock = 4 * 16 + 32 + 16 + 4 * 16;  // biases of attention and network, two norms
constexpr int kOfABlock = 4 * 16 * 16 + 2 * 16 * 32 + kVectorsOfABlock;

// What is trained: the model, and how many scalars that are.
enum class Trained { kEverything, kBiasesAndNorms, kLowRank, kLastBlock, kHead };
template <Trained>
struct ModelOf {
  using Model = Sequential<Embed, Blocks<ATTUNE_LAYERS>, Mean, Head>;
  static constexpr int kScalars = (8 + 1 + 8) * 16 + ATTUNE_LAYERS * kOfABlock + 17 * 10;
};

template <>
struct ModelOf<Trained::kBiasesAndNorms> {
  using All = ModelOf<Trained::kEverything>::Model;
  static constexpr All::Parameters kFlash{};
  using Model = BiasesAndNorms<All, kFlash>;
  static constexpr int kScalars = 16 + ATTUNE_LAYERS * (kVectorsOfABlock - 16) + 10;  // but biases of keys
};
template <>
struct ModelOf<Trained::kLowRank> {
  using Body = Sequential<Embed, Blocks<ATTUNE_LAYERS>, Mean>;
  static constexpr Body::Parameters kFlash{};
  using Model = Sequential<Adapted<Body, kFlash, LowRank{.rank = 4}>, Head>;
  static constexpr int kScalars =
      ATTUNE_LAYERS * 2 * 4 * (16 + 16) + 17 * 10;  // queries and values; the head
};
template <>
struct ModelOf<Trained::kLastBlock> {
  using Front = Sequential<Embed, Blocks<ATTUNE_LAYERS - 1>>;
  static constexpr Front::Parameters kFlash{};
  using Model = Sequential<Frozen<Front, kFlash>, Blocks<1>, Mean, Head>;
  static constexpr int kScalars = kOfABlock + 17 * 10;
};
template <>
struct ModelOf<Trained::kHead> {
  using Front = Sequential<Embed, Blocks<ATTUNE_LAYERS>, Mean>;
  static constexpr Front::Parameters kFlash{};
  using Model = Sequential<Frozen<Front, kFlash>, Head>;
  static constexpr int kScalars = 17 * 10;
};

using Model = ModelOf<Trained::ATTUNE_TRAINED>::Model;

static Trainer<Model, CrossEntropy<>> trainer;

// No byte for what is not trained: parameters, gradients and two moments of the rest.
constexpr MemoryReport kMemory = trainer.memory();
constexpr std::size_t kTrainedBytes = ModelOf<Trained::ATTUNE_TRAINED>::kScalars * sizeof(float);
static_assert(kMemory.parameters == kTrainedBytes && kMemory.gradients == kTrainedBytes);
static_assert(kMemory.moments == 2 * kTrainedBytes + 2 * sizeof(std::uint64_t));
static_assert(kMemory.object() == sizeof trainer);

static Model::Input input;
static int target[1];

int main() {
  trainer.initialize(LinearDefault{}, Rng{1});
  return trainer.step(input, target, {.learning_rate = 1e-3f}).ok() ? 0 : 1;
}
