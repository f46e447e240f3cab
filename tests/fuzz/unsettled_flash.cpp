// Power cuts in a row while a FlashStore, a FlashJournal or a FlashReplayMemory writes, on flash whose bits
// do not come to rest (exchange/unsettled_flash.hpp).
//   attune_unsettled_flash [--runs N] [--seed S] [--first I]
// A run is a history of one flash, with one to three rounds of one to three cuts. Two or three slots, program
// units of 1 to 32 bytes, states of version 1.0 among them. Expected of a store: a state that was saved with
// kOk, or one whose save began after it, is loaded from then on; a save without a cut succeeds, at the latest
// after a report. Expected of a journal: an entry that was written with kOk stays and is read, unless clear()
// has reached its page; open() erases nothing while there is one. Expected of a replay memory: an example
// that was added with kOk stays, or another one has its place. Run I of a seed is always the same. Ends with
// `N passed, N failed`: one for each flash.
//
// Two slots have histories in which no store can know what to keep (examples/guide/power-cuts.md has the
// reason): a cut hit the mark of the newer state, and a later one the erase of the older state. Such
// histories are counted, and a loss in them is not a failure. Three slots have none. A replay memory with one
// slot more than blocks is as a store with two.
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include <attune/persistence/flash_journal.hpp>
#include <attune/persistence/flash_store.hpp>
#include <attune/persistence/training_journal.hpp>

#include "command_line.hpp"
#include "exchange/unsettled_flash.hpp"
#include "persistence/replay_history.hpp"

namespace {

using attune::Status;

std::uint64_t cuts = 0, undecidable = 0, undecidable_losses = 0;

struct Record {
  static constexpr std::uint32_t kFingerprint = 3;
  std::uint32_t number, others[2];
};
Record record(int number) {
  const auto bits = static_cast<std::uint32_t>(number);
  return {bits, {bits * 2654435761u + 17, ~bits * 40503u}};
}

/// One history of a store.
template <class Flash>
class StoreHistory {
  using Store = attune::FlashStore<Flash, Record>;
  static_assert(Store::kHasMark);

 public:
  explicit StoreHistory(std::uint32_t seed) : flash_(seed) {}

  /// What did not hold; nullptr if all did.
  const char* run() {
    if (below(4) == 0) begin_as_version_1_0();
    for (int saves = below(4); saves > 0; --saves) save_uncut();
    for (int rounds = 1 + below(3); rounds > 0; --rounds) {
      for (int saves = 1 + below(3); saves > 0; --saves) save_cut();
      if (below(3) > 0) save_uncut();
    }
    expect(flash_.misuses == 0, "nothing is programmed that was not erased");
    undecidable += is_undecidable_;
    if (is_undecidable_ && failed_ == kLost) {
      ++undecidable_losses;
      return nullptr;
    }
    return failed_;
  }
  static constexpr std::uint32_t slots() { return Store::kSlots; }

 private:
  static constexpr const char* kLost = "a state that was saved is loaded";
  int below(int count) { return static_cast<int>(flash_.random() % static_cast<unsigned>(count)); }
  void expect(bool holds, const char* expectation) {
    if (!holds && failed_ == nullptr) failed_ = expectation;
  }
  // Whether one of two slots has a state whose mark was cut, and the other's erase was cut as well.
  [[nodiscard]] bool is_undecidable() const {
    constexpr std::uint32_t kSlot = Store::kSlotPages * Flash::kPageSize,
                            kMark = Store::kHeadSize + Store::kBodySize;
    const auto mark_was_cut = [&](std::uint32_t at) {
      return !flash_.was_cut(at, kMark) && flash_.was_cut(at + kMark, kSlot - kMark);
    };
    const auto erase_was_cut = [&](std::uint32_t at) {  // the whole first page
      const std::uint32_t last = at + Flash::kPageSize - Flash::kProgramUnit;
      return flash_.was_cut(at, Flash::kProgramUnit) && flash_.was_cut(last, Flash::kProgramUnit);
    };
    return Store::kSlots == 2 &&
           ((mark_was_cut(0) && erase_was_cut(kSlot)) || (mark_was_cut(kSlot) && erase_was_cut(0)));
  }
  void sometimes_spoil() {
    if (below(4) == 0) flash_.spoil(static_cast<std::uint32_t>(below(60)));
  }

