// Replays a journal (persistence/training_journal.hpp) on a PC. The result is the device's parameters, bit
// for bit, or the first step that differs. Needs a heap; never included by attune.hpp.
//
//   struct Setup {            // the rest: trainer and data
//     using Trainer = …;      // the device's, or one with the same State
//     using Sequence = attune::JournaledSequence<Input, Target, Mask>;
//     static void start(Trainer& trainer, std::uint32_t number);  // as before started(number)
//     static attune::Status load(std::uint32_t number, Sequence& sequence);  // the data of a number
//     // or load(number, std::unique_ptr<Sequence>&), which makes one whose mask views a matrix
//     static Loss loss();               // if the loss has class weights
//     static std::uint32_t base_crc();  // if the journal has one
//   };
//   attune::host::Replay<Setup> replay;
//   const auto report = replay.run(bytes);
//
// attune_add_replay (cmake/attune-replay.cmake) builds a program from a Setup. Omit `load` if every sequence
// is in the journal.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <attune/core/gradients.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/persistence/crc32.hpp>
#include <attune/persistence/journal_entry.hpp>

namespace ATTUNE_NAMESPACE::host {

/// The result of a replay.
struct ReplayReport {
  std::string problem;  // empty: everything matches the device; otherwise the first difference, as a sentence
  std::uint64_t steps = 0;      // steps of the optimizer at the end
  std::uint64_t sequences = 0;  // replayed sequences
  std::uint64_t sessions = 0;   // starts of the device
  std::uint64_t checks = 0;     // compared hashes
  std::uint64_t loads = 0;      // states that were loaded on the device, and taken over
  std::uint64_t cut_bytes = 0;  // size of an incomplete entry at the end
  std::uint32_t hash = 0;       // hash_bits of the parameters at the end
  [[nodiscard]] bool ok() const { return problem.empty(); }
};

/// Runs journals of one Setup; see the top of this file.
template <class Setup>
class Replay {
 public:
  /// The trainer of the Setup.
  using Trainer = typename Setup::Trainer;
  using State = typename Trainer::State;

  /// Adds a state that the journal resumes from and does not contain, such as a factory state.
  void add_state(const State& state) { saved_.push_back(state); }

  /// Replays a journal from its first session. Stops at the first difference.
  ReplayReport run(std::span<const std::byte> journal) {
    report_ = {};
    on_ = pending_ = false;
    JournalReader reader(journal);
    JournalEntry entry;
    Status read = reader.next(entry);
    for (; read == Status::kOk && report_.ok(); read = reader.next(entry)) replay(entry);
    if (report_.ok() && read == Status::kUnreadable) {
      report_.problem = place("the journal is damaged at byte " + std::to_string(entry.at));
    } else if (report_.ok() && report_.sessions == 0) {
      report_.problem = "there is no journal";
    }
    report_.cut_bytes = read == Status::kNothingStored ? reader.rest() : 0;
    report_.steps = trainer().state().steps;
    report_.hash = hash_bits(trainer().parameters());
    return report_;
  }
  /// The trainer after the replay.
  [[nodiscard]] Trainer& trainer() { return *trainer_; }

 private:
  using Sequence = typename Setup::Sequence;
  static constexpr bool kStarts = requires(Trainer & trainer) { Setup::start(trainer, std::uint32_t{}); };
  static constexpr bool kMakes = !std::is_default_constructible_v<Sequence>;
  using Loaded = std::conditional_t<kMakes, std::unique_ptr<Sequence>, Sequence>;
  static constexpr bool kLoads = requires(Loaded & sequence) {
    { Setup::load(std::uint32_t{}, sequence) } -> std::same_as<Status>;
  };
  static constexpr std::size_t kMaxStates = 64;  // a device resumes from one of its last two or three

  void replay(const JournalEntry& entry) {
    at_ = entry.at;
    const bool begins = entry.event == JournalEvent::kSession || entry.event == JournalEvent::kStarted ||
                        entry.event == JournalEvent::kResumed;
    if (!begins && !on_) return fail("a session starts with neither started() nor resumed()");
    switch (entry.event) {
      case JournalEvent::kSession:
        return begin_session(entry);
      case JournalEvent::kStarted:
      case JournalEvent::kResumed:
      case JournalEvent::kSaving:
        return at_point(entry);
      case JournalEvent::kSequence:
      case JournalEvent::kSequenceBytes:
        return add_sequence(entry);
      case JournalEvent::kUpdated:
        return update(entry);
      case JournalEvent::kDiscarded:
        if constexpr (attune::detail::Accumulates<Trainer>) trainer().discard();
        pending_ = false;
        return;
      case JournalEvent::kHash:
        return compare_hash(entry);
      case JournalEvent::kLoaded:
        return take_over(entry);
    }
  }

