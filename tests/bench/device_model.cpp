// Instruction counts of one of the models of models.hpp on an emulated board, as device.cpp prints them: a
// forward pass, a training step on one sequence, and a step of a classifier's factors of low rank (LoRA).
//   ATTUNE_BENCH_MODEL                    its name
//   ATTUNE_BENCH_MEMORY, ..._MEMORY_SIZE  where its numbers stand and how many bytes are there: the emulated
//                                         board's external RAM, larger than what the linker script has. Without an
//                                         address: in the program, under an operating system
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>

#include "models.hpp"

namespace {

constexpr bench::ModelShape kShape = bench::shape_of(ATTUNE_BENCH_MODEL);
using Model = bench::Model<kShape>;
using Loss = bench::LossOf<kShape>;
using Mask = bench::MaskOf<kShape>;
template <class OfModel, class Plan = attune::BySequence>
using TrainerOf = attune::Trainer<OfModel, Loss, attune::AdamW, 1, Plan>;
using Trainer = TrainerOf<Model>;
using PackedSet = Model::ParametersOf<attune::PackedInt8Weights, attune::Tensor>;

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
  PackedSet packed;
  Model::InferenceScratch scratch;
  Model::Output y;
};
template <class Trainer>
struct Step {
  Data data;
  Trainer trainer;
};
template <class Plan>
using StepOfAll = Step<TrainerOf<Model, Plan>>;

// A constant base in that memory: its numbers, and references to them.
template <class Set>
using ReferencesTo = decltype(attune::references_to<Model>(std::declval<const Set&>()));
template <class Set>
ReferencesTo<Set> base;
template <class Set, class Plan>
struct LoraStep {
  using Tuned = attune::Adapted<Model, base<Set>, attune::LowRank{.rank = 8}>;
  Step<TrainerOf<Tuned, Plan>> step;
  Set set;
  Model::Parameters floats;
};

#ifdef ATTUNE_BENCH_MEMORY
void* memory() { return reinterpret_cast<void*>(std::uintptr_t{ATTUNE_BENCH_MEMORY}); }
#else
alignas(64) std::byte bytes[ATTUNE_BENCH_MEMORY_SIZE];
void* memory() { return bytes; }
#endif
template <class T>
T& in_memory() {
  return *::new (memory()) T;
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

template <class Trainer>
[[gnu::noinline]] void measure_step(Step<Trainer>& it, const char* name, long macs) {
  attune::Rng rng(1);
  it.trainer.initialize(attune::XavierUniform{}, rng);
  fill(it.data, rng);
  port::begin_counting();
  const auto result =
      it.trainer.step(it.data.x, it.data.target, {.learning_rate = 1e-3f}, attune::NoClipping{}, Mask{});
  port::end_counting();
  if (!result.ok()) port::exit(1);
  print(name, macs);
}

template <class Set, class Plan>
[[gnu::noinline]] void measure_lora_step(const char* name) {
  if constexpr (sizeof(LoraStep<Set, Plan>) <= ATTUNE_BENCH_MEMORY_SIZE) {
    auto& it = in_memory<LoraStep<Set, Plan>>();
    attune::Rng rng(1);
    attune::initialize(it.floats, attune::XavierUniform{}, rng);
    if constexpr (std::is_same_v<Set, PackedSet>) {
      if (attune::quantize(it.floats, it.set) != attune::Status::kOk) port::exit(1);
    } else {
      it.set = it.floats;
    }
    base<Set> = attune::references_to<Model>(it.set);
    measure_step(it.step, name, bench::lora_macs(kShape));
  }
}

}  // namespace

int main() {
  static_assert(sizeof(Forward) <= ATTUNE_BENCH_MEMORY_SIZE);
  measure_forward();
  if constexpr (sizeof(PackedForward) <= ATTUNE_BENCH_MEMORY_SIZE) measure_packed_forward();
  if constexpr (sizeof(StepOfAll<attune::Int8Training>) <= ATTUNE_BENCH_MEMORY_SIZE) {
    measure_step(in_memory<StepOfAll<attune::BySequence>>(), "step", bench::step_macs(kShape));
    measure_step(in_memory<StepOfAll<attune::Int8Training>>(), "int8_step", bench::step_macs(kShape));
  }
  if constexpr (kShape.kind == bench::Kind::kClassifier) {
    measure_lora_step<Model::Parameters, attune::BySequence>("lora_step");
    measure_lora_step<PackedSet, attune::Int8Training>("int8_lora_step");
  }
  return 0;
}
