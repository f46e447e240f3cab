// A firmware that trains and infers in slices, each of which is counted: model_in_slices.hpp, or the header
// in its place, says of which Model, and may name a Loss and an Optimizer.
#include <attune/attune.hpp>
#include <console.hpp>
#include <instructions.hpp>

#include <cstring>

// Unless the header says otherwise: qualified names find its own first.
namespace defaults {
using Loss = attune::MeanSquaredError;
using Optimizer = attune::AdamW;
}  // namespace defaults

#include ATTUNE_SLICES_OF

using namespace defaults;

namespace {

using Trained = attune::Trainer<::Model, ::Loss, ::Optimizer>;

Trained trainer;
Trained::BatchInput x;
Trained::BatchTarget target;
Model::Output y;
Model::InferenceScratch scratch;

template <class Numbers>
void fill(Numbers& numbers, attune::Rng& rng) {
  if constexpr (requires { numbers.values; }) {
    for (auto& value : numbers.values) value = rng.uniform(-1.0f, 1.0f);
  } else {
    for (int& id : numbers) id = 0;
  }
}

// Counts each slice of a pass, and prints how many there were of at most how much work.
void count_slices(const char* what, int work, auto pass) {
  int slices = 0;
  while (!pass.done()) {
    port::begin_counting();
    pass.advance();
    port::end_counting();
    ++slices;
  }
  port::print(what, ' ', work, ' ', slices, '\n');
}
// Counts a call that is not cut.
void count_in_one_go(const char* what, auto&& run) {
  port::begin_counting();
  run();
  port::end_counting();
  port::print(what, " 0 1\n");
}

// A store of a state beside constants, which no save reads again, in memory that behaves as flash.
namespace stored {

using Base = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 32, .d_out = 32}>;
constexpr Base::Parameters kBase{};
using Trainer =
    attune::Trainer<attune::Sequential<attune::Frozen<Base, kBase>, attune::Linear<attune::LinearShape{
                                                                        .rows = 1, .d_in = 32, .d_out = 4}>>,
                    attune::MeanSquaredError>;
Trainer trainer;

class Flash {
 public:
  static constexpr std::uint32_t kPageSize = 512, kPages = 10, kProgramUnit = 8;
  static constexpr unsigned char kErased = 0xFF;

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    std::memcpy(to, memory_ + at, bytes);
    return attune::Status::kOk;
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    std::memcpy(memory_ + at, from, bytes);
    return attune::Status::kOk;
  }
  attune::Status erase(std::uint32_t at) {
    std::memset(memory_ + at, kErased, kPageSize);
    return attune::Status::kOk;
  }
  attune::Status sync() { return attune::Status::kOk; }

 private:
  unsigned char memory_[kPageSize * kPages] = {};
};
Flash flash;
using Store = attune::FlashStore<Flash, Trainer::State>;
Trainer::State loaded;
static_assert(Store::kSlots == 2);

}  // namespace stored

// Saves into each slot, and a load. Bytes of a slice stand in the place of its work.
void count_store() {
  constexpr int kBytes = 64;
  stored::Store store(stored::flash);
  stored::trainer.initialize(attune::XavierUniform{}, attune::Rng(2));
  count_in_one_go("save", [&] { (void)store.save(stored::trainer.state()); });
  for (int slot = 0; slot < 2; ++slot)
    count_slices("save", kBytes, store.save_in_slices(stored::trainer.state()));
  count_in_one_go("load", [&] { (void)store.load(stored::loaded); });
  count_slices("load", kBytes, store.load_in_slices(stored::loaded));
}

template <int work>
void count_in_slices() {
  count_slices("accumulate", work, trainer.template accumulate_in_slices<work>(x, target));
  count_slices("update", work, trainer.template update_in_slices<work>({}));
  count_slices("inference", work, attune::infer_in_slices<Model, work>(trainer.parameters(), x, y, scratch));
}

}  // namespace

int main() {
  attune::Rng rng(1);
  trainer.initialize(attune::XavierUniform{}, rng);
  fill(x, rng);
  fill(target, rng);
  count_in_one_go("accumulate", [] { (void)trainer.accumulate(x, target); });
  count_in_one_go("update", [] { (void)trainer.update({}); });
  count_in_one_go("inference", [] { (void)Model::forward(trainer.parameters(), x, y, scratch); });
  count_in_slices<8192>();
  count_in_slices<512>();
  count_in_slices<128>();
  count_store();
}
