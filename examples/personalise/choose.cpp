// Chooses settings of learning without labels, and of replay, by speakers other than the one who scores them
// (nested cross-validation). For each speaker S, every other one, T, is new to a base that has heard neither
// S nor T. The settings with the largest mean over T of the new speaker's and the others' accuracy are scored
// once: S is new to a base of all the others. Weights are in 8 bits, as on a device.
//
//   --seed N, --data DIR   as base.cpp
#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include <arguments.hpp>

#include "../base_files.hpp"
#include "../terminal.hpp"
#include "base_training.hpp"
#include "training.hpp"

namespace {

using namespace personalise;

Whole::ParametersOf<attune::Int8Weights, attune::Tensor> base;
constexpr auto kFront = attune::references_to<Front>(base.layer<0>());

struct Accuracies {
  double own = 0, others = 0;

  Accuracies& operator+=(const Accuracies& more) {
    own += more.own;
    others += more.others;
    return *this;
  }
};
double accuracy(const auto& recordings, const auto& classify) {
  attune::Evaluation<> evaluation;
  Logits logits;
  for (const auto& recording : recordings) {
    const int digit = classify(recording, logits);
    static_cast<void>(evaluation.add(logits, digit));
  }
  return static_cast<double>(evaluation.accuracy());
}

/// A new speaker, and a base that has not heard them.
struct Device {
  using FeaturesOf = std::vector<std::pair<Features, int>>;  // and the digit

  std::vector<Recording> all;
  std::vector<HeadInClosedForm> factory;
  std::vector<PackedFeatures> probe;
  FeaturesOf own_test, others_test;

  [[nodiscard]] Recordings with(Fault fault) const { return {.all = all, .fault = fault}; }
};
Features features_of(const Recording& recording) {
  static Front::InferenceScratch scratch;
  static Example example;
  Features features;
  load(recording, example);
  attune::infer<Front>(kFront, example.tokens, features, scratch, example.padding);
  return features;
}

/// Trains `base` on all of a corpus but `speaker`, of whom the devices then are; nullptr where that fails.
std::unique_ptr<Base::Parameters> train(const Corpus& corpus, int speaker, int seed) {
  auto trained = train_base(corpus.for_base(speaker), static_cast<std::uint64_t>(seed), [](int, float) {});
  const auto whole = std::make_unique<Whole::Parameters>();
  if (trained == nullptr) return trained;
  attune::copy_parameters(*trained, *whole);
  if (attune::quantize(*whole, base) != attune::Status::kOk) return nullptr;
  return trained;
}
Device device_of(const Corpus& corpus, int speaker, const Base::Parameters& trained) {
  Device device;
  device.all = corpus.for_device(speaker);
  device.factory = factory_of(trained, corpus.for_base(speaker));
  device.probe = probe_of(trained, device.all);
  for (const Recording& recording : device.all) {
    if (recording.use == Use::kOwnTest) device.own_test.emplace_back(features_of(recording), recording.digit);
    if (recording.use == Use::kOthersTest)
      device.others_test.emplace_back(features_of(recording), recording.digit);
  }
  return device;
}

// A head in closed form.

using HeadOptions = HeadWithoutLabels::Options;
constexpr attune::UnlabeledGuard<> kNoGuard{
    .least_clear = 0, .most_clear = 1, .largest_imbalance = 1, .least_agreement = 0, .largest_drop = 1};

Accuracies accuracies(const Device& device, const Head::Parameters& head) {
  const auto classify = [&head](const auto& recording, Logits& logits) {
    Head::InferenceScratch scratch;
    Head::forward(head, recording.first, logits, scratch);
    return recording.second;
  };
  return {accuracy(device.own_test, classify), accuracy(device.others_test, classify)};
}

/// The takes of a device, as features in 8 bits.
struct Takes {
  const Device& device;
  PackedFeatures features[kNumTakes];
  int known[kNumTakes];

