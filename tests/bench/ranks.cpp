// Training steps of attune::host::DistributedTrainer on the ranks that there are, a thread each, and what the
// model of tests/bench/ranks.py is made of. Rank 0 prints
//   step NAME BATCH GRADIENT_BYTES RANKS SECONDS WITHOUT  of a step; of this rank's sequences without the
//   other ranks parts NAME SECONDS_OF_ADDING SECONDS_OF_AN_UPDATE     on one rank: of one sequence's
//   gradient, of the optimizer ring LATENCY BYTES_PER_SECOND                         on two tests/bench/run
//   --ranks
#include <attune/attune.hpp>
#include <attune/host/distributed_trainer.hpp>
#include <attune/host/mpi.hpp>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

#include "timing.hpp"

namespace {

using attune::host::Ranks;
using Clock = std::chrono::steady_clock;

template <class Work>
double seconds(const Work& work) {
  const auto start = Clock::now();
  work();
  bench::keep();
  return std::chrono::duration<double>(Clock::now() - start).count();
}
/// Of one call. Ranks call as often.
template <class Work>
double median(int calls, const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) times.push_back(seconds(work));
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

template <class Model, int batch>
void measure(const char* name, int steps, Ranks& ranks) {
  using Loss = attune::CrossEntropy<>;
  using Trainer = attune::host::DistributedTrainer<Model, Loss, attune::AdamW, batch>;
  using Parameters = typename Model::Parameters;
  struct Data {
    typename Trainer::BatchInput x;
    typename Trainer::BatchTarget target;
    typename Trainer::PerSequence alone;
    Parameters parameters, gradients;
    attune::AdamW::Moments<Parameters> moments;
  };
  const auto data = std::make_unique<Data>();
  attune::Rng rng(1);
  for (float& value : data->x.values) value = rng.uniform(-1.0f, 1.0f);
  for (int& id : data->target) id = static_cast<int>(rng.next() % 10);
  Trainer trainer(ranks, {.threads = 1, .compare_every = 0});
  trainer.initialize(attune::XavierUniform{}, attune::Rng(rng));
  data->alone.initialize(attune::XavierUniform{}, attune::Rng(rng));
  const auto mean = [&](const auto& work) {
    (void)attune::host::of_all_ranks(ranks, 0);  // all begin
    return seconds([&] {
             for (int step = 0; step < steps; ++step) work();
             (void)attune::host::of_all_ranks(ranks, 0);  // all have ended
           }) /
           steps;
  };
  const std::clock_t begin = std::clock();
  const double together = mean([&] { (void)trainer.step(data->x, data->target, {.learning_rate = 1e-3f}); });
  const double of_processor = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / steps;
  const double without = mean([&] {
    for (int i = trainer.first_sequence(); i < trainer.end_sequence(); ++i) {
      (void)data->alone.accumulate(
          attune::view(data->x).template rows_at<Model::Input::rows>(i * Model::Input::rows),
          std::array{data->target[static_cast<std::size_t>(i)]});
    }
    data->alone.discard();
  });
  if (ranks.rank() == 0)
    std::printf("step %s %d %zu %d %.9f %.9f\n", name, batch, sizeof(Parameters), ranks.size(), together,
                without);
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
  std::printf("parts %s %.9f %.9f %.9f\n", name, of_processor, add, update);
}

template <int seq_len, int d_model, int num_heads>
using Classifier = attune::Sequential<
    attune::Linear<attune::LinearShape{seq_len, 16, d_model}>,
    attune::Repeat<2, attune::EncoderLayer<attune::EncoderLayerShape{
                          .attention = {.seq_len = seq_len, .d_model = d_model, .num_heads = num_heads},
                          .d_ff = 2 * d_model}>>,
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
