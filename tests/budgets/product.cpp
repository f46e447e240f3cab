// A product: adapts a classifier of sequences by LoRA beside a base in 8 bits, in slices between deadlines,
// with blocks that are recomputed; predicts in slices; keeps its state in flash. CMakeLists.txt compiles it
// for size and for speed.
#include <cstdint>
#include <cstring>

#include <attune/attune.hpp>
#include <instructions.hpp>

namespace {

constexpr int kTokens = 32, kBands = 16, kWidth = 32, kClasses = 10, kBatch = 2;
constexpr attune::EncoderLayerShape kBlock{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 4, .keep_weights = false},
    .d_ff = 2 * kWidth,
    .activation = attune::Activation::kGelu,
    .norm = attune::NormPlacement::kBefore};
using Body = attune::Sequential<attune::Linear<attune::LinearShape{kTokens, kBands, kWidth}>,
                                attune::LearnedPositions<attune::PositionShape{kTokens, kWidth}>,
                                attune::Repeat<2, attune::Checkpointed<attune::EncoderLayer<kBlock>>>,
                                attune::LayerNorm<attune::NormShape{kTokens, kWidth}>,
                                attune::Pooling<attune::PoolingShape{kTokens, kWidth}>>;
using Head = attune::Linear<attune::LinearShape{1, kWidth, kClasses}>;

// The base, in flash. Nobody has trained it.
template <class Set>
constexpr Set drawn(std::uint32_t seed) {
  const auto next = [&seed] { return static_cast<int>((seed = seed * 1664525 + 1013904223) >> 24) - 128; };
  Set set{};
  attune::for_each_tensor(
      [&next](const attune::TensorPath&, auto& tensor) {
        if constexpr (requires { tensor.stored; }) {
          for (float& scale : tensor.stored.scales) scale = 0.003f;
          for (auto& element : tensor.stored.elements) element.value = static_cast<std::int8_t>(next());
        } else {
          for (float& value : tensor.values) value = static_cast<float>(next()) / 256;
        }
      },
      set);
  return set;
}
constexpr auto kBody = drawn<Body::ParametersOf<attune::Int8Weights, attune::Tensor>>(1);
constexpr auto kHead = drawn<Head::Parameters>(2);

constexpr attune::LowRank kFactors{.rank = 4, .roles = attune::Role::kQueries | attune::Role::kValues};
using Device = attune::Sequential<attune::Adapted<Body, kBody, kFactors>, Head>;
using Trainer = attune::Trainer<Device, attune::CrossEntropy<>, attune::AdamW, kBatch>;

// Flash that is memory.
class Flash {
 public:
  static constexpr std::uint32_t kPageSize = 1024, kPages = 48, kProgramUnit = 8;
  static constexpr unsigned char kErased = 0xFF;
  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    std::memcpy(to, pages_ + at, bytes);
    return attune::Status::kOk;
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    std::memcpy(pages_ + at, from, bytes);
    return attune::Status::kOk;
  }
  attune::Status erase(std::uint32_t at) {
    std::memset(pages_ + at, kErased, kPageSize);
    return attune::Status::kOk;
  }
  attune::Status sync() { return attune::Status::kOk; }

 private:
  unsigned char pages_[kPageSize * kPages];
};
using Store = attune::FlashStore<Flash, Trainer::State>;

}  // namespace

// Names that the linker keeps.
extern "C" {
Trainer adapter;
Device::Input recording;
Device::Output answer;
attune::KeyPaddingMask<kTokens> valid;
int label[1];
Flash flash;
volatile int served;
}

namespace {

void serve_what_is_due() { served = served + 1; }

void record(int take) {
  attune::Rng rng(static_cast<std::uint64_t>(take));
  for (float& value : recording.values) value = rng.uniform(-1.0f, 1.0f);
  label[0] = take % kClasses;
}

[[gnu::noinline]] bool learn(int first) {
  for (int i = 0; i < kBatch; ++i) {
    record(first + i);
    if (valid.set_length(kTokens - 4 * i) != attune::Status::kOk) return false;
    auto pass = adapter.accumulate_in_slices(recording, label, valid);
    while (pass.advance()) serve_what_is_due();
    if (!pass.result().ok()) return false;
  }
  auto update = adapter.update_in_slices({.learning_rate = 1e-2f});
  while (update.advance()) serve_what_is_due();
  return update.result().ok();
}

[[gnu::noinline]] bool predict() {
  auto prediction = adapter.predict_in_slices(recording, answer, valid);
  while (prediction.advance()) serve_what_is_due();
  return prediction.status() == attune::Status::kOk;
}

[[gnu::noinline]] bool keep() { return Store(flash).save(adapter.state()) == attune::Status::kOk; }

[[gnu::noinline]] bool start() {
  const auto stored = adapter.resume([](Trainer::State& state) { return Store(flash).load(state); });
  if (stored == attune::Status::kOk) return true;
  adapter.start_from(
      [](Device::Parameters& parameters) { attune::copy_parameters(kHead, parameters.layer<1>()); },
      attune::XavierUniform{}, attune::Rng{7});
  return false;
}

}  // namespace

// The second step is the one that counts: moments are zero before the first.
int main() {
  if (start() || !learn(0)) return 1;
  port::begin_counting();
  const bool learned = learn(kBatch);
  port::end_counting();
  if (!learned || !keep()) return 1;
  return start() && predict() ? 0 : 1;
}