  Takes(const Device& of, Fault fault) : device(of) {
    const Recordings recordings = device.with(fault);
    for (int i = 0; i < kNumTakes; ++i) {
      features[i].pack(features_of(recordings.take(i)));
      known[i] = recordings.known_label(i);
    }
  }
  attune::UnlabeledResult<> learn(const HeadOptions& options, Head::Parameters& head) const {
    static HeadWithoutLabels learning;
    const auto take = [this](int i, Features& to) {
      features[i].unpack(to);
      return attune::Status::kOk;
    };
    const auto probe = [this](const Head::Parameters& of) {
      attune::Evaluation<> evaluation;
      Features features_of_row;
      Logits logits;
      Head::InferenceScratch scratch;
      for (const PackedFeatures& row : device.probe) {
        row.unpack(features_of_row);
        Head::forward(of, features_of_row, logits, scratch);
        static_cast<void>(evaluation.add(logits, row.digit));
      }
      return evaluation;
    };
    return learning.learn(base.layer<1>(), device.factory[0], kNumTakes, take, probe, head, known, options);
  }
};

// Candidates of a method.

constexpr float kPulls[] = {1.0f, 0.9f, 0.8f, 0.6f};
constexpr int kRounds[] = {1, 2, 4, 8};
constexpr float kRates[] = {0.5e-3f, 1e-3f, 2e-3f, 4e-3f, 8e-3f, 16e-3f};
constexpr int kStepsOf[] = {20, 40, 60};
constexpr float kRatesWithLabels[] = {1e-2f, 2e-2f};
constexpr int kNone[] = {0}, kReplayed[] = {5, 10, 20};  // in a step

struct Candidates {
  const char* name;
  std::vector<Fault> chosen_with, scored_with;  // labels of the takes
  std::vector<std::string> settings;
  // Accuracies of each candidate, or of number `only` alone.
  std::function<std::vector<Accuracies>(const Device&, Fault, int only)> run;
};

std::vector<Accuracies> heads(const Device& device, Fault fault, int only,
                              const attune::UnlabeledGuard<>& guard) {
  const Takes takes(device, fault);
  std::vector<Accuracies> results;
  for (const float pull : kPulls) {
    for (const int rounds : kRounds) {
      Head::Parameters head;
      const bool wanted = only < 0 || only == static_cast<int>(results.size());
      const HeadOptions options{.balance = {.pull = pull}, .guard = guard, .rounds = rounds};
      results.push_back(wanted && takes.learn(options, head).ok() ? accuracies(device, head) : Accuracies{});
    }
  }
  return results;
}

template <Method method>
auto fresh_learner() {  // with nothing in its replay memory
  auto learner = std::make_unique<Learner<method, base, kFront>>();
  learner->start();
  return learner;
}
Accuracies accuracies_of_learner(const Device& device, auto& learner) {
  static Example example;
  const auto classify = [&learner](const Recording& recording, Logits& logits) {
    load(recording, example);
    static_cast<void>(learner.classify(example, logits));
    return static_cast<int>(recording.digit);
  };
  const Recordings recordings = device.with(Fault::kNone);
  return {accuracy(recordings.of(Use::kOwnTest), classify),
          accuracy(recordings.of(Use::kOthersTest), classify)};
}
/// Rates to try without labels.
std::span<const float> rates(Method method) {
  return std::span(kRates).subspan(method == Method::kBiasesUnlabeled ? 0 : 3, 3);
}
template <Method method>
std::vector<Accuracies> by_gradients(const Device& device, Fault fault, int only) {
  constexpr int kStops = std::size(kStepsOf);
  std::vector<Accuracies> results;
  for (const float rate : rates(method)) {
    const int first = static_cast<int>(results.size());
    const auto learner = fresh_learner<method>();
    Recordings recordings = device.with(fault);
    recordings.rate_times = rate / learning_rate(method);
    int step = 0;
    for (int stop = 0; stop < kStops; ++stop) {
      const bool wanted = only < 0 || only == first + stop;
      while (wanted && step < kStepsOf[stop]) static_cast<void>(learner->step(recordings, step++));
      results.push_back(wanted ? accuracies_of_learner(device, *learner) : Accuracies{});
    }
  }
  return results;
}
std::vector<Accuracies> with_replay(const Device& device, Fault fault, int only,
                                    std::span<const int> counts) {
  std::vector<Accuracies> results;
  for (const float rate : kRatesWithLabels) {
    for (const int replayed : counts) {
      const bool wanted = only < 0 || only == static_cast<int>(results.size());
      const auto learner = fresh_learner<Method::kLoraReplayed>();
      Recordings recordings = device.with(fault);
      recordings.rate_times = rate / learning_rate(Method::kLoraReplayed);
      recordings.replayed = replayed;
      if (wanted) static_cast<void>(learner->begin(recordings));
      for (int step = 0; wanted && step < kSteps; ++step) static_cast<void>(learner->step(recordings, step));
      results.push_back(wanted ? accuracies_of_learner(device, *learner) : Accuracies{});
    }
  }
  return results;
}

// The guard's bounds: halfway between takes to learn from and others.

constexpr Fault kUnlabeledTakes[] = {Fault::kUnlabeled,       Fault::kUnlabeledSilence,
                                     Fault::kUnlabeledNoise,  Fault::kUnlabeledOneDigit,
                                     Fault::kUnlabeledSkewed, Fault::kUnlabeledWrongSpeaker};

struct Range {
  float least = 1, most = 0;
  void add(float value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};
struct GuardChoice {
  Range clear, unclear, too_clear, imbalance, imbalanced;

