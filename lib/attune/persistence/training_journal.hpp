// A journal of a device's training, from which a PC reproduces the parameters bit by bit (host/replay.hpp).
//
//   attune::TrainingJournal journal(trainer, sink, {.hash_every = 10});
//   trainer.initialize(attune::XavierUniform{}, attune::Rng(7));
//   journal.started(7);                                  // or, after a reset, journal.resumed()
//   journal.accumulate(number, x, target, mask);         // a sequence of the program's data, by its number
//   journal.accumulate(sequence);                        // one that only the device knows, by its bytes
//   journal.update(options);
//   journal.saving();                                    // in front of store.save(trainer.state())
//
// Each call trains, then writes an entry (journal_entry.hpp). A power cut therefore loses at most the last
// entry, and never one that a saved state depends on. The journal stores no data in RAM: it takes 28 bytes
// and a reference to its sink.
//
// After load(), initialize(), resume() or the finish() of a GuardedTraining within a session, the next entry
// is the whole state, which the replay takes over. The number of steps tells the journal of such a change;
// report one at equal steps with note_load().
//
// sink(const char* bytes, std::size_t count) is a FlashJournal, or a function that sends bytes. It may return
// a Status. The first failure stops the journal, but not the training; status() returns it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <attune/core/gradients.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/execution/attention_mask.hpp>
#include <attune/persistence/crc32.hpp>
#include <attune/persistence/journal_entry.hpp>
#include <attune/training/lifecycle.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/step_result.hpp>

namespace ATTUNE_NAMESPACE {

/// The content of a journal.
struct JournalOptions {
  std::uint32_t hash_every = 64;  // steps between two hashes of the parameters; 0: none
  std::uint32_t base_crc = 0;     // crc32() of the file that the program has in flash
};

namespace detail {

template <class Sink>
inline constexpr std::uint32_t kUnitOfSink = 1;
template <class Sink>
  requires requires { Sink::kProgramUnit; }
inline constexpr std::uint32_t kUnitOfSink<Sink> = Sink::kProgramUnit;

/// The bytes of a record in an entry; none for an empty type.
template <class Record>
inline constexpr std::size_t kJournaledBytes = std::is_empty_v<Record> ? 0 : sizeof(Record);
/// Entries are smaller.
inline constexpr std::size_t kJournaledLimit = 1u << 24;

/// Writes entries to a sink, in parts.
template <class Sink>
class EntryWriter {
 public:
  explicit EntryWriter(Sink& sink) : sink_(sink) {}

  template <class... Records>
  void write(JournalEvent event, const Records&... records) {
    constexpr std::size_t kSize = (std::size_t{0} + ... + kJournaledBytes<Records>);
    static_assert(
        Holds<((std::is_trivially_copyable_v<Records> && ...))>,
        "attune::TrainingJournal: options, clipping, inputs, targets and masks are written byte by byte "
        "and must be trivially copyable");
    static_assert(Holds<(kSize < kJournaledLimit)>,
                  "attune::TrainingJournal: an entry is shorter than 16 MiB");
    if (event == JournalEvent::kSession) {
      status_ = Status::kOk;
      crc_ = 0;
    }
    begin(event, kSize);
    (add(&records, kJournaledBytes<Records>), ...);
    end(kSize);
  }
  Status status() const { return status_; }

 private:
  static constexpr std::uint32_t kUnit = kUnitOfSink<Sink>;

  void begin(JournalEvent event, std::size_t size) {
    const std::uint32_t head = static_cast<std::uint32_t>(event) |
                               static_cast<std::uint32_t>(std::countr_zero(kUnit)) << 5 |
                               static_cast<std::uint32_t>(size) << 8;
    add(&head, sizeof head);
  }
  void end(std::size_t size) {
    static constexpr char kZeros[kUnit] = {};
    const std::size_t over = (size + 2 * sizeof crc_) % kUnit;
    if (over > 0) add(kZeros, kUnit - over);
    const std::uint32_t crc = crc_;
    add(&crc, sizeof crc);
    crc_ = crc;
  }
  [[gnu::noinline]] void add(const void* record, std::size_t count) {
    if (count == 0 || status_ != Status::kOk) return;
    const auto* const bytes = static_cast<const char*>(record);
    crc_ = crc32(bytes, count, crc_);
    if constexpr (std::is_same_v<std::invoke_result_t<Sink&, const char*, std::size_t>, Status>) {
      status_ = sink_(bytes, count);
    } else {
      sink_(bytes, count);
    }
  }

