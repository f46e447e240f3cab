// Learning with a journal, from which a PC reproduces it (replay.hpp). Journal and training state are in
// memory that behaves as flash, and the power fails within entries of the one and saves of the other.
#pragma once

#include <algorithm>

#include <attune/attune.hpp>

#include <console.hpp>
#include <personalise_base.hpp>
#include <port.hpp>

#include "../flash_rows.hpp"
#include "../monitor/nonvolatile.hpp"
#include "learner.hpp"

namespace personalise {

inline constexpr int kSaveEvery = 5;  // steps

/// The operation of flash, from 1, at which the power fails; 0: it does not.
inline int failing_operation = 0;
inline void count_operation() {
  if (failing_operation == 1) port::reset();
  if (failing_operation > 1) --failing_operation;
}
template <std::uint32_t pages>
struct FailingFlash : monitor::Flash {
  static constexpr std::uint32_t kPages = pages;
  using monitor::Flash::Flash;

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    count_operation();
    return monitor::Flash::read(at, to, bytes);
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    count_operation();
    return monitor::Flash::program(at, from, bytes);
  }
  attune::Status erase(std::uint32_t at) {
    count_operation();
    return monitor::Flash::erase(at);
  }
};

/// Of a Learner with a trainer.
template <class Learner>
class JournaledLearning {
  using Trainer = typename Learner::Trainer;
  using State = typename Trainer::State;
  using LogFlash = FailingFlash<64>;
  using StateFlash = FailingFlash<2 * ((sizeof(State) + 64) / monitor::kPageSize + 1)>;
  static constexpr std::size_t kLogBytes = LogFlash::kPages * monitor::kPageSize;

 public:
  /// Bytes that outlive a reset.
  static constexpr std::size_t kNonvolatile = kLogBytes + StateFlash::kPages * monitor::kPageSize;

  JournaledLearning(Learner& learner, unsigned char* nonvolatile)
      : learner_(learner), log_flash_(nonvolatile), state_flash_(nonvolatile + kLogBytes) {
    if (port::reset_count() == 0) std::fill_n(nonvolatile, kNonvolatile, monitor::Flash::kErased);
  }

  /// Trains to the end, over as many power failures; call(step, train) calls train() for a step.
  Status learn(const Recordings& recordings, int steps, int resets, const auto& call) {
    attune::FlashJournal<LogFlash> log(log_flash_);
    attune::FlashStore<StateFlash, State> store(state_flash_);
    if (const Status status = log.open(); status != Status::kOk) return status;
    Trainer& trainer = learner_.trainer();
    attune::TrainingJournal journal(trainer, log,
                                    {.hash_every = 10, .base_crc = flash_crc<personalise_base>()});
    if (trainer.resume([&](State& state) { return store.load(state); }) == Status::kOk) {
      journal.resumed();
    } else {
      learner_.start();
      journal.started();
    }
    const int reset = static_cast<int>(port::reset_count());
    for (int step = static_cast<int>(trainer.state().steps); step < steps; ++step) {
      const bool fails = reset < resets && step >= (reset + 1) * steps / (resets + 1);
      if (fails && reset % 2 == 0) failing_operation = reset * 37 % 60 + 1;  // within an entry
      const Status status = call(step, [&] { return learner_.step(recordings, step, journal); });
      if (status != Status::kOk) return status;
      if ((step + 1) % kSaveEvery != 0 && step + 1 != steps) continue;
      if (fails) failing_operation = reset * 977 % 1900 + 1;  // within a save
      journal.saving();
      if (const Status saved = store.save(trainer.state()); saved != Status::kOk) return saved;
    }
    journal.write_hash();
    return journal.status();
  }
  /// Prints the journal as lines of text, for cmake/hex_lines.py.
  Status print_journal() {
    attune::FlashJournal<LogFlash> log(log_flash_);
    if (const Status status = log.open(); status != Status::kOk) return status;
    port::print("a journal of ", log.size(), " bytes\n");
    attune::HexLines lines([](const char* text, std::size_t length) { port::write(text, length); });
    const Status status = log.write_to(lines);
    lines.end();
    return status;
  }

 private:
  Learner& learner_;
  LogFlash log_flash_;
  StateFlash state_flash_;
};

/// Of a method's Learner; 1 without a trainer.
template <class Learner>
constexpr std::size_t nonvolatile_of_journal() {
  if constexpr (requires(Learner & learner) { learner.trainer(); }) {
    return JournaledLearning<Learner>::kNonvolatile;
  } else {
    return 1;
  }
}

}  // namespace personalise
