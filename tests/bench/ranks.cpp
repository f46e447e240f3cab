// Training steps of attune::host::DistributedTrainer on the ranks that there are, a thread each, and what the
// model of tests/bench/ranks.py is made of. Rank 0 prints
//   step NAME BATCH GRADIENT_BYTES RANKS SECONDS FASTEST  the median, the fastest tenth
//   parts NAME SECONDS_OF_ADDING SECONDS_OF_AN_UPDATE     on one rank: of one sequence's gradient, of the
//   optimiser ring LATENCY BYTES_PER_SECOND                         on two tests/bench/run --ranks
#include <attune/attune.hpp>
#include <attune/host/distributed_trainer.hpp>
#include <attune/host/mpi.hpp>

#include <memory>

#include "timing.hpp"

namespace {

using attune::host::Ranks;
using Clock = std::chrono::steady_clock;

struct Times {
  double median;
  double fastest;  // that a tenth of the calls do not exceed: on a busy machine those that nobody got in the
                   // way of
};

/// Of one call. Ranks call as often.
template <class Work>
Times time(int calls, const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    const auto start = Clock::now();
    work();
    bench::keep();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  const auto count = times.size();
  return {times[count / 2], times[count / 10]};
}
template <class Work>
double median(int calls, const Work& work) {
  return time(calls, work).median;
}

template <class Model, int batch>
void measure(const char* name, int steps, Ranks& ranks) {
  using Loss = attune::CrossEntropy<>;
  using Trainer = attune::host::DistributedTrainer<Model, Loss, attune::AdamW, batch>;
  using Parameters = typename Model::Parameters;
  struct Data {
    typename Trainer::BatchInput x;
    typename Trainer::BatchTarget target;
    Parameters parameters, gradients;
    attune::AdamW::Moments<Parameters> moments;
  };
  const auto data = std::make_unique<Data>();
  attune::Rng rng(1);
  for (float& value : data->x.values) value = rng.uniform(-1.0f, 1.0f);
  for (int& id : data->target) id = static_cast<int>(rng.next() % 10);
  Trainer trainer(ranks, {.threads = 1, .compare_every = 0});
  trainer.initialise(attune::XavierUniform{}, attune::Rng(rng));
  const Times step =
      time(steps, [&] { (void)trainer.step(data->x, data->target, {.learning_rate = 1e-3f}); });
  if (ranks.rank() == 0)
    std::printf("step %s %d %zu %d %.9f %.9f\n", name, batch, sizeof(Parameters), ranks.size(), step.median,
                step.fastest);
  if (ranks.size() > 1) return;

  data->parameters = trainer.parameters();
  attune::set_zero(data->gradients);
  data->moments.reset();
  const double add = median(101, [&] {
    attune::for_each_tensor(
        [](const attune::TensorPath&, auto& sum, const auto& added) {
          attune::kernels::add_to(sum.size, added.data(), sum.data());
        },
        data->gradients, data->parameters);
  });
  const double update = median(101, [&] {
    (void)attune::optimizer_step<attune::AdamW>(data->parameters, data->gradients, data->moments, {});
  });
  std::printf("parts %s %.9f %.9f\n", name, add, update);
}

template <int seq_len, int d_model, int num_heads>
using Classifier = attune::Sequential<
    attune::Linear<attune::LinearShape{seq_len, 16, d_model}>,
    attune::Repeat<2,
                   attune::EncoderLayer<attune::EncoderLayerShape{
                       .seq_len = seq_len, .d_model = d_model, .num_heads = num_heads, .d_ff = 2 * d_model}>>,
    attune::Pooling<attune::PoolingShape{seq_len, d_model}>,
    attune::Linear<attune::LinearShape{1, d_model, 10}>>;

}  // namespace

int main() {
  attune::host::MpiRanks ranks;
  measure<Classifier<16, 32, 4>, 32>("16x32x4", 201, ranks);
  measure<Classifier<64, 64, 4>, 32>("64x64x4", 41, ranks);
  measure<Classifier<128, 128, 8>, 32>("128x128x8", 11, ranks);
  if (ranks.size() == 2) {
    std::byte one{};
    std::vector<std::byte> many(std::size_t{1} << 24);
    // There and back.
    const double small = median(501, [&] { (void)attune::host::of_all_ranks(ranks, one); });
    const double large = median(21, [&] {
      attune::host::hand_out(ranks, many);
      (void)attune::host::of_all_ranks(ranks, one);
    });
    if (ranks.rank() == 0)
      std::printf("ring %.9f %.0f\n", small, static_cast<double>(many.size()) / (large - small));
  }
  return 0;
}
