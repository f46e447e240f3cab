// The training steps of training_step.hpp behind C functions, for against_torch.py.
#include <array>
#include <utility>

#include "training_step.hpp"

namespace {

struct Entry {
  int seq_len, d_model, num_heads;
  float *parameters, *x, *target, *y, *dx, *loss;
  void (*initialize)();
  void (*forward)(long calls);
  void (*step)(long calls);
};

template <attune::AttentionShape shape>
bench::TrainingStep<shape> training;

template <attune::AttentionShape shape>
Entry entry() {
  auto& it = training<shape>;
  return {.seq_len = shape.seq_len,
          .d_model = shape.d_model,
          .num_heads = shape.num_heads,
          .parameters = it.parameters.query.weight.data(),
          .x = it.x.data(),
          .target = it.target.data(),
          .y = it.y.data(),
          .dx = it.dx.data(),
          .loss = &it.loss,
          .initialize = [] { training<shape>.initialize(); },
          .forward =
              [](long calls) {
                for (long i = 0; i < calls; ++i) training<shape>.forward();
              },
          .step =
              [](long calls) {
                for (long i = 0; i < calls; ++i) training<shape>.step();
              }};
}

template <std::size_t... index>
std::array<Entry, bench::kShapes.size()> entries(std::index_sequence<index...>) {
  return {entry<bench::kShapes[index]>()...};
}

}  // namespace

extern "C" {

int attune_bench_count() { return static_cast<int>(bench::kShapes.size()); }

const Entry* attune_bench_entries() {
  static const auto all = entries(std::make_index_sequence<bench::kShapes.size()>());
  return all.data();
}
}
