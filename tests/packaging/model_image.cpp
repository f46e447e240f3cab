// A classifier that trains, of ATTUNE_LAYERS encoder layers; with ATTUNE_FROZEN all but its head stands in
// flash.
#include <attune/attune.hpp>

using namespace attune;

constexpr EncoderLayerShape kEncoder{.seq_len = 8,
                                     .d_model = 16,
                                     .num_heads = 2,
                                     .d_ff = 32,
                                     .activation = Activation::kGelu,
                                     .norm = NormPlacement::kBefore};
using Backbone = Sequential<Linear<LinearShape{8, 8, 16}>, LearnedPositions<PositionShape{8, 16}>,
                            Repeat<ATTUNE_LAYERS, EncoderLayer<kEncoder>>, Pooling<PoolingShape{8, 16}>>;
using Head = Linear<LinearShape{1, 16, 10}>;

#if ATTUNE_FROZEN
constexpr Backbone::Parameters kBackbone{};
using Model = Sequential<Frozen<Backbone, kBackbone>, Head>;
#else
using Model = Sequential<Backbone, Head>;
#endif

static Trainer<Model, CrossEntropy<>> trainer;
static Model::Input input;
static int target[1];

int main() {
  trainer.initialise(LinearDefault{}, Rng{1});
  return trainer.step(input, target, {.learning_rate = 1e-3f}).ok() ? 0 : 1;
}
