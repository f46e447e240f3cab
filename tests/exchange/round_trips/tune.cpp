// On the device: an exported model learns the sequences of data.hpp, from a base in floats and from one in 8
// bits, in each way to tune it. What it learned goes out as lines of text, with its answers after it.
#include <console.hpp>
#include <port.hpp>

#include <attune/attune.hpp>
#include <data.hpp>
#include <of_floats.hpp>
#include <of_int8.hpp>

#include FAMILY_HEADER

namespace {

using attune::Status;
using FAMILY::Model;
using FAMILY::Names;

constexpr int kEpochs = 30, kRows = Model::Output::rows, kClasses = Model::Output::cols;
static_assert(sizeof kInputs[0] == sizeof(Model::Input) && sizeof kTargets[0] == kRows * sizeof(int));
Model::Output logits;

Model::Input input(int sequence) {
  Model::Input x;
  std::memcpy(&x, kInputs[sequence], sizeof x);
  return x;
}

// The number of rows of all sequences whose largest logit is the target; prints their bits on request.
int recognized(auto& trainer, bool prints) {
  int right = 0;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    if (trainer.predict(input(sequence), logits) != Status::kOk) return -1;
    for (int row = 0; row < kRows; ++row) {
      int largest = 0;
      for (int c = 1; c < kClasses; ++c) {
        if (logits(row, c) > logits(row, largest)) largest = c;
      }
      right += largest == kTargets[sequence][row];
    }
    if (!prints) continue;
    port::print("logits");
    for (const float value : logits.values) port::print(' ', port::hex8(std::bit_cast<std::uint32_t>(value)));
    port::print('\n');
  }
  return right;
}

template <class Tuned, class File>
void tune(const char* method, const char* base) {
  static attune::Trainer<Tuned, attune::CrossEntropy<>, attune::AdamW, kSequences> trainer;
  if constexpr (std::is_same_v<Tuned, Model>) {
    (void)trainer.load([](auto& parameters) {
      attune::copy_parameters(attune::kInFlash<Names, File>, parameters);
      return Status::kOk;
    });
  } else {
    trainer.initialize(attune::XavierUniform{}, attune::Rng{1});
  }
  port::print("begin ", method, ' ', base, '\n');
  const int before = recognized(trainer, false);
  float first = 0, last = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (int sequence = 0; sequence < kSequences; ++sequence) {
      const Model::Input x = input(sequence);
      const auto added = trainer.accumulate(x, kTargets[sequence]);
      if (!added.ok()) return port::print("error ", attune::message(added.status), '\n');
    }
    const auto updated = trainer.update({.learning_rate = 0.03f});
    if (!updated.ok()) return port::print("error ", attune::message(updated.status), '\n');
    if (epoch == 0) first = updated.loss;
    last = updated.loss;
  }
  attune::HexLines lines([](const char* text, std::size_t length) { port::write(text, length); });
  const auto written = attune::rewrite_safetensors<attune::NamesFor<Tuned, Names>>(
      attune::bytes_of<File>(), trainer.parameters(), lines);
  lines.end();
  if (written.status != Status::kOk) {
    port::print("error ", attune::message(written.status), ' ', written.tensor, '\n');
    return;
  }
  const int after = recognized(trainer, true);
  port::print("result method=", method, " base=", base, " loss_before=", port::fixed(first, 4),
              " loss=", port::fixed(last, 4), " recognized_before=", before, " recognized=", after,
              " of=", kSequences * kRows, " ram_bytes=", static_cast<int>(sizeof trainer), '\n');
}

template <class File>
void tune_all(const char* base) {
  constexpr const auto& kBase = attune::kInFlash<Names, File>;
  if constexpr (attune::detail::kIsSequential<Model>) {
    tune<attune::LinearProbe<Model, kBase>, File>("head", base);
  } else {
    port::print("none head ", base, '\n');  // the embedding is the head
  }
  tune<attune::BiasesAndNorms<Model, kBase>, File>("biases", base);
  tune<attune::Adapted<Model, kBase, attune::LowRank{.rank = 4, .roles = attune::Role::kEverything}>, File>(
      "lora", base);
  tune<Model, File>("everything", base);
}

}  // namespace

int main() {
  tune_all<of_floats>("float");
  tune_all<of_int8>("int8");
  return 0;
}
