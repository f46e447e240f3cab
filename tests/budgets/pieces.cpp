// A firmware that trains and infers in pieces, each of which is counted: pieces_of_model.hpp, or the header
// in its place, says of which Model, and may name a Loss and an Optimizer.
#include <attune/attune.hpp>
#include <console.hpp>
#include <instructions.hpp>

namespace {

// Unless the header says otherwise.
using Loss = attune::MeanSquaredError;
using Optimizer = attune::AdamW;

namespace of_model {
#include ATTUNE_PIECES_OF

using Trained = attune::Trainer<Model, Loss, Optimizer>;
}  // namespace of_model
using of_model::Model, of_model::Trained;

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

void count(const char* what, auto pass) {
  int pieces = 0;
  for (bool more = true; more; ++pieces) {  // the last one does nothing but look
    port::begin_counting();
    more = pass.advance();
    port::end_counting();
  }
  port::print(what, ' ', pieces, '\n');
}

}  // namespace

int main() {
  attune::Rng rng(1);
  trainer.initialise(attune::XavierUniform{}, rng);
  fill(x, rng);
  fill(target, rng);
  count("accumulate", trainer.accumulate_in_pieces(x, target));
  count("update", trainer.update_in_pieces({}));
  count("inference", attune::infer_in_pieces<Model>(trainer.parameters(), x, y, scratch));
}