  Sink& sink_;
  std::uint32_t crc_ = 0;  // of the entry so far; between entries, of the last one
  Status status_ = Status::kOk;
};

}  // namespace detail

/// The journal of a trainer. `trainer` and `sink` must outlive it. From started() or resumed() on, sequences,
/// updates and discards go through the journal. Report the others with the functions that begin with `note`:
/// calls in slices, and calls of another trainer with the same state. The trainer's loss must not change.
template <class Trainer, class Sink>
class TrainingJournal {
  static_assert(detail::Holds<std::is_invocable_v<Sink&, const char*, std::size_t>>,
                "attune::TrainingJournal: a sink is called as sink(const char* bytes, std::size_t count)");
  static_assert(
      detail::Holds<(std::has_single_bit(detail::kUnitOfSink<Sink>) && detail::kUnitOfSink<Sink> <= 32)>,
      "attune::TrainingJournal: Sink::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes");
  using State = typename Trainer::State;
  using Options = typename Trainer::Options;
  using Scalar = typename Trainer::Scalar;

 public:
  /// A journal of `trainer` in `sink`. Writes nothing yet.
  TrainingJournal(Trainer& trainer, Sink& sink, const JournalOptions& options = {})
      : trainer_(trainer), writer_(sink), options_(options) {
    static_assert(detail::Holds<!kForwardOnly>,
                  "attune::TrainingJournal: a ForwardOnlyTrainer needs no journal; keep the `change` of each "
                  "update's result, and replay() repeats the training");
    static_assert(
        detail::Holds<(kForwardOnly || kJournals)>,
        "attune::TrainingJournal: a journal is for a Trainer, whose sequences and updates go through "
        "it; replay another trainer's steps with a Trainer of the same state");
  }

  /// The trainer has just started. `number` tells the replay how, such as the seed of the initial parameters.
  void started(std::uint32_t number = 0) { begin(JournalEvent::kStarted, number); }
  /// The trainer has just resumed from a state that was saved after saving(), or that the replay is given.
  void resumed() { begin(JournalEvent::kResumed, 0); }

  /// Trainer::accumulate() for a sequence that the replay loads by `number`.
  template <class X, class Target, class Mask = NoMask, class... Loss>
  LossResult<Scalar> accumulate(std::uint32_t number, const X& x, const Target& target, const Mask& mask = {},
                                const Loss&... loss) {
    const auto added = trainer_.accumulate(x, target, mask, loss...);
    if (added.ok()) note_sequence(number);
    return added;
  }
  /// The same for a sequence that is written byte by byte.
  template <class Input, class Target, class Mask, class... Loss>
  LossResult<Scalar> accumulate(const JournaledSequence<Input, Target, Mask>& sequence, const Loss&... loss) {
    const auto added = trainer_.accumulate(sequence.x, sequence.target, sequence.mask, loss...);
    if (added.ok()) note_sequence(sequence);
    return added;
  }
  /// Trainer::update().
  template <class Clipping = NoClipping>
  StepResult<Scalar> update(const Options& options = {}, const Clipping& clipping = {}) {
    return noted([&](auto& trainer) { return trainer.update(options, clipping); }, options, clipping);
  }
  /// Trainer::update_incomplete().
  template <class Clipping = NoClipping>
  StepResult<Scalar> update_incomplete(const Options& options = {}, const Clipping& clipping = {}) {
    return noted([&](auto& trainer) { return trainer.update_incomplete(options, clipping); }, options,
                 clipping);
  }
  /// Trainer::step() with a batch of one, also for UpdateInBackward. Larger batches use accumulate() and
  /// update().
  template <class X, class Target, class Clipping = NoClipping, class Mask = NoMask, class... Loss>
  StepResult<Scalar> step(std::uint32_t number, const X& x, const Target& target, const Options& options,
                          const Clipping& clipping = {}, const Mask& mask = {}, const Loss&... loss) {
    static_assert(
        detail::Holds<std::is_same_v<typename Trainer::InputView, typename Trainer::BatchInputView>>,
        "attune::TrainingJournal: step() is for a batch of one; take accumulate() and update(), which "
        "compute the same bits");
    (void)synchronize();
    const auto done = trainer_.step(x, target, options, clipping, mask, loss...);
    if (done.status == Status::kUnderWay || done.status == Status::kNotInitialized) return done;
    if (detail::Accumulates<Trainer>) note_discard();
    if (steps() != steps_) {  // a refused step changes nothing else
      steps_ = steps();
      note_sequence(number);
      note_update(done.status, options, clipping);
    }
    return done;
  }
  /// A number in place of options is a compile error.
  StepResult<Scalar> update(detail::PlainNumber auto number, const auto&...) {
    return detail::number_for_options<Scalar>(number);
  }
  /// The same.
  StepResult<Scalar> step(std::uint32_t, const auto&, const auto&, detail::PlainNumber auto number,
                          const auto&...) {
    return detail::number_for_options<Scalar>(number);
  }
  /// Trainer::discard(), which does nothing between the slices of an update.
  void discard() {
    const bool discards = synchronize();
    trainer_.discard();
    if (discards) note_discard();
  }

