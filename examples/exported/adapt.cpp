// On the device: the exported ViT stands in flash, and sees digits whose white and black are exchanged.
// Factors of low rank, biases and norms learn from 1,437 of them (LoRA), and the merged weights go out as
// lines of text.
#include <arguments.hpp>
#include <console.hpp>
#include <port.hpp>

#include <attune/attune.hpp>
#include <vit.hpp>
#include <vit_file.hpp>

#include "../digits/packed_images.hpp"

namespace {

constexpr int kImages = 1437, kBatch = 8, kTestImages = 360;
constexpr auto& kBase = attune::kInFlash<vit::Names, vit_file>;
constexpr attune::LowRank kFactors{
    .rank = 4, .roles = attune::Role::kEverything, .alpha = 8, .biases_and_norms = true};
using Adapted = attune::Adapted<vit::Model, kBase, kFactors>;

attune::Trainer<Adapted, attune::CrossEntropy<>, attune::AdamW, kBatch> trainer;
vit::Model::Input patches;
vit::Model::Output logits;

// A row of patches has 2 × 2 pixels of the image.
void see(const digits::PackedImage& packed) {
  for (int pixel = 0; pixel < 64; ++pixel) {
    const int bit = 5 * pixel, row = pixel / 8, column = pixel % 8;
    std::uint64_t word = packed.words[bit / 32];
    if (bit / 32 < 9) word |= std::uint64_t{packed.words[bit / 32 + 1]} << 32;
    const float ink = static_cast<float>(word >> bit % 32 & 31U) * (1.0f / 16);
    patches(row / 2 * 4 + column / 2, row % 2 * 2 + column % 2) = 1 - ink;
  }
}

// How many test images are recognized; -1 where a prediction is refused.
int recognized() {
  int correct = 0;
  for (int i = 0; i < kTestImages; ++i) {
    see(digits::kPackedTest[i]);
    if (trainer.predict(patches, logits) != attune::Status::kOk) return -1;
    int largest = 0;
    for (int c = 1; c < 10; ++c) {
      if (logits(0, c) > logits(0, largest)) largest = c;
    }
    correct += largest == digits::kTestLabels[i] - '0';
  }
  return correct;
}

attune::Status learn(int epochs) {
  for (int step = 0; step < epochs * kImages; ++step) {
    const int image = step * 5 % kImages;
    see(digits::kPackedTrain[image]);
    if (const auto accumulated = trainer.accumulate(patches, digits::kTrainLabels[image] - '0');
        !accumulated.ok()) {
      return accumulated.status;
    }
    if (step % kBatch == kBatch - 1) {
      const auto updated = trainer.update({.learning_rate = 3e-3f});
      if (!updated.ok()) return updated.status;
    }
  }
  return attune::Status::kOk;
}

}  // namespace

int main() {
  trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  const int before = recognized();
  const attune::Status status = learn(port::argument("--epochs", 3));
  if (status != attune::Status::kOk) {
    port::print("adapt: ", attune::message(status), "\n");
    return 1;
  }
  const int after = recognized();
  attune::HexLines lines([](const char* text, std::size_t length) { port::write(text, length); });
  const auto written = attune::rewrite_safetensors<vit::Names>(attune::bytes_of<vit_file>(),
                                                               Adapted::all(trainer.parameters()), lines);
  lines.end();
  port::print("result step=adapt target=", port::name(), " recognized_before=", before, "/", kTestImages,
              " recognized=", after, "/", kTestImages, " ram_bytes=", static_cast<int>(sizeof trainer),
              " parameters_hash=", port::hex8(attune::hash_bits(trainer.parameters())), "\n");
  return written.status == attune::Status::kOk && before >= 0 && after >= 0 ? 0 : 1;
}
