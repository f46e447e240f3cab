// Training steps of attune::host::ParallelTrainer against attune::Trainer, one by one: how many times faster,
// for a number of threads from the command line (all cores without one). On two threads also a CrewTrainer,
// whose threads add to one set of gradients in turns (the relay). `processor` is processor time of all
// threads, which counts on a busy machine: less than 1 is what threads cost.
//   tests/bench/run --threads [N]
#include <cstdlib>
#include <memory>
#include <string>

#include <attune/attune.hpp>
#include <attune/host/parallel_trainer.hpp>
#include <attune/host/thread_pool.hpp>

#include "timing.hpp"

namespace {

template <class Model, class Loss, int batch>
void measure(const char* name, int threads) {
  using Parallel = attune::host::ParallelTrainer<Model, Loss, attune::AdamW, batch>;
  using PerSequence = typename Parallel::PerSequence;
  struct Data {
    PerSequence trainer;
    typename PerSequence::BatchInput x;
    typename PerSequence::BatchTarget target;
  };
  const auto data = std::make_unique<Data>();
  Parallel parallel({.threads = threads});
  attune::Rng rng(1);
  for (float& value : data->x.values) value = rng.uniform(-1.0f, 1.0f);
  if constexpr (requires { data->target.values; }) {
    for (float& value : data->target.values) value = rng.uniform(-1.0f, 1.0f);
  } else {
    for (int& id : data->target) id = static_cast<int>(rng.next() % 10);
  }
  data->trainer.initialize(attune::XavierUniform{}, attune::Rng(rng));
  parallel.initialize(attune::XavierUniform{}, attune::Rng(rng));
  using Crew = attune::host::Threads<2>;
  using Relay = attune::CrewTrainer<Crew, Model, Loss, attune::AdamW, batch>;
  Crew crew;
  const auto relay = std::make_unique<Relay>();
  relay->initialize(attune::XavierUniform{}, attune::Rng(rng));
  bench::Race race;
  const int one =
      race.add([&] { (void)data->trainer.step(data->x, data->target, {.learning_rate = 1e-3f}); });
  const int all = race.add([&] { (void)parallel.step(data->x, data->target, {.learning_rate = 1e-3f}); });
  int relayed = -1;
  if (parallel.threads() == Crew::kMembers) {
    relayed = race.add([&] { (void)relay->step(crew, data->x, data->target, {.learning_rate = 1e-3f}); });
  }
  race.run();
  const std::string step = "step." + std::string(name) + ".batch" + std::to_string(batch) + ".";
  const auto report = [&](const std::string& who, int contender) {
    bench::figure(step + who + "_vs_trainer", race.ratio(one, contender));
    bench::figure(step + who + "_processor_vs_trainer", race.processor_ratio(one, contender));
  };
  report("threads" + std::to_string(parallel.threads()), all);
  if (relayed >= 0) report("relay2", relayed);
}

template <int seq_len, int d_model, int num_heads>
using Attention = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = seq_len, .d_model = d_model, .num_heads = num_heads}>;
// Two encoder layers between a projection of the tokens and ten classes.
using Classifier = attune::Sequential<
    attune::Linear<attune::LinearShape{16, 16, 32}>,
    attune::Repeat<2, attune::EncoderLayer<attune::EncoderLayerShape{
                          .attention = {.seq_len = 16, .d_model = 32, .num_heads = 4}, .d_ff = 64}>>,
    attune::Pooling<attune::PoolingShape{16, 32}>, attune::Linear<attune::LinearShape{1, 32, 10}>>;

}  // namespace

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 0;
  measure<Attention<8, 4, 1>, attune::MeanSquaredError, 64>("8x4x1", threads);
  measure<Attention<16, 32, 4>, attune::MeanSquaredError, 32>("16x32x4", threads);
  measure<Classifier, attune::CrossEntropy<>, 32>("classifier", threads);
  measure<Attention<64, 64, 4>, attune::MeanSquaredError, 32>("64x64x4", threads);
  measure<Attention<128, 128, 8>, attune::MeanSquaredError, 16>("128x128x8", threads);
  // One sequence, shared by the threads.
  measure<Attention<256, 64, 4>, attune::MeanSquaredError, 1>("256x64x4", threads);
  measure<Attention<512, 64, 4>, attune::MeanSquaredError, 1>("512x64x4", threads);
  measure<Attention<1024, 64, 4>, attune::MeanSquaredError, 1>("1024x64x4", threads);
}