  /// The state is about to be saved. Call it before the store's save(). Writes nothing where save() refuses
  /// the state: between the slices of an update, and before the trainer has started.
  void saving() {
    if (synchronize()) writer_.write(JournalEvent::kSaving, point(0));
  }
  /// Writes the hash of the current parameters, for example at the end of a training. Writes nothing where
  /// saving() does.
  void write_hash() {
    if (synchronize()) writer_.write(JournalEvent::kHash, hash_bits(trainer_.parameters()));
  }
  /// kOk, or the sink's first error since the session began. Later entries are missing.
  Status status() const { return writer_.status(); }

  /// Reports a sequence that was accumulated elsewhere, such as in slices.
  void note_sequence(std::uint32_t number) {
    (void)synchronize();
    pending_ = true;
    writer_.write(JournalEvent::kSequence, number);
  }
  /// The same, byte by byte.
  template <class Input, class Target, class Mask>
  void note_sequence(const JournaledSequence<Input, Target, Mask>& sequence) {
    static_assert(
        detail::Holds<!(detail::RefersElsewhere<std::remove_cvref_t<Input>>::value ||
                        detail::RefersElsewhere<std::remove_cvref_t<Target>>::value ||
                        detail::RefersElsewhere<std::remove_cvref_t<Mask>>::value)>,
        "attune::TrainingJournal: the input, target or mask is a view, whose address would be written; copy "
        "the numbers into a Tensor or an array, or journal the sequence by its number");
    (void)synchronize();
    pending_ = true;
    writer_.write(JournalEvent::kSequenceBytes, sequence.x, sequence.target, sequence.mask);
  }
  /// Reports an update that returned `status`, after it changed the state or discarded the batch.
  template <class Clipping = NoClipping>
  void note_update(Status status, const Options& options, const Clipping& clipping = {}) {
    if (!pending_) return;  // the whole state was written since, or will be
    pending_ = false;
    steps_ = steps();
    writer_.write(JournalEvent::kUpdated, static_cast<std::uint32_t>(status), options, clipping);
    if (options_.hash_every > 0 && status == Status::kOk && trainer_.state().steps % options_.hash_every == 0)
      write_hash();
  }
  /// Reports that the batch was discarded.
  void note_discard() {
    if (pending_) writer_.write(JournalEvent::kDiscarded);
    pending_ = false;
  }
  /// Reports that the state changed elsewhere, and writes it; accumulated sequences are gone. The next entry
  /// does so by itself if the number of steps has changed and the state is smaller than 16 MiB.
  void note_load() {
    pending_ = false;
    steps_ = steps();
    writer_.write(JournalEvent::kLoaded, trainer_.state());
  }

 private:
  static constexpr bool kForwardOnly = requires { typename Trainer::Change; };
  static constexpr bool kJournals = requires { typename Trainer::Coefficients; };

  // The number of steps, modulo 2^32.
  [[nodiscard]] std::uint32_t steps() const { return static_cast<std::uint32_t>(trainer_.state().steps); }
  // Writes the state if it has changed elsewhere. False between the slices of an update, and before the
  // trainer has started.
  bool synchronize() {
    if (trainer_.state().ready() != Status::kOk) return false;
    if constexpr (sizeof(State) < detail::kJournaledLimit) {
      if (steps() != steps_) note_load();
    }
    steps_ = steps();
    return true;
  }
  [[nodiscard]] JournalPoint point(std::uint32_t number) const {
    const State& state = trainer_.state();
    return {number, crc32(reinterpret_cast<const unsigned char*>(&state), sizeof state), state.steps};
  }
  void begin(JournalEvent event, std::uint32_t number) {
    pending_ = false;
    steps_ = steps();
    writer_.write(JournalEvent::kSession, JournalSession{kJournalVersion, State::kFingerprint,
                                                         trainer_.state().fingerprint_of_numbers,
                                                         options_.base_crc, options_.hash_every});
    writer_.write(event, point(number));
  }
  template <class Update, class Clipping>
  StepResult<Scalar> noted(const Update& call, const Options& options, const Clipping& clipping) {
    if constexpr (kForwardOnly) {
      return StepResult<Scalar>::refused(Status::kOk);  // does not compile: see the constructor
    } else {
      const StepResult<Scalar> done = call(trainer_);
      if (done.ok() || done.status == Status::kNotFinite || done.status == Status::kNoTargets)
        note_update(done.status, options, clipping);
      return done;
    }
  }

  Trainer& trainer_;
  detail::EntryWriter<Sink> writer_;
  JournalOptions options_;
  std::uint32_t steps_ = 0;  // of the trainer, at the last event
  bool pending_ = false;     // sequences since the last update
};

}  // namespace ATTUNE_NAMESPACE
