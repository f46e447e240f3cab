// RAM of training by part, for the picture: a line `plan NAME: PARAMETERS GRADIENTS MOMENTS TAPE SCRATCH` for
// each memory plan and optimizer. The model is two encoder layers 16 × 32 × 4 and a head of 10 classes.
#include <cstdio>

#include <attune/attune.hpp>

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

constexpr Body::Parameters kBody{};
constexpr Model::Parameters kModel{};
constexpr attune::LowRank kLora{.rank = 4};
using Adapters = attune::Sequential<attune::Adapted<Body, kBody, kLora>, Head>;
using HeadAlone = attune::Sequential<attune::Frozen<Body, kBody>, Head>;
using HalfMoments = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kBfloat16}>;

template <class Trained, class Optimizer, class Plan>
void print(const char* name) {
  constexpr attune::MemoryReport kMemory =
      attune::Trainer<Trained, attune::CrossEntropy<>, Optimizer, 1, Plan>::memory();
  std::printf("plan %s: %zu %zu %zu %zu %zu\n", name, kMemory.parameters, kMemory.gradients, kMemory.moments,
              kMemory.tape, kMemory.scratch + kMemory.state);
}

}  // namespace

int main() {
  using attune::AdamW, attune::Sgd, attune::Streaming, attune::UpdateInBackward;
  print<Model, AdamW, Streaming>("Everything, AdamW");
  print<Recomputed, AdamW, Streaming>("Everything, tapes recomputed");
  print<Model, HalfMoments, Streaming>("Everything, 16-bit moments");
  print<Model, AdamW, UpdateInBackward>("UpdateInBackward");
  print<Model, HalfMoments, UpdateInBackward>("UpdateInBackward, 16-bit moments");
  print<Recomputed, Sgd<>, UpdateInBackward>("UpdateInBackward, SGD, recomputed");
  print<attune::BiasesAndNorms<Model, kModel>, AdamW, Streaming>("Biases and norms");
  print<Adapters, AdamW, Streaming>("LoRA, rank 4");
  print<HeadAlone, AdamW, Streaming>("Head");
}