  void look(const Device& device) {
    for (const Fault fault : kUnlabeledTakes) {
      Head::Parameters head;
      const auto result = Takes(device, fault).learn({.guard = kNoGuard, .rounds = 1}, head);
      switch (fault) {
        case Fault::kUnlabeled:
          clear.add(result.clear);
          imbalance.add(result.imbalance);
          break;
        case Fault::kUnlabeledSilence:
        case Fault::kUnlabeledNoise:
          unclear.add(result.clear);
          break;
        case Fault::kUnlabeledWrongSpeaker:
          too_clear.add(result.clear);
          break;
        default:
          imbalanced.add(result.imbalance);
      }
    }
  }
  [[nodiscard]] attune::UnlabeledGuard<> bounds() const {
    return {.least_clear = (unclear.most + clear.least) / 2,
            .most_clear = (clear.most + too_clear.least) / 2,
            .largest_imbalance = (imbalance.most + imbalanced.least) / 2};
  }
};

std::string decimal(double value, int digits = 2) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string percent(double value) { return decimal(100 * value, 1); }

std::size_t best(const std::vector<Accuracies>& sums) {
  const auto worse = [](const Accuracies& a, const Accuracies& b) {
    return a.own + a.others < b.own + b.others;
  };
  return static_cast<std::size_t>(std::max_element(sums.begin(), sums.end(), worse) - sums.begin());
}
void add(std::vector<Accuracies>& sums, const std::vector<Accuracies>& more) {
  sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
}

/// As --labels has it.
const char* name_of(Fault fault) {
  static constexpr const char* kNames[] = {
      "clean",      "noisy30",        "noisy60",    "silence",      "wrong_speaker",
      "none",       "few1",           "few2",       "none_silence", "none_wrong_speaker",
      "none_noise", "none_one_digit", "none_skewed"};
  return kNames[static_cast<int>(fault)];
}

/// The methods, heads with a guard whose bounds are chosen beside.
std::vector<Candidates> methods_of(const attune::UnlabeledGuard<>& guard) {
  const std::vector<Fault> none{Fault::kUnlabeled},
      few{Fault::kUnlabeled, Fault::kOneLabel, Fault::kTwoLabels};
  const std::vector<Fault> clean{Fault::kNone};
  const auto rate_of = [](float rate) { return "rate " + decimal(static_cast<double>(rate), 4); };
  const auto by_rate_and_steps = [&](Method method) {
    std::vector<std::string> settings;
    for (const float rate : rates(method)) {
      for (const int steps : kStepsOf)
        settings.push_back(rate_of(rate) + ", " + std::to_string(steps) + " steps");
    }
    return settings;
  };
  std::vector<std::string> of_heads, of_lora, of_replay;
  for (const float pull : kPulls) {
    for (const int rounds : kRounds)
      of_heads.push_back("pull " + decimal(static_cast<double>(pull), 1) + ", " + std::to_string(rounds) +
                         " rounds");
  }
  for (const float rate : kRatesWithLabels) {
    of_lora.push_back(rate_of(rate));
    for (const int replayed : kReplayed)
      of_replay.push_back(rate_of(rate) + ", " + std::to_string(replayed) + " replayed");
  }
  return {
      {"closed_form", few, few, of_heads,
       [&guard](const Device& device, Fault fault, int only) { return heads(device, fault, only, guard); }},
      {"biases_and_norms", none, few, by_rate_and_steps(Method::kBiasesUnlabeled),
       by_gradients<Method::kBiasesUnlabeled>},
      {"lora", none, few, by_rate_and_steps(Method::kLoraUnlabeled), by_gradients<Method::kLoraUnlabeled>},
      {"lora", clean, clean, of_lora,
       [](const Device& device, Fault fault, int only) { return with_replay(device, fault, only, kNone); }},
      {"lora_replayed", clean, clean, of_replay,
       [](const Device& device, Fault fault, int only) {
         return with_replay(device, fault, only, kReplayed);
       }},
  };
}

/// What one speaker, who is scored, learns from the others.
struct Choice {
  std::vector<std::vector<Accuracies>> sums;  // of each method's candidates
  GuardChoice guard;

