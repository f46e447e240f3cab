// Trainings on the takes of one user, and what is recognized afterwards, for `python3 -m attune_torch fit
// --data` (fit_data.py): many candidates in a program of a PC, one of them in an image for a board.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include <arguments.hpp>
#include <console.hpp>
#include <port.hpp>

#include <attune/attune.hpp>
#include <attune_torch/trainings.hpp>

namespace attune_torch {

using Indices = std::span<const std::int32_t>;

/// What a device meets: takes of a new user, from which it learns in this order, again and again; others of
/// theirs, and of everybody else, to be recognized.
struct Run {
  std::uint64_t seed = 0;
  Indices takes, own, others;
};

/// All takes of a file: x [count, …] of floats or ids; y [count], their classes, or −1 where the device has
/// no label; y_test [count], the classes to be recognized; by option length [count], their tokens in use; and
/// the runs behind each other, each as its seed, three numbers of indices, and the indices.
struct Takes {
  const char* x = nullptr;
  const std::int32_t *y = nullptr, *y_test = nullptr, *length = nullptr;
  Indices runs;

  template <class Input>
  void load(std::int32_t take, Input& input) const {
    std::memcpy(&input, x + static_cast<std::size_t>(take) * sizeof input, sizeof input);
  }
  /// The mask of a take: its length, if the mask is one.
  template <class Mask>
  [[nodiscard]] Mask mask(std::int32_t take) const {
    Mask mask{};
    if constexpr (attune::kMasks<Mask>) static_cast<void>(mask.set_length(length[take]));  // as checked
    return mask;
  }
  [[nodiscard]] Run run(int number) const {
    Indices rest = runs;
    const auto take = [&rest](std::size_t count) {
      const Indices taken = rest.first(count);
      rest = rest.subspan(count);
      return taken;
    };
    for (;; --number) {
      const Indices head = take(4);
      const auto count = [&head](std::size_t i) { return static_cast<std::size_t>(head[i]); };
      const Run run{static_cast<std::uint64_t>(head[0]), take(count(1)), take(count(2)), take(count(3))};
      if (number == 0) return run;
    }
  }
};
/// The takes that attune_add_model put among the constants.
template <class File>
Takes takes_of() {
  const std::string_view file = attune::bytes_of<File>();
  const std::string_view text{File::kHeader, sizeof File::kHeader - 1};
  attune::SafetensorsHeader header(text, file.size() - 8 - text.size());
  attune::SafetensorsEntry entry;
  Takes takes;
  while (header.next(entry)) {
    const char* const data = file.data() + 8 + text.size() + entry.begin;
    const void* const words = data;
    if (entry.name == "x") takes.x = data;
    if (entry.name == "y") takes.y = static_cast<const std::int32_t*>(words);
    if (entry.name == "y_test") takes.y_test = static_cast<const std::int32_t*>(words);
    if (entry.name == "length") takes.length = static_cast<const std::int32_t*>(words);
    if (entry.name == "runs") takes.runs = {static_cast<const std::int32_t*>(words), entry.bytes() / 4};
  }
  return takes;
}

/// What is recognized after a training, and the hash of its parameters.
struct Trained {
  attune::Status status = attune::Status::kOk;
  int own = 0, others = 0;
  std::uint32_t hash = 0;
  attune::Objection objection = attune::Objection::kNone;
};
/// Steps of a training, takes of each, and its ridge or learning rate.
struct Setting {
  int steps = 0, batch = 1;
  float rate = 0;
};
using Training = Trained (*)(const Takes&, const Run&, const Setting&);

/// Trains on the run's takes with a label. A trainer of larger batches ends with the bits of one of these.
template <class Mask, class Trainer, class Input>
attune::Status learn(Trainer& trainer, const Takes& takes, const Run& run, Input& input,
                     const Setting& setting) {
  const auto options = options_with<Trainer>(setting.rate);
  std::size_t next = 0;
  for (int step = 0; step < setting.steps; ++step) {
    for (int i = 0; i < setting.batch; ++i, ++next) {
      while (takes.y[run.takes[next % run.takes.size()]] < 0) ++next;
      const std::int32_t take = run.takes[next % run.takes.size()];
      takes.load(take, input);
      const std::array<int, 1> label{static_cast<int>(takes.y[take])};
      const Mask mask = takes.mask<Mask>(take);
      attune::Status status;
      if constexpr (requires { trainer.update(options); }) {
        status = trainer.accumulate(input, label, mask).status;
      } else {
        status = trainer.step(input, label, options, attune::NoClipping{}, mask).status;
      }
      if (status != attune::Status::kOk) return status;
    }
    if constexpr (requires { trainer.update_incomplete(options); }) {
      if (const auto updated = trainer.update_incomplete(options); !updated.ok()) return updated.status;
    } else if constexpr (requires { trainer.update(options); }) {
      if (const auto updated = trainer.update(options); !updated.ok()) return updated.status;
    }
  }
  return attune::Status::kOk;
}
/// Trains on all of the run's takes. Sets the objection of a guard.
template <class Mask, LearnsTakes Trainer, class Input>
attune::Status learn_takes(Trainer& trainer, const Takes& takes, const Run& run, Input& input,
                           const Setting& setting, attune::Objection& objection) {
  const auto options = options_with<Trainer>(setting.rate);
  const auto take = [&](int i, const auto& learn) {
    const std::int32_t number = run.takes[static_cast<std::size_t>(i)];
    takes.load(number, input);
    return learn(input, static_cast<int>(takes.y[number]), takes.mask<Mask>(number));
  };
  for (int step = 0; step < setting.steps; ++step) {
    const auto result = trainer.learn(static_cast<int>(run.takes.size()), take, options);
    if (!result.ok()) return result.status;
    if constexpr (requires { result.objection; }) objection = result.objection;
  }
  return attune::Status::kOk;
}

/// One candidate's training and test. `start(trainer, seed)` begins it at the base. `Mask`: a SequenceLength
/// if takes have lengths, or NoMask.
template <class Model, class Trainer, auto start, class Mask>
Trained train(const Takes& takes, const Run& run, const Setting& setting) {
  static Trainer trainer;
  static typename Model::Input input;
  static typename Model::Output output;
  Trained result;
  start(trainer, run.seed);
  if constexpr (LearnsTakes<Trainer>) {
    result.status = learn_takes<Mask>(trainer, takes, run, input, setting, result.objection);
  } else {
    static_assert(std::is_same_v<typename Trainer::TargetView, attune::Ids<1>>,
                  "fit --data: y has one class a take; give --loss a loss of classes");
    result.status = learn<Mask>(trainer, takes, run, input, setting);
  }
  const auto recognized = [&](Indices tested) {
    int right = 0;
    for (const std::int32_t take : tested) {
      takes.load(take, input);
      if (trainer.predict(input, output, takes.mask<Mask>(take)) != attune::Status::kOk) continue;
      int best = 0;
      for (int i = 1; i < Model::Output::cols; ++i) best = output(0, i) > output(0, best) ? i : best;
      right += best == takes.y_test[take];
    }
    return right;
  };
  if (result.status != attune::Status::kOk) return result;
  result.own = recognized(run.own);
  result.others = recognized(run.others);
  result.hash = attune::hash_bits(trainer.parameters());
  return result;
}

/// The program: --candidate N --steps N --batch N --rate MILLIONTHS, for runs from --run N on, as many as
/// --runs.
template <class File>
int train_candidates(std::span<const Training> trainings) {
  const Takes takes = takes_of<File>();
  const auto candidate = static_cast<std::size_t>(port::argument("--candidate", 0));
  const int first = port::argument("--run", 0);
  // The rate is rounded once, as the decimal number is.
  const Setting setting{port::argument("--steps", 0), port::argument("--batch", 1),
                        static_cast<float>(port::argument("--rate", 0)) / 1e6f};
  for (int run = first; run < first + port::argument("--runs", 1); ++run) {
    const Trained trained = trainings[candidate](takes, takes.run(run), setting);
    const bool ok = trained.status == attune::Status::kOk;
    port::print("trained ", run, ' ', trained.own, ' ', trained.others, ' ', port::hex8(trained.hash), ' ',
                static_cast<int>(trained.objection), ' ', ok ? "ok" : attune::message(trained.status), '\n');
  }
  return 0;
}

}  // namespace attune_torch
