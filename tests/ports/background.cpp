// Core 1 trains and publishes its parameters after each step; core 0 infers with those that it takes, and none
// is torn. Counts the instructions of an inference alone, and while core 1 trains: tests/ports/cores reads
// them.
#include <attune/attune.hpp>
#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>
#include <second_core.hpp>

namespace {

using Model =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 8, .d_model = 4, .num_heads = 1}>;
using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 4>;
using Cores = attune::TwoCores<port::SecondCore>;
constexpr int kSteps = 300;

struct Version {
  Model::Parameters parameters;
  std::uint32_t hash;
  int step;
};

constinit Cores cores{};
constinit Trainer trainer{};
constinit Trainer::BatchInput inputs{};
constinit Trainer::BatchTarget targets{};
constinit attune::Published<Version> published{};
constinit attune::detail::SharedWord ended{};
constinit Model::InferenceScratch scratch{};
constinit Model::Input x{};
constinit Model::Output y{};

// The same batches each time.
bool step(attune::Rng& rng) {
  for (float& value : inputs.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : targets.values) value = rng.uniform(-1.0f, 1.0f);
  return trainer.step(inputs, targets, {.learning_rate = 0.01f}).ok();
}
void publish(int number) {
  if (Version* const place = published.place()) {
    *place = {trainer.parameters(), attune::hash_bits(trainer.parameters()), number};
    published.publish();
  }
}
[[gnu::noinline]] void infer() {
  port::begin_counting();
  attune::infer<Model>(published.take().parameters, x, y, scratch);
  (void)port::end_counting();
}

// In QEMU, where cores take turns.
void let_other_core_run() {
  port::SecondCore::wake();
  port::SecondCore::relax();
}

bool trained = true;
void train() {
  attune::Rng rng(2);
  for (int number = 1; number <= kSteps; ++number) {
    trained &= step(rng);
    publish(number);
    let_other_core_run();
  }
  ended.store(1);
}

}  // namespace

int main() {
  cores.start();
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  publish(0);
  for (float& value : x.values) value = 0.5f;
  infer();
  int torn = 0, versions = 0, last = 0;
  cores.for_each(2, [&](int, int core) {
    if (core == 1) return train();
    for (int count = 0; ended.load() == 0; ++count) {
      if (count == 3) {
        infer();
      } else {
        attune::infer<Model>(published.take().parameters, x, y, scratch);
      }
      const Version& version = published.take();
      torn += attune::hash_bits(version.parameters) != version.hash || version.step < last;
      versions += version.step != last;
      last = version.step;
      let_other_core_run();
    }
  });
  const std::uint32_t in_background = attune::hash_bits(trainer.parameters());
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  attune::Rng rng(2);
  for (int number = 1; number <= kSteps; ++number) trained &= step(rng);
  const bool same = trained && attune::hash_bits(trainer.parameters()) == in_background;
  port::print("versions ", versions, ", torn ", torn, ", stack of core 1: ",
              port::SecondCore::stack_high_water(), " bytes\n", same ? "same bits\n" : "DIFFERENT bits\n");
  return same && torn == 0 && versions > 0 ? 0 : 1;
}