  void look(const Device& device, const std::vector<Candidates>& methods) {
    sums.resize(methods.size());
    guard.look(device);
    for (std::size_t m = 0; m < methods.size(); ++m) {
      for (const Fault fault : methods[m].chosen_with) add(sums[m], methods[m].run(device, fault, -1));
    }
  }
};

void print_guard(const Device& device, const attune::UnlabeledGuard<>& guard) {
  const auto share = [](float value) { return decimal(static_cast<double>(value)); };
  port::print("  a guard with bounds ", share(guard.least_clear).c_str(), ", ",
              share(guard.most_clear).c_str(), ", ", share(guard.largest_imbalance).c_str(), " accepts");
  for (const Fault fault : kUnlabeledTakes) {
    Head::Parameters head;
    const auto result = Takes(device, fault).learn({.guard = guard}, head);
    if (result.rounds > 0) port::print(" ", name_of(fault));
  }
  port::print("\n");
}
void print_scores(const Candidates& method, const std::vector<Accuracies>& scores, double count) {
  for (std::size_t i = 0; i < scores.size(); ++i) {
    port::print(i > 0 ? "; " : " ", name_of(method.scored_with[i]), " ",
                percent(scores[i].own / count).c_str(), ", ", percent(scores[i].others / count).c_str());
  }
}

}  // namespace

int main() {
  const std::string folder = base_files::word_after("--data");
  const int seed = std::max(port::argument("--seed", 1), 1);
  Corpus corpus;
  if (folder.empty()) {
    corpus = synthetic_voices();
  } else if (!read_folder(folder, corpus)) {
    port::print("personalise cannot read the recordings in ", folder.c_str(), '\n');
    return 2;
  }
  attune::UnlabeledGuard<> guard = kNoGuard;
  const std::vector<Candidates> methods = methods_of(guard);
  Choice choices[kSpeakers];
  for (int a = 0; a < kSpeakers; ++a) {
    for (int b = a + 1; b < kSpeakers; ++b) {
      const auto trained = train(corpus.without(a), b, seed);
      if (trained == nullptr) return 1;
      choices[a].look(device_of(corpus.without(a), b, *trained), methods);
      choices[b].look(device_of(corpus.without(b), a, *trained), methods);
      port::print("tried with speakers ", a, " and ", b, '\n');
    }
  }
  std::vector<std::vector<Accuracies>> totals(methods.size()), of_all(methods.size());
  for (int speaker = 0; speaker < kSpeakers; ++speaker) {
    const auto trained = train(corpus, speaker, seed);
    if (trained == nullptr) return 1;
    const Device device = device_of(corpus, speaker, *trained);
    guard = choices[speaker].guard.bounds();
    port::print("speaker ", speaker, '\n');
    print_guard(device, guard);
    for (std::size_t m = 0; m < methods.size(); ++m) {
      const auto& sums = choices[speaker].sums[m];
      const std::size_t chosen = best(sums);
      std::vector<Accuracies> scores;
      for (const Fault fault : methods[m].scored_with) {
        scores.push_back(methods[m].run(device, fault, static_cast<int>(chosen))[chosen]);
      }
      port::print("  ", methods[m].name, ", ", methods[m].settings[chosen].c_str(), ":");
      print_scores(methods[m], scores, 1);
      port::print("\n");
      add(totals[m], scores);
      add(of_all[m], sums);
    }
  }
  for (std::size_t m = 0; m < methods.size(); ++m) {
    port::print("mean of six, ", methods[m].name, ":");
    print_scores(methods[m], totals[m], kSpeakers);
    port::print("; best for all: ", methods[m].settings[best(of_all[m])].c_str(), '\n');
  }
  return 0;
}
