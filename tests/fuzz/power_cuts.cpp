// Power cuts while a FlashStore saves. Built with AddressSanitizer and UndefinedBehaviorSanitizer.
//   attune_power_cuts [--runs N] [--seed S] [--first I]
// Every flash (program units of 1 to 32 bytes, erased FF or 00, two or three slots, with and without a cache
// that loses what was not synced), every kind of tear, every operation of a save; then the power is cut again
// while the store saves anew, then it is left alone. A load in between gives the old state or the new one,
// nothing else; a save that is left alone succeeds, and is what the next load gives. Besides, bits that are
// stuck: a save says so, or the state is there. Every flash counts as one that is written once: to program
// what was not erased is a failure. Sweep after sweep with other random bits until N runs; run I of a seed is
// always the same. Ends with `N passed, N failed`: one for each flash.
#include <array>
#include <cstdio>
#include <cstring>

#include <attune/persistence/flash_store.hpp>

#include "command_line.hpp"
#include "exchange/nor_flash.hpp"

namespace {

using attune::Status;

// Of sizes that fill no unit: 3 pages of 64 bytes with the head, in any unit.
struct Weights {
  unsigned char bytes[107];
};
struct Counter {
  unsigned char bytes[3];
};
constexpr std::uint32_t kSlotPages = 3;
constexpr int kNothing = -1, kZeros = -2, kNeither = -3;

struct Run {
  std::uint64_t runs = 100000, seed = 1, first = 0, index = 0, end = 0;
  std::uint64_t cuts = 0, second_cuts = 0, old_states = 0, new_states = 0, stuck_found = 0,
                stuck_harmless = 0;
};

constexpr int kStates = 8;
template <class Record>
const Record& record(int state) {
  static const auto records = [] {
    std::array<Record, kStates> made;
    for (std::size_t number = 0; number < made.size(); ++number) {
      for (std::size_t i = 0; i < sizeof(Record); ++i)
        made[number].bytes[i] = static_cast<unsigned char>(number * 151 + i * i * 7 + i);
    }
    return made;
  }();
  return records[static_cast<std::size_t>(state)];
}

/// One flash and one kind of cut; the states saved are numbers from 0.
template <class Flash>
class Experiment {
 public:
  Experiment(Flash& flash, Run& run) : flash_(flash), run_(run) {}

  bool save(int state) { return status_of_save(state) == Status::kOk; }
  Status status_of_save(int state) {
    return Store(flash_).save(record<Weights>(state), record<Counter>(state));
  }
  int stored() {
    Weights weights;
    Counter counter;
    const Status status = Store(flash_).load(weights, counter);
    if (status == Status::kNothingStored) return kNothing;
    if (status == Status::kUnreadable) {
      const Weights no_weights{};
      const Counter nothing{};
      const bool zero = std::memcmp(&weights, &no_weights, sizeof weights) == 0 &&
                        std::memcmp(&counter, &nothing, sizeof counter) == 0;
      return zero ? kZeros : kNeither;
    }
    for (int state = 0; status == Status::kOk && state < kStates; ++state) {
      if (std::memcmp(&weights, &record<Weights>(state), sizeof weights) == 0 &&
          std::memcmp(&counter, &record<Counter>(state), sizeof counter) == 0)
        return state;
    }
    return kNeither;
  }
  void expect(bool holds, const char* expectation) {
    if (!holds && failed_ == nullptr) failed_ = expectation;
  }

  /// Whether all held. After `states_before` saves, the power is cut at `operation`, and at a random one
  /// again.
  bool cut(int states_before, std::uint32_t operation, Tear tear, bool& reached) {
    const int before = states_before == 0 ? kNothing : states_before - 1;
    const int after = before + 1;
    flash_.cut_at(operation, tear);
    const bool saved = save(after);
    reached = !flash_.powered();
    flash_.power_on();
    const bool flickers = tear == Tear::kFlickering;
    // Of a first state that can be verified and then not be read, a status says so.
    const auto stored_or_zeros = [&] {
      const int state = stored();
      return state == kZeros && flickers && before == kNothing ? kNothing : state;
    };
    const int now = stored_or_zeros();
    expect(now == before || now == after, "after a cut the old state or the new one is there");
    expect(saved != reached && (!saved || now == after), "a save that is not cut succeeds");
    ++(now == after ? run_.new_states : run_.old_states);

    // Bits that read now this, now that are not yet safe: with two slots, only a whole save makes them so.
    if (!flickers || Store::kSlots > 2) {
      flash_.cut_at(flash_.random() % (operation + 8), static_cast<Tear>(flash_.random() % 5));
      const bool again = save(after + 1);
      run_.second_cuts += !flash_.powered();
      flash_.power_on();
      const int then = stored_or_zeros();
      expect(then == now || then == after + 1 || (flickers && (then == before || then == after)),
             "after two cuts the old state or the new one is there");
      expect(!again || then == after + 1, "a save that is not cut succeeds, after a cut");
    }
    for (int state = after + 2; state < after + 4; ++state) {
      expect(save(state), "a save after cuts succeeds");
      expect(stored() == state, "a save after cuts is loaded");
    }
    return report("cut", operation, tear);
  }

  /// Whether all held. After two saves, bits at a place read as `value`.
  bool stick(std::uint32_t at, unsigned char bits, unsigned char value) {
    flash_.stick(at, bits, value);
    int now = stored();
    for (int state = 2; state < 6; ++state) {
      const Status status = status_of_save(state);
      ++(status == Status::kOk ? run_.stuck_harmless : run_.stuck_found);
      // kUnreadable: they are in the newest state, which is not erased without a report.
      expect(status == Status::kOk || status == Status::kNotErased || status == Status::kNotProgrammed ||
                 status == Status::kUnreadable,
             "stuck bits are found, or do no harm");
      const int then = stored();
      expect(status == Status::kOk ? then == state : then == now,
             "stuck bits leave the old state, or the new one");
      now = then;
    }
    return report("stuck bits", at, Tear::kNotDone);
  }

