// Six devices learn to recognize spoken digits together, without sending anybody's recordings anywhere:
// Federated Averaging (McMahan et al., 2017). Each device has one speaker. In a round it starts from the
// fleet's parameters, trains on its own recordings, and sends what it has learned as a .safetensors file; the
// mean of the files, weighted by their examples, is the fleet's. Simulated on a PC, device after device.
//
//   --rounds N    without it 12
//   --seed N      other initial parameters and another order; without it 1
//   --data DIR    people's recordings (examples/README.md, "A new voice"); without it voices that are made up
//   --out DIR     the files of the last round: device_0.safetensors, …, and fleet.safetensors
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <arguments.hpp>

#include "../base_files.hpp"
#include "../personalise/corpus.hpp"
#include "../personalise/model.hpp"
#include "../terminal.hpp"

namespace {

using namespace personalise;
using base_files::word_after, base_files::write;

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1}>;
constexpr int kBatch = 10, kRounds = 12;
using Trainer = attune::Trainer<Base, Loss, attune::AdamW, kBatch>;
constexpr attune::AdamW::Options kOptions{.learning_rate = 2e-3f, .weight_decay = 0.01f};

/// How many takes of each digit a device has: some have heard their speaker more often than others.
constexpr int kTakes[kSpeakers] = {45, 36, 27, 18, 9, 5};

struct Device {
  std::vector<const Recording*> takes, tests;
  std::string file;  // what it sends
};

attune::Status pack(const Base::Parameters& parameters, std::string& file) {
  file.clear();
  return attune::write_safetensors<Names>(
      parameters, [&file](const char* bytes, std::size_t count) { file.append(bytes, count); });
}

std::vector<Device> devices_of(const Corpus& corpus) {
  std::vector<Device> devices(kSpeakers);
  for (const Corpus::Entry& entry : corpus.entries) {
    Device& device = devices[entry.recording.speaker];
    if (entry.index < kTestedRecordings) {
      device.tests.push_back(&entry.recording);
    } else if (entry.index < kTestedRecordings + kTakes[entry.recording.speaker]) {
      device.takes.push_back(&entry.recording);
    }
  }
  return devices;
}

class Simulation {
 public:
  explicit Simulation(const Corpus& corpus) : devices_(devices_of(corpus)) {}

  [[nodiscard]] std::vector<Device>& devices() { return devices_; }
  [[nodiscard]] const Base::Parameters& parameters() const { return trainer_->parameters(); }

  void initialize(std::uint64_t seed) {
    trainer_->initialize(attune::XavierUniform{}, attune::Rng(2 * seed - 1));
  }
  attune::Status load(std::string_view file) {
    return trainer_->load(
        [&file](Base::Parameters& parameters) { return attune::read_safetensors<Names>(file, parameters); });
  }
  /// One epoch of what a device has, in a random order, from the parameters that there are.
  attune::Status train(const Device& device, attune::Rng& rng) {
    std::vector<const Recording*> order = device.takes;
    for (std::size_t left = order.size(); left > 1; --left)
      std::swap(order[left - 1], order[rng.next() % left]);
    for (std::size_t i = 0; i < order.size(); ++i) {
      personalise::load(*order[i], example_);
      const auto added = trainer_->accumulate(example_.tokens, example_.digit, example_.padding);
      if (added.status != attune::Status::kOk) return added.status;
      if ((i + 1) % kBatch != 0 && i + 1 < order.size()) continue;
      const auto result = trainer_->update_incomplete(kOptions);
      if (!result.ok()) return result.status;
    }
    return attune::Status::kOk;
  }
  [[nodiscard]] float accuracy(const std::vector<const Recording*>& recordings) {
    int correct = 0;
    Logits logits;
    for (const Recording* recording : recordings) {
      personalise::load(*recording, example_);
      if (trainer_->predict(example_.tokens, logits, example_.padding) != attune::Status::kOk) continue;
      correct += std::max_element(logits.values, logits.values + kDigits) - logits.values == recording->digit;
    }
    return static_cast<float>(correct) / static_cast<float>(recordings.size());
  }
  /// Mean over all speakers' tests.
  [[nodiscard]] float accuracy_of_all() {
    float sum = 0;
    for (const Device& device : devices_) sum += accuracy(device.tests);
    return sum / kSpeakers;
  }

 private:
  std::vector<Device> devices_;
  std::unique_ptr<Trainer> trainer_ = std::make_unique<Trainer>();
  Example example_;
};

int refuse(const char* what, attune::Status status) {
  port::print(what, ": ", attune::message(status), '\n');
  return 1;
}

}  // namespace

