// Trains and infers on one core and on both, in turn, with the same states after every step. Counts the
// instructions of a step and of an inference of each, in this order: tests/ports/cores reads them.
#include <cstring>

#include <attune/attune.hpp>
#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>
#include <second_core.hpp>

namespace {

using Cores = attune::TwoCores<port::SecondCore>;
Cores cores;
bool passed = true;

template <class Data>
void draw(Data& data, attune::Rng& rng, int classes) {
  if constexpr (requires { data.values; }) {
    for (auto& value : data.values) value = rng.uniform(-1.0f, 1.0f);
  } else {
    for (int& id : data) id = static_cast<int>(rng.next() % static_cast<std::uint32_t>(classes));
  }
}

template <class Model, class Loss, int batch>
struct Comparison {
  using One = attune::Trainer<Model, Loss, attune::AdamW, batch>;
  using Two = attune::CrewTrainer<Cores, Model, Loss, attune::AdamW, batch>;
  static inline constinit One one{};
  static inline constinit Two two{};
  static inline constinit typename One::BatchInput inputs{};
  static inline constinit typename One::BatchTarget targets{};
  static inline constinit typename Model::Output y{}, together{};

  static void run(const char* name, int steps) {
    one.initialize(attune::XavierUniform{}, attune::Rng(1));
    two.initialize(attune::XavierUniform{}, attune::Rng(1));
    attune::Rng rng(2);
    const attune::AdamW::Options options{.learning_rate = 0.01f};
    const attune::GradientClipping clipping{.max_norm = 10.0f};
    bool same = true;
    for (int step = 0; step < steps; ++step) {
      draw(inputs, rng, 5);
      draw(targets, rng, 5);
      if (step == 1) port::begin_counting();
      const auto alone = one.step(inputs, targets, options, clipping);
      if (step == 1) (void)port::end_counting();
      if (step == 1) port::begin_counting();
      const auto both = two.step(cores, inputs, targets, options, clipping);
      if (step == 1) (void)port::end_counting();
      same &= alone.ok() && both.ok() && std::memcmp(&one.state(), &two.state(), sizeof one.state()) == 0;
    }
    const auto x = attune::detail::InputsOf<Model, batch>::at(inputs, 0);
    port::begin_counting();
    same &= one.predict(x, y) == attune::Status::kOk;
    (void)port::end_counting();
    port::begin_counting();
    same &= two.predict(cores, x, together) == attune::Status::kOk;
    (void)port::end_counting();
    same &= std::memcmp(&y, &together, sizeof y) == 0;
    passed &= same;
    port::print(name, ": ", steps, " steps, parameters ", port::hex8(attune::hash_bits(one.parameters())),
                ' ', port::hex8(attune::hash_bits(two.parameters())), ", bytes ", sizeof one, ' ', sizeof two,
                same ? "" : ", DIFFERENT", '\n');
  }
};

using Small = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 8, .d_model = 4, .num_heads = 1}>;
using Argmax =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 16, .d_model = 32, .num_heads = 4}>;
constexpr int kRows = 8, kWidth = 16;
using Digits = attune::Sequential<attune::Linear<attune::LinearShape{kRows, 8, kWidth}>,
                                  attune::LearnedPositions<attune::PositionShape{kRows, kWidth}>,
                                  attune::EncoderLayer<attune::EncoderLayerShape{
                                      .attention = {.seq_len = kRows, .d_model = kWidth, .num_heads = 2},
                                      .d_ff = 2 * kWidth,
                                      .activation = attune::Activation::kGelu,
                                      .norm = attune::NormPlacement::kBefore}>,
                                  attune::Pooling<attune::PoolingShape{kRows, kWidth}>,
                                  attune::Linear<attune::LinearShape{1, kWidth, 10}>>;
// Layers that add to a gradient more than once.
using Tied = attune::Tied<
    attune::Embedding<attune::EmbeddingShape{.seq_len = 12, .vocabulary = 20, .d_model = 8}>,
    attune::Conv1d<attune::Conv1dShape{.seq_len = 12, .d_in = 8, .d_out = 8, .kernel = 3, .padding = 1}>>;

}  // namespace

int main() {
  cores.start();
  Comparison<Argmax, attune::MeanSquaredError, 4>::run("argmax 16x32x4, batch 4", 10);
  Comparison<Digits, attune::CrossEntropy<>, 32>::run("digits 8x16x2, batch 32", 4);
  Comparison<Small, attune::MeanSquaredError, 4>::run("argmax 8x4x1, batch 4", 50);
  Comparison<Small, attune::MeanSquaredError, 1>::run("argmax 8x4x1, batch 1", 50);
  Comparison<Argmax, attune::MeanSquaredError, 1>::run("argmax 16x32x4, batch 1", 10);
  Comparison<Tied, attune::CrossEntropy<>, 5>::run("tied 12x8, batch 5", 20);
  port::print("stack of core 1: ", port::SecondCore::stack_high_water(), " bytes\n");
  port::print(passed ? "same bits\n" : "DIFFERENT bits\n");
  return passed ? 0 : 1;
}