  // As the first version wrote them: no marks.
  void begin_as_version_1_0() {
    const int states = 1 + below(static_cast<int>(Store::kSlots));
    for (int state = 0; state < states; ++state) {
      const std::uint32_t at = static_cast<std::uint32_t>(state) * Store::kSlotPages * Flash::kPageSize;
      unsigned char bytes[Store::kHeadSize + Store::kBodySize];
      std::memset(bytes, Flash::kErased, sizeof bytes);
      const Record saved = record(++last_);
      std::memcpy(bytes + Store::kHeadSize, &saved, sizeof saved);
      attune::detail::SlotHead head{attune::detail::SlotHead::kMagic,
                                    attune::detail::fingerprint_of_records<Record>(),
                                    Store::kBodySize,
                                    static_cast<std::uint32_t>(state) - 1,
                                    attune::crc32(bytes + Store::kHeadSize, Store::kBodySize),
                                    0};
      head.crc = head.own_crc();
      std::memcpy(bytes, &head, sizeof head);
      expect(flash_.program(at, bytes, sizeof bytes) == Status::kOk, "flash takes a state of version 1.0");
      saved_ = last_;
    }
    load();
  }
  void save_uncut() {
    is_undecidable_ |= is_undecidable();
    Store store(flash_);
    bool is_saved = false;
    for (int calls = 0; calls < 2 && !is_saved; ++calls) {
      const Status status = store.save(record(++last_));
      is_saved = status == Status::kOk;
      expect(is_saved || (calls == 0 && status == Status::kUnreadable), "a save that is not cut succeeds");
    }
    saved_ = last_;
    for (int starts = below(3); starts >= 0; --starts) {
      load();
      flash_.power_on();
    }
  }
  void save_cut() {
    flash_.cut_at(static_cast<std::uint32_t>(below(kOperations)));
    sometimes_spoil();
    is_undecidable_ |= is_undecidable();
    const Status status = Store(flash_).save(record(++last_));
    if (status == Status::kOk) saved_ = last_;
    cuts += !flash_.powered();
    flash_.power_on();
    sometimes_spoil();
    for (int loads = below(3); loads > 0; --loads) load();
    flash_.power_on();
  }
  void load() {
    Record loaded{};
    const Status status = Store(flash_).load(loaded);
    if (status != Status::kOk) {
      expect(saved_ < 0 && (status == Status::kNothingStored || status == Status::kUnreadable), kLost);
      return;
    }
    const auto number = static_cast<int>(loaded.number);
    const Record whole = record(number);
    expect(std::memcmp(&loaded, &whole, sizeof whole) == 0, "a state is loaded as it was saved");
    expect(number >= saved_, "no older state takes the place of one that was saved");
    expect(number <= last_, "a state is loaded that was saved");
  }

  // Erased pages, units of head, body and mark, syncs; and a few more, so that some saves are not cut.
  static constexpr int kOperations = static_cast<int>(
      Store::kSlotPages + (32 + Store::kHeadSize + Store::kBodySize) / Flash::kProgramUnit + 8);
  Flash flash_;
  int saved_ = -1, last_ = -1;  // the last state saved with kOk, and the last whose save began
  bool is_undecidable_ = false;
  const char* failed_ = nullptr;
};

/// One history of a journal.
template <class Flash>
class JournalHistory {
  using Journal = attune::FlashJournal<Flash>;
  using Event = attune::JournalEvent;

 public:
  explicit JournalHistory(std::uint32_t seed) : flash_(seed) { flash_.forgives = true; }

  const char* run() {
    for (int rounds = 1 + below(3); rounds > 0; --rounds) {
      for (int sessions = below(3); sessions > 0; --sessions) session();
      if (below(4) == 0) clear_cut();
      for (int starts = 1 + below(3); starts > 0; --starts) {
        flash_.cut_at(static_cast<std::uint32_t>(below(30)));
        session();
        flash_.power_on();
      }
    }
    session();
    expect(flash_.misuses == 0, "calls are aligned");
    return failed_;
  }
  static constexpr std::uint32_t slots() { return 0; }