int main() {
  const int rounds = std::max(port::argument("--rounds", kRounds), 1);
  const auto seed = static_cast<std::uint64_t>(std::max(port::argument("--seed", 1), 1));
  const std::string folder = word_after("--data"), out = word_after("--out");
  Corpus corpus;
  if (folder.empty()) {
    corpus = synthetic_voices();
  } else if (!read_folder(folder, corpus)) {
    port::print("fleet cannot read the recordings in ", folder.c_str(), '\n');
    return 2;
  }
  const auto simulation = std::make_unique<Simulation>(corpus);
  auto& devices = simulation->devices();
  port::print("a fleet of ", kSpeakers, " devices, each with the voice of one speaker",
              folder.empty() ? ", made up" : "", "; ", rounds, " rounds of one epoch\n");

  simulation->initialize(seed);
  std::string fleet;
  if (const auto status = pack(simulation->parameters(), fleet); status != attune::Status::kOk)
    return refuse("the first parameters", status);
  const std::string at_first = fleet;
  const std::uint64_t start = port::microseconds();
  std::vector<attune::Rng> rngs;
  for (int device = 0; device < kSpeakers; ++device)
    rngs.emplace_back(1000 * seed + static_cast<std::uint64_t>(device));
  const auto alone_rngs = rngs;
  port::print("  round   the fleet's model, mean of all speakers\n");
  for (int round = 1; round <= rounds; ++round) {
    std::vector<attune::TrainedFile> files;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      attune::Status status = simulation->load(fleet);
      if (status == attune::Status::kOk) status = simulation->train(devices[i], rngs[i]);
      if (status == attune::Status::kOk) status = pack(simulation->parameters(), devices[i].file);
      if (status != attune::Status::kOk) return refuse("a device", status);
      files.push_back({devices[i].file, devices[i].takes.size()});
    }
    fleet.clear();
    const auto averaged = attune::average_safetensors(
        files, [&fleet](const char* bytes, std::size_t count) { fleet.append(bytes, count); });
    if (averaged.status != attune::Status::kOk) return refuse("a file", averaged.status);
    if (const auto status = simulation->load(fleet); status != attune::Status::kOk)
      return refuse("the mean", status);
    port::print("  ", round, "       ", port::fixed(100 * simulation->accuracy_of_all(), 1), " %\n");
  }
  if (!out.empty()) {
    bool written = write(out + "/fleet.safetensors", fleet);
    for (std::size_t i = 0; i < devices.size(); ++i)
      written = written &&
                write(std::string(out).append("/device_").append(std::to_string(i)).append(".safetensors"),
                      devices[i].file);
    if (!written) {
      port::print("cannot write to ", out.c_str(), '\n');
      return 1;
    }
  }

  // As many epochs of what it has itself, and of nobody else's.
  const auto row = [](std::initializer_list<std::string> cells) {
    std::string line(" ");
    for (const std::string& cell : cells)
      line.append(14 - std::min<std::size_t>(14, cell.size()), ' ').append(cell);
    port::print(line.c_str(), '\n');
  };
  const auto percent = [](float accuracy) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f %%", static_cast<double>(100 * accuracy));
    return std::string(text);
  };
  row({"speaker", "examples", "at first", "alone: own", "alone: all", "fleet: own"});
  const auto simulated = [&](const std::string& file) {
    return simulation->load(file) == attune::Status::kOk;
  };
  const std::uint32_t hash = attune::hash_bits(simulation->parameters());
  float at_first_all = 0, alone_own = 0, alone_all = 0, fleet_own = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!simulated(fleet)) return 1;
    const float with_fleet = simulation->accuracy(devices[i].tests);
    if (!simulated(at_first)) return 1;
    const float before = simulation->accuracy(devices[i].tests);
    attune::Rng rng = alone_rngs[i];
    for (int round = 0; round < rounds; ++round) {
      if (simulation->train(devices[i], rng) != attune::Status::kOk) return 1;
    }
    const float own = simulation->accuracy(devices[i].tests), all = simulation->accuracy_of_all();
    row({std::to_string(i), std::to_string(devices[i].takes.size()), percent(before), percent(own),
         percent(all), percent(with_fleet)});
    at_first_all += before / kSpeakers, alone_own += own / kSpeakers, alone_all += all / kSpeakers,
        fleet_own += with_fleet / kSpeakers;
  }
  row({"all", "", percent(at_first_all), percent(alone_own), percent(alone_all), percent(fleet_own)});
  const auto hundredths = static_cast<std::uint32_t>((port::microseconds() - start) / 10'000);
  port::print("result example=fleet target=", port::name(), " rounds=", rounds,
              " at_first=", port::fixed(at_first_all, 4), " alone_own=", port::fixed(alone_own, 4),
              " alone_all=", port::fixed(alone_all, 4), " fleet=", port::fixed(fleet_own, 4),
              " parameters_hash=", port::hex8(hash), " seconds=", hundredths / 100, '.',
              hundredths % 100 / 10, hundredths % 10, '\n');
  return 0;
}