  void begin_session(const JournalEntry& entry) {
    JournalSession session{};
    std::memcpy(&session, entry.body.data(), (std::min)(sizeof session, entry.body.size()));
    ++report_.sessions;
    on_ = pending_ = false;
    if (session.version != kJournalVersion)
      return fail("the journal has version " + std::to_string(session.version));
    if (session.fingerprint != State::kFingerprint)
      return fail("the journal belongs to another model or optimizer");
    if (session.numbers != State::numbers())
      return fail("the journal was recorded in another arithmetic, or with another base");
    if constexpr (requires { Setup::base_crc(); }) {
      if (session.base_crc != Setup::base_crc()) return fail("the journal was recorded with another base");
    }
  }

  static std::uint32_t crc_of(const State& state) {
    return crc32(reinterpret_cast<const unsigned char*>(&state), sizeof state);
  }
  void at_point(const JournalEntry& entry) {
    JournalPoint point{};
    if (!entry.read(point)) return fail_at_size();
    static_assert(attune::detail::Holds<kStarts>,
                  "attune::Replay: the Setup has no start(Trainer&, std::uint32_t number)");
    if constexpr (kStarts) {
      if (entry.event == JournalEvent::kStarted) Setup::start(trainer(), point.number);
    }
    if (entry.event == JournalEvent::kResumed && !resume(point))
      return fail("the device resumed from a state of " + std::to_string(point.steps) +
                  " steps that is not in the journal");
    on_ = true;
    if (entry.event != JournalEvent::kSaving) pending_ = false;  // sequences go on behind a save
    ++report_.checks;
    const State& now = trainer().state();
    if (now.steps != point.steps || crc_of(now) != point.crc) return fail("the state differs");
    if (entry.event == JournalEvent::kSaving) {
      if (saved_.size() == kMaxStates) saved_.erase(saved_.begin());
      saved_.push_back(now);
    }
  }
  bool resume(const JournalPoint& point) {
    for (std::size_t i = saved_.size(); i-- > 0;) {
      if (saved_[i].steps == point.steps && crc_of(saved_[i]) == point.crc)
        return trainer().resume(saved_[i]) == Status::kOk;
    }
    return false;
  }

  void take_over(const JournalEntry& entry) {
    const auto state = std::make_unique<State>();
    if (!entry.read(*state)) return fail_at_size();
    if (const Status resumed = trainer().resume(*state); resumed != Status::kOk)
      return fail(std::string("the loaded state cannot be used: ") + message(resumed));
    pending_ = false;
    ++report_.loads;
  }

  void add_sequence(const JournalEntry& entry) {
    if (entry.event == JournalEvent::kSequence) {
      std::uint32_t number = 0;
      if (!entry.read(number)) return fail_at_size();
      constexpr bool kRefused = !kLoads && requires { &Setup::load; };
      static_assert(attune::detail::Holds<(!kRefused || kMakes)>,
                    "attune::Replay: load(std::uint32_t number, Sequence&) of the Setup returns a Status");
      static_assert(attune::detail::Holds<(!kRefused || !kMakes)>,
                    "attune::Replay: a Sequence with a view has no default; load(std::uint32_t number, "
                    "std::unique_ptr<Sequence>&) of the Setup makes it, and returns a Status");
      if constexpr (kLoads) {
        Status loaded = Setup::load(number, loaded_sequence());
        if (loaded == Status::kOk && !sequence_) loaded = Status::kNothingStored;
        if (loaded != Status::kOk)
          return fail("sequence " + std::to_string(number) + " cannot be loaded: " + message(loaded));
      } else {
        return fail("the journal has sequences by number; give the Setup a load()");
      }
    } else if (!read_sequence(entry.body)) {
      return fail_at_size();
    }
    ++report_.sequences;
    pending_ = true;
    if constexpr (attune::detail::Accumulates<Trainer>) {
      const auto added = with_loss([&](const auto&... loss) {
        return trainer().accumulate(sequence_->x, sequence_->target, sequence_->mask, loss...);
      });
      if (!added.ok()) fail(std::string("this build refuses a sequence: ") + message(added.status));
    }
  }
  /// The sequence that load() fills, or makes.
  Sequence& loaded_sequence() { return *sequence_; }
  std::unique_ptr<Sequence>& loaded_sequence() requires kMakes { return sequence_; }
  static std::unique_ptr<Sequence> first_sequence() { return std::make_unique<Sequence>(); }
  static std::unique_ptr<Sequence> first_sequence() requires kMakes { return nullptr; }
  bool read_sequence(std::span<const std::byte> body) {
    if (!sequence_) return false;  // it has views, and bytes have none
    const auto take = [&body](auto& record) {
      if constexpr (!std::is_empty_v<std::remove_reference_t<decltype(record)>>) {
        if (body.size() < sizeof record) return false;
        std::memcpy(static_cast<void*>(&record), body.data(), sizeof record);
        body = body.subspan(sizeof record);
      }
      return true;
    };
    return take(sequence_->x) && take(sequence_->target) && take(sequence_->mask) && body.empty();
  }