 private:
  struct Entry {
    std::uint32_t begin, end, number;
  };
  int below(int count) { return static_cast<int>(flash_.random() % static_cast<unsigned>(count)); }
  void expect(bool holds, const char* expectation) {
    if (!holds && failed_ == nullptr) failed_ = expectation;
  }
  bool holds(const Entry& entry) {
    unsigned char bytes[512];
    const std::uint32_t size = entry.end - entry.begin;
    if (flash_.read(entry.begin, bytes, size) != Status::kOk) return false;
    return std::memcmp(bytes + 4, &entry.number, 4) == 0;
  }
  /// A start of the device, until the power fails or it has written a few entries.
  void session() {
    if (below(4) == 0) flash_.spoil(static_cast<std::uint32_t>(below(60)));
    Journal log(flash_);
    const std::uint32_t erases = flash_.erases;
    Status opened = log.open();
    if (flash_.powered()) {
      expect(written_.empty() || flash_.erases == erases, "open() erases nothing while there is an entry");
      expect(opened == Status::kOk || opened == Status::kUnreadable, "open() opens, or reports");
      expect(opened == Status::kOk || is_cut_clear_ || written_.empty(), "a journal that was cut is opened");
      expect(opened == Status::kOk || log.stranded_entries() > 0, "open() says how many entries are left");
      if (opened == Status::kUnreadable) opened = clear(log);
    }
    if (opened == Status::kOk) write(log);
    check();
  }
  void write(Journal& log) {
    attune::detail::EntryWriter<Journal> writer(log);
    writer.write(Event::kSession, attune::JournalSession{attune::kJournalVersion, 2, 3, 4, 5});
    for (int entries = below(7); entries > 0 && writer.status() == Status::kOk; --entries) {
      const Entry entry{log.size(), 0, ++number_};
      writer.write(Event::kSequence, entry.number);
      if (writer.status() == Status::kOk) written_.push_back({entry.begin, log.size(), entry.number});
    }
    if (writer.status() == Status::kJournalFull) (void)clear(log);
  }
  Status clear(Journal& log) {
    const std::uint32_t erases = flash_.erases;
    const Status status = log.clear();
    if (status == Status::kOk) {
      written_.clear();
      is_cut_clear_ = false;
    } else if (flash_.erases > erases) {
      // What stands on the pages that it has reached may be gone, and with it the CRC in front of an entry.
      const std::uint32_t reached = (flash_.last_erased + 1) * Flash::kPageSize;
      std::erase_if(written_, [&](const Entry& entry) { return entry.begin < reached + 4; });
      is_cut_clear_ = true;
    }
    return status;
  }
  void clear_cut() {
    flash_.cut_at(static_cast<std::uint32_t>(below(2 * static_cast<int>(Flash::kPages) + 2)));
    Journal log(flash_);
    if (log.open() == Status::kOk) (void)clear(log);
    flash_.power_on();
  }
  void check() {
    const bool was_cut = !flash_.powered();
    cuts += was_cut;
    if (was_cut) flash_.power_on();
    flash_.spoil(Flash::kNever);
    for (int starts = below(2); starts >= 0; --starts) {
      for (const Entry& entry : written_) expect(holds(entry), "an entry that was written stays");
      if (!is_cut_clear_) read();
      if (was_cut) flash_.power_on();
    }
  }
  /// As a PC reads it.
  void read() {
    std::vector<std::byte> bytes;
    Journal log(flash_);
    if (log.open() != Status::kOk) return expect(written_.empty(), "a journal is opened again");
    (void)log.write_to([&](const char* more, std::size_t count) {
      bytes.insert(bytes.end(), reinterpret_cast<const std::byte*>(more),
                   reinterpret_cast<const std::byte*>(more) + count);
    });
    attune::JournalReader reader(bytes);
    attune::JournalEntry entry{};
    std::size_t next = 0;
    Status status;
    while ((status = reader.next(entry)) == Status::kOk) {
      if (next < written_.size() && entry.event == Event::kSequence && entry.at == written_[next].begin)
        ++next;
    }
    expect(status == Status::kNothingStored && next == written_.size(), "a PC reads every entry");
  }

