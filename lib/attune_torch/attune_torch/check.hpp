// Runs the model on the samples of check.safetensors: as a whole, and layer by layer, so that the first layer
// whose numbers differ from PyTorch's has a name. For check.cpp of an exported folder, which defines `Whole`,
// `WholeNames`, `Layers`, `LayerNames`, `Samples`, `kPaths`, `kRest` and `kLoraRoles` before, and calls
// check() for a file of each precision.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include <console.hpp>
#include <port.hpp>

#include <attune/attune.hpp>
#include <attune_torch/trainings.hpp>

namespace {

using attune::Status;

/// A tensor of the samples.
struct Recorded {
  const void* data = nullptr;
  std::uint64_t count = 0;  // of samples
};
Recorded recorded(std::string_view name) {
  const std::string_view file = attune::bytes_of<Samples>();
  const std::string_view text{Samples::kHeader, sizeof Samples::kHeader - 1};
  attune::SafetensorsHeader header(text, file.size() - 8 - text.size());
  attune::SafetensorsEntry entry;
  while (header.next(entry)) {
    if (entry.name == name) return {file.data() + 8 + text.size() + entry.begin, entry.shape[0]};
  }
  return {};
}

struct Difference {
  float largest = 0, magnitude = 0;
  bool finite = true;

  void add(float value, float expected) {
    const float difference = value < expected ? expected - value : value - expected;
    if (!(difference >= 0)) finite = false;
    if (difference > largest) largest = difference;
    const float size = expected < 0 ? -expected : expected;
    if (size > magnitude) magnitude = size;
  }
  [[nodiscard]] bool within(float tolerance) const {
    return finite && largest <= tolerance * (magnitude < 1 ? 1.0f : magnitude);
  }
};

/// The sample's values of a tensor of this type.
template <class Matrix>
void copy(const Recorded& from, std::uint64_t sample, Matrix& to) {
  std::memcpy(&to, static_cast<const char*>(from.data) + sample * sizeof to, sizeof to);
}
template <class Output>
void compare(const Output& y, const Recorded& with, std::uint64_t sample, Difference& difference) {
  const auto* const expected = static_cast<const float*>(with.data) + sample * Output::size;
  for (int i = 0; i < Output::size; ++i) difference.add(y.values[i], expected[i]);
}

Difference of_layer[Layers::kLayers];

template <class File, int index, class Input>
void run_from(const Input& x, std::uint64_t sample) {
  constexpr const auto& kLayers = attune::kInFlash<LayerNames, File>;
  using Layer = Layers::Layer<index>;
  static typename Layer::Output y;
  static typename Layer::InferenceScratch scratch;
  static_cast<void>(attune::infer<Layer>(kLayers.template layer<index>(), x, y, scratch));
  char name[] = "layer.000";
  for (int place = 8, rest = index; place > 5; --place, rest /= 10)
    name[place] = static_cast<char>('0' + rest % 10);
  compare(y, recorded(name), sample, of_layer[index]);
  if constexpr (index + 1 < Layers::kLayers) run_from<File, index + 1>(y, sample);
}

void print_plan(const char* name, const attune::MemoryReport& memory) {
  port::print("plan ", name, " ram_bytes=", memory.total(), '\n');
}
template <class Model, class Optimizer = attune::AdamW, class Plan = attune::BySequence>
constexpr attune::MemoryReport training() {
  return attune::Trainer<Model, attune::MeanSquaredError, Optimizer, 1, Plan>::memory(
      attune::Feeding::kOneByOne);
}

/// RAM of the trainings that the model has parameters for.
template <class Model, class File>
void print_trainings() {
  constexpr const auto& kBase = attune::kInFlash<WholeNames, File>;
  static constexpr attune::LowRank kFactors{.rank = 4, .roles = kLoraRoles};
  if constexpr (!std::is_empty_v<typename Model::Parameters>) {
    print_plan("everything", training<Model>());
    print_plan("everything_update_in_backward_sgd",
               training<Model, attune::Sgd<>, attune::UpdateInBackward>());
  }
  if constexpr (attune_torch::kTrains<Model, attune::detail::TrainLowRank<kFactors>>) {
    print_plan("lora", training<attune::Adapted<Model, kBase, kFactors>>());
  }
  if constexpr (attune_torch::kTrains<Model, attune::detail::TrainVectors>) {
    print_plan("biases_and_norms", training<attune::BiasesAndNorms<Model, kBase>>());
  }
}

/// Prints the differences and a result line for the weights of a file. Whether all are within the tolerance.
template <class File>
bool check(const char* precision, float tolerance) {
  static Whole::Input x;
  static Whole::Output y;
  static Whole::InferenceScratch scratch;
  const Recorded inputs = recorded("input"), outputs = recorded("output");
  Difference of_output;
  for (Difference& difference : of_layer) difference = {};
  int agreeing = 0, rows = 0;
  for (std::uint64_t sample = 0; sample < inputs.count; ++sample) {
    copy(inputs, sample, x);
    static_cast<void>(attune::infer<Whole>(attune::kInFlash<WholeNames, File>, x, y, scratch));
    compare(y, outputs, sample, of_output);
    const auto* const expected = static_cast<const float*>(outputs.data) + sample * Whole::Output::size;
    for (int row = 0; row < Whole::Output::rows; ++row, ++rows) {
      int best = 0, right = 0;
      const int first = row * Whole::Output::cols;
      for (int i = 1; i < Whole::Output::cols; ++i) {
        if (y.values[first + i] > y.values[first + best]) best = i;
        if (expected[first + i] > expected[first + right]) right = i;
      }
      agreeing += best == right;
    }
    if constexpr (std::is_same_v<Layers::Input, Whole::Input>) {
      run_from<File, 0>(x, sample);
    } else {  // an encoder, whose source is the first part of the input
      static Layers::Input source;
      std::memcpy(&source, &x, sizeof source);
      run_from<File, 0>(source, sample);
    }
  }

  int first = -1;
  for (int i = Layers::kLayers - 1; i >= 0; --i) {
    port::print("layer ", kPaths[i], " max_difference=", port::fixed(of_layer[i].largest, 9), " of ",
                port::fixed(of_layer[i].magnitude, 6), '\n');
    if (!of_layer[i].within(tolerance)) first = i;
  }
  attune::MemoryReport inference = attune::inference_memory<Whole>();
  inference.parameters = 0;  // which are in flash
  print_plan("inference", inference);
  const bool right = first < 0 && of_output.within(tolerance);
  port::print("result target=", port::name(), " max_difference=", port::fixed(of_output.largest, 9),
              " first_different_layer=", first < 0 ? (right ? "-" : kRest) : kPaths[first],
              " agreeing=", agreeing, '/', rows, " ram_bytes=", inference.total(),
              " file_bytes=", File::kSize, " precision=", precision, '\n');
  return right;
}

}  // namespace