  void update(const JournalEntry& entry) {
    using Options = typename Trainer::Options;
    const auto body = entry.body;
    std::uint32_t there = 0;
    Options options{};
    GradientClipping clipping{};
    constexpr std::size_t kSize = sizeof there + sizeof options;
    const bool clips = body.size() == kSize + sizeof clipping;
    if (!clips && body.size() != kSize) return fail_at_size();
    if (!pending_) return fail("an update without a sequence");
    std::memcpy(&there, body.data(), sizeof there);
    std::memcpy(static_cast<void*>(&options), body.data() + sizeof there, sizeof options);
    if (clips) std::memcpy(&clipping, body.data() + kSize, sizeof clipping);
    const Status here = clips ? update(options, clipping) : update(options, NoClipping{});
    pending_ = false;
    if (static_cast<std::uint32_t>(here) != there)
      fail(std::string("an update ends here with: ") + message(here) +
           "; on the device with: " + message(static_cast<Status>(there)));
  }
  template <class Clipping>
  Status update(const typename Trainer::Options& options, const Clipping& clipping) {
    if constexpr (attune::detail::Accumulates<Trainer>) {
      return trainer().update_incomplete(options, clipping).status;
    } else if constexpr (std::is_same_v<Clipping, NoClipping>) {
      return with_loss([&](const auto&... loss) {
               return trainer().step(sequence_->x, sequence_->target, options, clipping, sequence_->mask,
                                     loss...);
             })
          .status;
    } else {
      return Status::kInvalidMaxNorm;  // a trainer without gradients cannot clip
    }
  }
  /// call(loss) if the Setup has a loss; otherwise call().
  template <class Call>
  static auto with_loss(const Call& call) {
    if constexpr (requires { Setup::loss(); }) {
      return call(Setup::loss());
    } else {
      return call();
    }
  }

  void compare_hash(const JournalEntry& entry) {
    std::uint32_t there = 0;
    if (!entry.read(there)) return fail_at_size();
    ++report_.checks;
    if (there == hash_bits(trainer().parameters())) {
      equal_steps_ = trainer().state().steps;
    } else {
      fail("parameters differ; they were last equal after step " + std::to_string(equal_steps_));
    }
  }

  std::string place(const std::string& what) {
    return "after step " + std::to_string(trainer().state().steps) + ": " + what;
  }
  void fail(const std::string& what) {
    report_.problem = place(what + " (entry at byte " + std::to_string(at_) + " of the journal)");
  }
  void fail_at_size() { fail("an entry does not have this model's size"); }

  std::unique_ptr<Trainer> trainer_ = std::make_unique<Trainer>();
  std::unique_ptr<Sequence> sequence_ = first_sequence();
  std::vector<State> saved_;
  ReplayReport report_;
  std::uint64_t equal_steps_ = 0;  // steps at the last hash that matched
  std::size_t at_ = 0;             // start of the entry
  bool on_ = false, pending_ = false;
};

/// The main() of a replay program: JOURNAL [STATE...]. A STATE is a file with the bytes of a Trainer::State.
/// Prints the result. Returns 0 if everything matches the device, 1 on a difference, 2 without a journal.
template <class Setup>
int replay_main(int count, char** words) {
  const auto read = [](const char* path) {
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  if (count < 2 || std::string_view(words[1]).starts_with('-')) {
    std::fprintf(stderr, "usage: %s JOURNAL [STATE...]\n", count > 0 ? words[0] : "replay");
    return 2;
  }
  const std::string journal = read(words[1]);
  if (journal.empty()) {
    std::fprintf(stderr, "cannot read '%s'\n", words[1]);
    return 2;
  }
  Replay<Setup> replay;
  for (int i = 2; i < count; ++i) {
    const std::string bytes = read(words[i]);
    const auto state = std::make_unique<typename Replay<Setup>::State>();
    if (bytes.size() != sizeof *state) {
      std::fprintf(stderr, "'%s' is not a state of this model: %zu bytes, not %zu\n", words[i], bytes.size(),
                   sizeof *state);
      return 2;
    }
    std::memcpy(static_cast<void*>(state.get()), bytes.data(), bytes.size());
    replay.add_state(*state);
  }
  const ReplayReport report = replay.run(std::as_bytes(std::span(journal)));
  if (report.sessions == 0) {
    std::fprintf(stderr, "'%s' is not a journal, or its first entry is damaged\n", words[1]);
    return 2;
  }
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  if (report.cut_bytes > 0)
    std::printf("the last %llu bytes are an incomplete entry\n", number(report.cut_bytes));
  if (report.loads > 0) std::printf("states loaded on the device: %llu\n", number(report.loads));
  if (!report.ok()) std::printf("differs %s\n", report.problem.c_str());
  std::printf("replay steps=%llu sequences=%llu sessions=%llu checks=%llu same=%s parameters_hash=%08lx\n",
              number(report.steps), number(report.sequences), number(report.sessions), number(report.checks),
              report.ok() ? "yes" : "no", static_cast<unsigned long>(report.hash));
  return report.ok() ? 0 : 1;
}

}  // namespace ATTUNE_NAMESPACE::host
