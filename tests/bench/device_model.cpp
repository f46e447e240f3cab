// Instruction counts of one of the models of models.hpp on an emulated board, as device.cpp prints them: a
// forward pass, and a training step on one sequence.
//   ATTUNE_BENCH_MODEL                    its name
//   ATTUNE_BENCH_MEMORY, ..._MEMORY_SIZE  where its numbers stand and how many bytes are there: the emulated
//                                         board's external RAM, larger than what the linker script has
#include <cstdint>
#include <new>

#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>

#include "models.hpp"

namespace {

constexpr bench::ModelShape kShape = bench::shape_of(ATTUNE_BENCH_MODEL);
using Model = bench::Model<kShape>;
using Loss = bench::LossOf<kShape>;
using Mask = bench::MaskOf<kShape>;
template <class OfModel = Model, class Plan = attune::Streaming>
using TrainerOf = attune::Trainer<OfModel, Loss, attune::AdamW, 1, Plan>;
using Trainer = TrainerOf<>;

struct Data {
  typename Trainer::BatchInput x;
  typename Trainer::BatchTarget target;
};
struct Forward {
  Data data;
  Model::Parameters parameters;
  Model::InferenceScratch scratch;
  Model::Output y;
};
struct PackedForward {
  Data data;
  Model::Parameters parameters;
  Model::ParametersOf<attune::PackedInt8Weights, attune::Tensor> packed;
  Model::InferenceScratch scratch;
  Model::Output y;
};
template <class Plan>
struct Step {
  Data data;
  TrainerOf<Model, Plan> trainer;
};

template <class T>
T& in_memory() {
  return *::new (reinterpret_cast<void*>(std::uintptr_t{ATTUNE_BENCH_MEMORY})) T;
}

void fill(Data& data, attune::Rng& rng) {
  bench::draw(data.x, kShape.d_in, rng);
  bench::draw(data.target, kShape.d_out, rng);
}

void print(const char* work, long macs) {
  port::print("model." ATTUNE_BENCH_MODEL ".", work, ".instructions_per_mac ", macs, '\n');
}

[[gnu::noinline]] void measure_forward() {
  auto& it = in_memory<Forward>();
  attune::Rng rng(1);
  attune::initialize(it.parameters, attune::XavierUniform{}, rng);
  fill(it.data, rng);
  port::begin_counting();
  (void)attune::infer<Model>(it.parameters, it.data.x, it.y, it.scratch, Mask{});
  port::end_counting();
  print("forward", bench::forward_macs(kShape));
}

// The same with weights of 8 bits in products of integers.
[[gnu::noinline]] void measure_packed_forward() {
  auto& it = in_memory<PackedForward>();
  attune::Rng rng(1);
  attune::initialize(it.parameters, attune::XavierUniform{}, rng);
  if (attune::quantize(it.parameters, it.packed) != attune::Status::kOk) port::exit(1);
  fill(it.data, rng);
  port::begin_counting();
  (void)attune::infer<Model>(it.packed, it.data.x, it.y, it.scratch, Mask{});
  port::end_counting();
  print("packed_int8_forward", bench::forward_macs(kShape));
  port::begin_counting();
  (void)attune::infer<Model>(it.packed, it.data.x, it.y, it.scratch, Mask{}, attune::Int8Products{});
  port::end_counting();
  print("int8_forward", bench::forward_macs(kShape));  // attention in integers, too
}

template <class Plan>
[[gnu::noinline]] void measure_step(const char* name) {
  auto& it = in_memory<Step<Plan>>();
  attune::Rng rng(1);
  it.trainer.initialize(attune::XavierUniform{}, rng);
  fill(it.data, rng);
  port::begin_counting();
  const auto result =
      it.trainer.step(it.data.x, it.data.target, {.learning_rate = 1e-3f}, attune::NoClipping{}, Mask{});
  port::end_counting();
  if (!result.ok()) port::exit(1);
  print(name, bench::step_macs(kShape));
}

}  // namespace

int main() {
  static_assert(sizeof(Forward) <= ATTUNE_BENCH_MEMORY_SIZE);
  measure_forward();
  if constexpr (sizeof(PackedForward) <= ATTUNE_BENCH_MEMORY_SIZE) measure_packed_forward();
  if constexpr (sizeof(Step<attune::Int8Training>) <= ATTUNE_BENCH_MEMORY_SIZE) {
    measure_step<attune::Streaming>("step");
    measure_step<attune::Int8Training>("int8_step");
  }
  return 0;
}
