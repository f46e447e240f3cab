#include "model.hpp"

#include <cstdarg>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

#include <attune/host/parallel_trainer.hpp>

namespace {

#if defined(__AVX512F__)
constexpr const char* kUnit = "avx512";
#elif defined(__AVX2__)
constexpr const char* kUnit = "avx2";
#else
constexpr const char* kUnit = "sse2";
#endif

// Initializers of one processor alone, in the order of their priorities.
std::vector<std::string> initialized;
struct Initialized {
  Initialized() {
    initialized.emplace_back(kUnit);
    for (float& value : numbers) value = static_cast<float>(initialized.size()) * 0.5f;
    std::cout << "initialized for " << kUnit << '\n';
  }
  ~Initialized() { std::cout << "done with " << kUnit << '\n'; }
  float numbers[16];
} const of_file;

template <class AnyTrainer>
void learn(AnyTrainer& trainer, Trainer::BatchInput& x, Trainer::BatchInput& target) {
  attune::Rng rng(1);
  trainer.initialize(attune::XavierUniform{}, rng);
  for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : target.values) value = rng.uniform(-1.0f, 1.0f);
}

class Learner final : public Model {
 public:
  Learner() { learn(trainer_, x_, target_); }
  float step() override;
  [[nodiscard]] std::uint32_t hash() const override { return attune::hash_bits(trainer_.parameters()); }
  [[nodiscard]] const Trainer& trainer() const override { return trainer_; }

 private:
  Trainer trainer_{};
  Trainer::BatchInput x_{}, target_{};
};
float Learner::step() { return trainer_.step(x_, target_, {.learning_rate = 0.01f}).loss; }

}  // namespace

std::unique_ptr<Model> make_model() { return std::make_unique<Learner>(); }

std::uint32_t hash_on_threads() {
  attune::host::ParallelTrainer<Layer, attune::MeanSquaredError, attune::AdamW, 4> trainer({.threads = 2});
  Trainer::BatchInput x{}, target{};
  learn(trainer, x, target);
  for (int step = 0; step < 5; ++step) (void)trainer.step(x, target, {.learning_rate = 0.01f});
  return attune::hash_bits(trainer.parameters());
}

std::string room::layout_of_model() { return layout(); }
Eigen::VectorXf room::numbers() { return Eigen::VectorXf::LinSpaced(100, 0.0f, 99.0f); }
void room::refuse(const std::string& what) {
  throw std::runtime_error(what + " refused by " + DISPATCHED_NAME);
}

extern "C" const char* compiled_for(int which, ...) {
  std::va_list list;
  va_start(list, which);
  const double half = va_arg(list, double);
  va_end(list);
  const bool arrived = which == 7 && half == 0.5 && initialized.size() == 1 && of_file.numbers[3] == 0.5f;
  return arrived ? initialized[0].c_str() : "nothing that was initialized";
}
