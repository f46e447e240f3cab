// Training steps against the processor's peak, and the stack that a step takes.
#include <string>
#include <utility>

#include <port.hpp>

#include "peak.hpp"
#include "timing.hpp"
#include "training_step.hpp"

namespace {

template <attune::AttentionShape shape>
bench::TrainingStep<shape> training;

std::string key(attune::AttentionShape shape, const char* what) {
  return "step." + std::to_string(shape.seq_len) + "x" + std::to_string(shape.d_model) + "x" +
         std::to_string(shape.num_heads) + "." + what;
}

template <attune::AttentionShape shape>
[[gnu::noinline]] void measure_stack() {
  port::paint_stack();
  training<shape>.step();
  const std::size_t bytes = port::stack_high_water();
  bench::figure(key(shape, "stack_bytes"), static_cast<double>(bytes));
}

template <attune::AttentionShape shape>
[[gnu::noinline]] void measure_peak_fraction() {
  auto& step = training<shape>;
  step.initialize();
  bench::Race race;
  const int peak = race.add([] { bench::peak_work(); });
  const int ours = race.add([&step] { step.step(); });
  race.run();
  bench::figure(key(shape, "peak_fraction"), race.ratio(peak, ours) * step.kStepFlops / bench::kPeakFlops);
}

template <std::size_t... index>
void measure_shapes(std::index_sequence<index...>) {
  (measure_peak_fraction<bench::kShapes[index]>(), ...);
}

}  // namespace

int main() {
  measure_stack<bench::kShapes.back()>();
  measure_shapes(std::make_index_sequence<bench::kShapes.size()>());
}
