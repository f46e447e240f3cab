// Steps 3 to 8 of the page "From PyTorch to the board and back", with the file of train.py beside it.
#include <cstdio>
#include <cstring>

#include <attune/attune.hpp>

#include "digits_weights.hpp"
#include "model.hpp"

using Digits = digits::Model;
using Names = attune::PyTorchPart<attune::PyTorchModule<Digits, "embed", "pos", "encoder.layers", "head">>;
using Tuned = attune::BiasesAndNorms<Digits, attune::kInFlash<Names, digits_weights>>;
using Adapted = attune::Adapted<Digits, attune::kInFlash<Names, digits_weights>, attune::LowRank{.rank = 4}>;

static attune::Trainer<Digits, attune::CrossEntropy<>> trainer;
static attune::Trainer<Tuned, attune::CrossEntropy<>> tuned;
static attune::Trainer<Adapted, attune::CrossEntropy<>> adapted;
static Digits::InferenceScratch scratch;

int main() {
  Digits::Input x{};
  Digits::Output in_flash, copied;
  Digits::forward(attune::kInFlash<Names, digits_weights>, x, in_flash, scratch);
  attune::Status status = trainer.load([](auto& parameters) {
    return attune::read_safetensors<Names>(attune::bytes_of<digits_weights>(), parameters);
  });
  if (status != attune::Status::kOk) return 1;
  if (trainer.predict(x, copied) != attune::Status::kOk) return 2;
  if (std::memcmp(&in_flash, &copied, sizeof copied) != 0) return 2;

  tuned.initialize(attune::XavierUniform{}, attune::Rng{1});
  if (!tuned.step(x, 3, {.learning_rate = 0.01f}).ok()) return 3;
  adapted.initialize(attune::XavierUniform{}, attune::Rng{1});
  if (adapted.predict(x, copied) != attune::Status::kOk) return 5;
  if (std::memcmp(&in_flash, &copied, sizeof copied) != 0) return 5;
  if (!adapted.step(x, 3, {.learning_rate = 0.01f}).ok()) return 6;

  std::FILE* file = std::fopen("from_page.safetensors", "wb");
  status = attune::write_safetensors<Names>(
      trainer.parameters(),
      [file](const char* bytes, std::size_t count) { std::fwrite(bytes, 1, count, file); });
  std::fclose(file);
  return status == attune::Status::kOk ? 0 : 4;
}