  Flash flash_;
  std::vector<Entry> written_;  // with kOk, and not reached by clear()
  bool is_cut_clear_ = false;
  std::uint32_t number_ = 0;
  const char* failed_ = nullptr;
};

/// One history of a replay memory.
template <class Flash>
class ReplayHistory {
 public:
  explicit ReplayHistory(std::uint32_t seed) : seed_(seed) {}

  const char* run() const {
    bool is_undecidable = false;
    const char* const failed = replay_history::run<Flash>(seed_, is_undecidable);
    undecidable += is_undecidable;
    if (!is_undecidable || failed != replay_history::kLost) return failed;
    ++undecidable_losses;
    return nullptr;
  }
  static constexpr std::uint32_t slots() { return replay_history::MemoryIn<Flash>::kSlots; }

 private:
  std::uint32_t seed_;
};

struct Run {
  std::uint64_t runs = 100000, seed = 1, first = 0, index = 0, end = 0, done = 0;
};

template <class History>
bool next(Run& run) {
  const std::uint64_t index = run.index++;
  if (index < run.first || index >= run.end) return true;
  ++run.done;
  History history(static_cast<std::uint32_t>(run.seed * 1000003u + index * 2654435761u));
  const char* const failed = history.run();
  if (failed == nullptr) return true;
  std::printf("FAILED %s: %u slots. Again: --seed %llu --first %llu --runs 1\n", failed, History::slots(),
              static_cast<unsigned long long>(run.seed), static_cast<unsigned long long>(index));
  return false;
}

template <NorShape... shapes>
void next_of_stores(Run& run, bool* good) {
  ((*good++ &= next<StoreHistory<UnsettledFlash<shapes>>>(run)), ...);
}
template <NorShape... shapes>
void next_of_replays(Run& run, bool* good) {
  ((*good++ &= next<ReplayHistory<UnsettledFlash<shapes>>>(run)), ...);
}
template <NorShape... shapes>
void next_of_journals(Run& run, bool* good) {
  ((*good++ &= next<JournalHistory<UnsettledFlash<shapes>>>(run)), ...);
}

}  // namespace

int main(int count, char** arguments) {
  Run run;
  read_options(count, arguments, run.runs, run.seed, run.first);
  run.end = run.first + run.runs;
  constexpr int kStores = 8, kJournals = 4, kReplays = 4, kAll = kStores + kJournals + kReplays;
  run.index = run.first - run.first % kAll;
  bool good[kAll];
  for (bool& each : good) each = true;
  while (run.index < run.end) {
    next_of_stores<NorShape{.unit = 8, .pages = 2}, NorShape{.unit = 8, .pages = 3},
                   NorShape{.unit = 1, .pages = 2, .erased = 0x00}, NorShape{.unit = 1, .pages = 3},
                   NorShape{.unit = 32, .pages = 2, .page_size = 128},
                   NorShape{.unit = 32, .pages = 3, .erased = 0x00, .page_size = 128},
                   NorShape{.unit = 8, .pages = 4, .page_size = 32},
                   NorShape{.unit = 4, .pages = 6, .erased = 0x00, .page_size = 32}>(run, good);
    next_of_journals<NorShape{.unit = 8, .pages = 8}, NorShape{.unit = 1, .pages = 8},
                     NorShape{.unit = 32, .pages = 8, .erased = 0x00},
                     NorShape{.unit = 4, .pages = 24, .page_size = 32}>(run, good + kStores);
    next_of_replays<NorShape{.unit = 8, .pages = 5, .page_size = 128},
                    NorShape{.unit = 8, .pages = 6, .erased = 0x00, .page_size = 128},
                    NorShape{.unit = 4, .pages = 8, .page_size = 128}, NorShape{.unit = 32, .pages = 14}>(
        run, good + kStores + kJournals);
  }
  std::printf("%llu histories with %llu power cuts\n", static_cast<unsigned long long>(run.done),
              static_cast<unsigned long long>(cuts));
  std::printf("%llu of them undecidable with two slots, a state lost in %llu\n",
              static_cast<unsigned long long>(undecidable),
              static_cast<unsigned long long>(undecidable_losses));
  return close(good);
}