 private:
  using Store = attune::FlashStore<Flash, Weights, Counter>;
  static_assert(Store::kSlotPages == kSlotPages);

  bool report(const char* what, std::uint32_t at, Tear tear) {
    expect(flash_.misuses == 0, "nothing is programmed twice, or out of place");
    if (failed_ == nullptr) return true;
    std::printf(
        "FAILED %s: %s at %u, tear %d, unit %u, erased %02x, %u pages. Again: --seed %llu --first %llu "
        "--runs 1\n",
        failed_, what, at, static_cast<int>(tear), Flash::kProgramUnit, Flash::kErased, Flash::kPages,
        static_cast<unsigned long long>(run_.seed), static_cast<unsigned long long>(run_.index));
    return false;
  }

  Flash& flash_;
  Run& run_;
  const char* failed_ = nullptr;
};

/// Every operation, tear and state before, in one flash. Counts runs on, and leaves out those before --first.
template <NorShape shape>
bool sweep(Run& run) {
  using Flash = NorFlash<shape>;
  const auto due = [&run] { return run.index >= run.first && run.index < run.end; };
  bool good = true;
  // Without a cut, saves are the same in every run: a run begins with a copy of the flash after them.
  std::array<Flash, 5> saved;
  for (std::size_t states = 1; states < saved.size(); ++states) {
    saved[states] = saved[states - 1];
    if (Experiment<Flash>(saved[states], run).save(static_cast<int>(states) - 1)) continue;
    std::printf("FAILED a save on good flash succeeds\n");
    good = false;
  }
  const auto try_one = [&](int states_before, auto&& experiment) {
    if (due()) {
      Flash flash = saved[static_cast<std::size_t>(states_before)];
      flash.seed(static_cast<std::uint32_t>(run.seed * 1000003u + run.index));
      flash.cached = (run.index & 1) != 0;
      ++run.cuts;
      good &= experiment(flash);
    }
    ++run.index;
  };
  for (int tear = 0; tear < kTears; ++tear) {
    // Nothing stored before, a slot or more never used, all slots used.
    for (const int states_before : {0, 1, 2, 4}) {
      // A save has as many operations everywhere, so that runs keep their numbers: 3 pages, units, syncs.
      using Store = attune::FlashStore<Flash, Weights, Counter>;
      constexpr std::uint32_t kMark = attune::detail::SlotLayout<Flash>::kMarkSize;
      const std::uint32_t operations = (Store::kBodySize + Store::kHeadSize) / shape.unit + 6 +
                                       (Store::kHasMark ? kMark / shape.unit + 1 : 0);
      for (std::uint32_t operation = 0; operation <= operations; ++operation) {
        for (int cached = 0; cached < 2; ++cached) {
          try_one(states_before, [&](Flash& flash) {
            bool reached = false;
            const bool held =
                Experiment<Flash>(flash, run).cut(states_before, operation, static_cast<Tear>(tear), reached);
            if (reached == (operation < operations)) return held;
            std::printf("FAILED a save has %u operations\n", operations);
            return false;
          });
        }
      }
    }
  }
  for (std::uint32_t at = 0; at < Flash::kSize; at += 5) {
    try_one(2, [&](Flash& flash) {
      const std::uint32_t place = at + flash.random() % 5;
      const auto bits = static_cast<unsigned char>(1u << flash.random() % 8 | 1u << flash.random() % 8);
      return Experiment<Flash>(flash, run).stick(place, bits, (flash.random() & 1) != 0 ? 0xFF : 0x00);
    });
  }
  return good;
}

constexpr int kFlashes = 6 * 4;  // as below

/// Two slots and a page too many, and three slots.
template <std::uint32_t unit>
void sweep_unit(Run& run, bool* good) {
  good[0] &= sweep<NorShape{.unit = unit, .pages = 7, .erased = 0xFF}>(run);
  good[1] &= sweep<NorShape{.unit = unit, .pages = 7, .erased = 0x00}>(run);
  good[2] &= sweep<NorShape{.unit = unit, .pages = 9, .erased = 0xFF}>(run);
  good[3] &= sweep<NorShape{.unit = unit, .pages = 9, .erased = 0x00}>(run);
}

}  // namespace

int main(int count, char** arguments) {
  Run run;
  read_options(count, arguments, run.runs, run.seed, run.first);
  run.end = run.first + run.runs;
  bool good[kFlashes];
  for (bool& each : good) each = true;
  while (run.index < run.end) {
    sweep_unit<1>(run, good);
    sweep_unit<2>(run, good + 4);
    sweep_unit<4>(run, good + 8);
    sweep_unit<8>(run, good + 12);
    sweep_unit<16>(run, good + 16);
    sweep_unit<32>(run, good + 20);
  }
  std::printf("%llu runs, %llu with a second cut; then the old state %llu times, the new one %llu times\n",
              static_cast<unsigned long long>(run.cuts), static_cast<unsigned long long>(run.second_cuts),
              static_cast<unsigned long long>(run.old_states),
              static_cast<unsigned long long>(run.new_states));
  std::printf("stuck bits: found %llu times, harmless %llu times\n",
              static_cast<unsigned long long>(run.stuck_found),
              static_cast<unsigned long long>(run.stuck_harmless));
  return close(good);
}
