// One of the models of models.hpp behind C functions, for against_models.py: what it is, its numbers, and its
// pieces of work, a forward pass, in floats and in integers, and a training step of a batch.
//   ATTUNE_BENCH_MODEL   its name
#include <cstdlib>
#include <memory>
#include <string>

#include <attune/host/parallel_inference.hpp>
#include <attune/host/parallel_trainer.hpp>
#include <attune/host/thread_pool.hpp>

#include "model_description.hpp"

namespace {

constexpr bench::ModelShape kShape = bench::shape_of(ATTUNE_BENCH_MODEL);
constexpr int kBatch = 32;
constexpr float kLearningRate = 1e-3f;

using Model = bench::Model<kShape>;
using Mask = bench::MaskOf<kShape>;
using Trainer = attune::Trainer<Model, bench::LossOf<kShape>, attune::AdamW, kBatch>;
using Parallel = attune::host::ParallelTrainer<Model, bench::LossOf<kShape>, attune::AdamW, kBatch>;

// What is compared with keeps its tensors where lines of the cache begin.
template <class T>
struct alignas(64) OnLines {
  T value;
};

// What a step and a forward pass need for a number of threads; large, so on the heap and built when asked
// for.
class Runner {
 public:
  Runner() {
    attune::Rng rng(1);
    attune::initialize(parameters, attune::XavierUniform{}, rng);
    bench::draw(data->x, kShape.d_in, rng);
    bench::draw(data->target, kShape.d_out, rng);
    if (attune::quantize(parameters, packed) != attune::Status::kOk) std::abort();
  }

  void prepare(int threads) {
    pool = std::make_unique<attune::host::ThreadPool>(threads);
    scratch =
        std::make_unique<OnLines<typename Model::InferenceScratch>[]>(static_cast<std::size_t>(threads));
    on_lines = std::make_unique<OnLines<Trainer>>();
    trainer = &on_lines->value;
    together = std::make_unique<attune::host::ParallelInference<Model>>(threads);
    trainer->load(parameters);
    parallel.reset();
    if (threads > 1) {
      parallel = std::make_unique<Parallel>(attune::host::ParallelOptions{.threads = threads});
      parallel->load(parameters);
    }
  }

  void forward(int batch) {
    if (batch < pool->threads()) {
      for (int sequence = 0; sequence < batch; ++sequence) {
        (void)together->forward(parameters, Inputs::at(data->x, sequence),
                                attune::View<Output>(data->y.data() + sequence * Output::size), Mask{});
      }
      return;
    }
    pool->for_each(batch, [this](int thread, int sequence) {
      (void)attune::infer<Model>(parameters, Inputs::at(data->x, sequence),
                                 attune::View<Output>(data->y.data() + sequence * Output::size),
                                 scratch[thread].value, Mask{});
    });
  }

  // On one thread, with attention in integers.
  void int8_forward(int batch) {
    for (int sequence = 0; sequence < batch; ++sequence) {
      (void)attune::infer<Model>(packed, Inputs::at(data->x, sequence),
                                 attune::View<Output>(data->y.data() + sequence * Output::size),
                                 scratch[0].value, Mask{}, attune::Int8Products{});
    }
  }

  // A step on a sequence alone is one thread's work here. threads.cpp measures one that threads share.
  float step(int batch) {
    if (batch == kBatch && parallel) {
      return parallel
          ->step(data->x, data->target, {.learning_rate = kLearningRate}, attune::NoClipping{}, Mask{})
          .loss;
    }
    for (int sequence = 0; sequence < batch; ++sequence) {
      (void)trainer->accumulate(Inputs::at(data->x, sequence), Targets::at(data->target, sequence), Mask{});
    }
    return trainer->update_incomplete({.learning_rate = kLearningRate}).loss;
  }

  using Output = Model::Output;
  using Inputs = attune::detail::InputsOf<Model, kBatch>;
  using Targets = attune::detail::TargetsOf<bench::LossOf<kShape>, Output, kBatch>;
  struct Data {
    alignas(64) typename Trainer::BatchInput x;
    typename Trainer::BatchTarget target;
    alignas(64) attune::Tensor<float, kBatch * Output::rows, Output::cols> y;
  };
  alignas(64) typename Model::Parameters parameters;
  alignas(64) typename Model::template ParametersOf<attune::PackedInt8Weights, attune::Tensor> packed;
  std::unique_ptr<Data> data = std::make_unique<Data>();

 private:
  std::unique_ptr<attune::host::ThreadPool> pool;
  std::unique_ptr<OnLines<typename Model::InferenceScratch>[]> scratch;
  std::unique_ptr<OnLines<Trainer>> on_lines;
  Trainer* trainer = nullptr;
  std::unique_ptr<attune::host::ParallelInference<Model>> together;
  std::unique_ptr<Parallel> parallel;
};

Runner& runner() {
  static const auto only = std::make_unique<Runner>();
  return *only;
}

}  // namespace

extern "C" {

/// model_description.hpp
[[gnu::visibility("default")]] const char* attune_bench_describe() {
  static const std::string text = bench::description<kShape>(runner().parameters);
  return text.c_str();
}

[[gnu::visibility("default")]] const void* attune_bench_parameters() { return &runner().parameters; }
[[gnu::visibility("default")]] const void* attune_bench_x() { return runner().data->x.data(); }
[[gnu::visibility("default")]] const void* attune_bench_target() { return runner().data->target.data(); }
[[gnu::visibility("default")]] const float* attune_bench_y() { return runner().data->y.data(); }

/// The first numbers again, and this many threads.
[[gnu::visibility("default")]] void attune_bench_prepare(int threads) { runner().prepare(threads); }

[[gnu::visibility("default")]] void attune_bench_forward(int batch, long calls) {
  for (long i = 0; i < calls; ++i) runner().forward(batch);
}
[[gnu::visibility("default")]] void attune_bench_int8_forward(int batch, long calls) {
  for (long i = 0; i < calls; ++i) runner().int8_forward(batch);
}
/// The loss of the last one.
[[gnu::visibility("default")]] float attune_bench_step(int batch, long calls) {
  float loss = 0;
  for (long i = 0; i < calls; ++i) loss = runner().step(batch);
  return loss;
}
}
