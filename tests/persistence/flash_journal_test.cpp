// A journal in flash whose power is cut.
#include <attune/persistence/flash_journal.hpp>

#include <cstring>
#include <new>

#include "check.hpp"
#include "exchange/nor_flash.hpp"
#include "persistence/journaled_training.hpp"

namespace {

using namespace journaled;
using attune::FlashJournal;
using attune::JournalEntry;
using attune::JournalEvent;
using attune::JournalReader;
using attune::Status;

Trainer trainer;
Memory memory;

/// Erased flash, in memory that is not on the stack.
template <class Flash>
Flash& erased(std::uint32_t seed = 1) {
  alignas(Flash) static unsigned char memory_of_flash[sizeof(Flash)];
  return *::new (memory_of_flash) Flash(seed);
}

/// Starts a device and trains; false once the journal answers something.
template <class Flash>
bool session(Flash& flash, std::uint32_t steps) {
  FlashJournal<Flash> log(flash);
  if (log.open() != Status::kOk) return false;
  start(trainer, 7);
  attune::TrainingJournal journal(trainer, log);
  journal.started(7);
  for (std::uint32_t number = 0; number < steps; ++number) EXPECT_TRUE(step(journal, number));
  return journal.status() == Status::kOk;
}

/// Entries that are read back; −1 where the journal is damaged.
template <class Flash>
int entries(Flash& flash) {
  FlashJournal<Flash> log(flash);
  EXPECT_EQ(log.open(), Status::kOk);
  memory.clear();
  EXPECT_EQ(log.write_to(memory), Status::kOk);
  JournalReader reader(memory.all());
  JournalEntry entry;
  int count = 0;
  Status read = Status::kOk;
  while ((read = reader.next(entry)) == Status::kOk) ++count;
  return read == Status::kNothingStored ? count : -1;
}

template <class Flash>
void expect_goes_on_behind_resets() {
  Flash& flash = erased<Flash>();
  for (int reset = 1; reset < 4; ++reset) {
    EXPECT_TRUE(session(flash, 2));
    EXPECT_EQ(entries(flash), reset * (2 + 2 * 3));
  }
  EXPECT_EQ(flash.misuses, 0u);
}

}  // namespace

TEST(FlashJournal, continues_after_a_reset_in_units_of_1_to_32_bytes) {
  expect_goes_on_behind_resets<NorFlash<NorShape{.unit = 1, .pages = 40}>>();
  expect_goes_on_behind_resets<NorFlash<NorShape{.unit = 8, .pages = 40}>>();
  expect_goes_on_behind_resets<NorFlash<NorShape{.unit = 32, .pages = 40, .erased = 0x00}>>();
}

TEST(FlashJournal, programs_no_unit_of_erased_bytes_twice) {
  const auto expect = []<class Flash>(Flash*) {
    Flash& flash = erased<Flash>();
    EXPECT_TRUE(session(flash, 1));
    const int before = entries(flash);
    FlashJournal<Flash> cut(flash);
    EXPECT_EQ(cut.open(), Status::kOk);
    char bytes[5 * Flash::kProgramUnit];  // of an entry that a cut interrupts
    std::memset(bytes, Flash::kErased, sizeof bytes);
    EXPECT_EQ(cut(bytes, sizeof bytes), Status::kOk);
    EXPECT_TRUE(session(flash, 1));
    EXPECT_EQ(entries(flash), 2 * before);
    EXPECT_EQ(flash.misuses, 0u);
  };
  expect(static_cast<NorFlash<NorShape{.unit = 2, .pages = 40, .erased = 0x00}>*>(nullptr));
  expect(static_cast<NorFlash<NorShape{.unit = 8, .pages = 40}>*>(nullptr));
}

TEST(FlashJournal, continues_after_an_interrupted_entry_that_ends_with_erased_bytes) {
  const auto expect = []<class Flash>(Flash*) {
    Flash& flash = erased<Flash>();
    EXPECT_TRUE(session(flash, 1));
    const int before = entries(flash);
    FlashJournal<Flash> cut(flash);
    EXPECT_EQ(cut.open(), Status::kOk);
    struct {
      unsigned char bytes[64];
    } record;
    std::memset(record.bytes, Flash::kErased, sizeof record.bytes);
    flash.cut_at(2, Tear::kNotDone);  // behind the head's unit and a sync: the unit of the CRC
    attune::detail::EntryWriter writer(cut);
    writer.write(JournalEvent::kSequenceBytes, record);
    EXPECT_EQ(writer.status(), Status::kFlashFault);
    flash.power_on();
    EXPECT_TRUE(session(flash, 1));
    EXPECT_EQ(entries(flash), 2 * before);
    EXPECT_EQ(flash.misuses, 0u);
  };
  expect(static_cast<NorFlash<NorShape{.unit = 8, .pages = 40, .erased = 0x00}>*>(nullptr));
  expect(static_cast<NorFlash<NorShape{.unit = 8, .pages = 40}>*>(nullptr));
}

TEST(FlashJournal, a_cut_loses_only_the_entry_being_written) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 40}>;
  EXPECT_TRUE(session(erased<Flash>(), 2));
  const int all = 2 + 2 * 3;
  for (int tear = 0; tear < kTears; ++tear) {
    int last = 0, found = 0;
    for (std::uint32_t operation = 0; found < all; ++operation) {
      Flash& flash = erased<Flash>(operation + 1);
      flash.cut_at(operation, static_cast<Tear>(tear));
      const bool written = session(flash, 2);
      EXPECT_EQ(written, flash.powered());
      flash.power_on();
      found = entries(flash);
      EXPECT_TRUE(found == last || found == last + 1);
      last = found;
      EXPECT_TRUE(session(flash, 2));
      EXPECT_EQ(entries(flash), found + all);
      EXPECT_EQ(flash.misuses, 0u);
    }
  }
}

TEST(FlashJournal, reports_entries_after_a_cut_of_clear_and_keeps_them) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 20}>;
  int reported = 0;
  for (int tear = 0; tear < kTears; ++tear) {
    for (std::uint32_t operation = 0; operation < 40; ++operation) {
      Flash& flash = erased<Flash>(operation + 1);
      EXPECT_TRUE(session(flash, 3));
      EXPECT_TRUE(session(flash, 3));
      const int before = entries(flash);
      flash.cut_at(operation, static_cast<Tear>(tear));
      EXPECT_EQ(FlashJournal<Flash>(flash).clear(), Status::kFlashFault);
      flash.power_on();
      FlashJournal<Flash> log(flash);
      const Status opened = log.open();
      const auto left = static_cast<int>(log.stranded_entries());
      if (opened == Status::kUnreadable) {
        ++reported;
        EXPECT_TRUE(left > 0 && left < before);
        EXPECT_EQ(log.clear(), Status::kOk);
        EXPECT_EQ(log.stranded_entries(), 0u);
        EXPECT_EQ(log.size(), 0u);
      } else {
        EXPECT_EQ(opened, Status::kOk);
        EXPECT_EQ(left, 0);
      }
      const int behind = entries(flash);
      EXPECT_TRUE(behind >= 0 && behind <= before);
      EXPECT_TRUE(session(flash, 2));
      EXPECT_EQ(entries(flash), behind + 2 + 2 * 3);
      EXPECT_EQ(flash.misuses, 0u);
    }
  }
  EXPECT_GT(reported, 20);
}

TEST(FlashJournal, a_cut_of_the_first_erasure_leaves_all_later_pages) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 40}>;
  for (std::uint32_t seed = 1; seed < 50; ++seed) {
    Flash& flash = erased<Flash>(seed);
    for (int sessions = 0; sessions < 3; ++sessions) EXPECT_TRUE(session(flash, 4));
    const std::uint32_t size = [&] {
      FlashJournal<Flash> log(flash);
      EXPECT_EQ(log.open(), Status::kOk);
      return log.size();
    }();
    flash.cut_at(0, Tear::kRandomBits);
    EXPECT_EQ(FlashJournal<Flash>(flash).clear(), Status::kFlashFault);
    flash.power_on();
    FlashJournal<Flash> log(flash);
    EXPECT_EQ(log.open(), Status::kUnreadable);
    EXPECT_EQ(log.size(), size);
    EXPECT_GT(log.stranded_entries(), 30u);
  }
}

TEST(FlashJournal, one_wrong_read_erases_nothing) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 40}>;
  for (const Status answer : {Status::kOk, Status::kUnreadable}) {
    for (std::uint32_t read = 0; read < 400; ++read) {
      Flash& flash = erased<Flash>();
      EXPECT_TRUE(session(flash, 1));
      flash.reads = 0;
      flash.spoilt_read = read;
      flash.spoilt_answer = answer;
      FlashJournal<Flash> log(flash);
      EXPECT_EQ(log.open(), Status::kOk);
      EXPECT_GT(log.size(), 0u);
      flash.spoilt_read = Flash::kNever;
      EXPECT_EQ(entries(flash), 2 + 3);
    }
  }
}

TEST(FlashJournal, damaged_bits_of_the_beginning_are_reported_and_no_entry_is_erased) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 40}>;
  Flash& flash = erased<Flash>();
  EXPECT_TRUE(session(flash, 3));
  flash.byte(9) ^= 1;
  FlashJournal<Flash> log(flash);
  EXPECT_EQ(log.open(), Status::kUnreadable);
  EXPECT_EQ(log.stranded_entries(), 1u + 3 * 3);
  flash.byte(9) ^= 1;
  EXPECT_EQ(log.open(), Status::kOk);
  EXPECT_EQ(entries(flash), 2 + 3 * 3);
}

TEST(FlashJournal, does_not_program_a_unit_that_is_in_use) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 40}>;
  Flash& flash = erased<Flash>();
  EXPECT_TRUE(session(flash, 1));
  FlashJournal<Flash> log(flash), other(flash);
  EXPECT_EQ(log.open(), Status::kOk);
  EXPECT_EQ(other.open(), Status::kOk);
  EXPECT_EQ(log("12345678", 8), Status::kOk);
  EXPECT_EQ(other("abcdefgh", 8), Status::kNotErased);
  EXPECT_EQ(flash.misuses, 0u);
}

TEST(FlashJournal, says_when_it_is_full_and_keeps_the_entries_before) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 6}>;
  Flash& flash = erased<Flash>();
  EXPECT_FALSE(session(flash, 20));
  const int kept = entries(flash);
  EXPECT_GT(kept, 2);
  EXPECT_FALSE(session(flash, 1));
  EXPECT_EQ(entries(flash), kept);
  EXPECT_EQ(flash.misuses, 0u);
  FlashJournal<Flash> log(flash);
  EXPECT_EQ(log.open(), Status::kOk);
  EXPECT_EQ(log("12345678", 8), Status::kJournalFull);
}

TEST(FlashJournal, finds_stuck_bits) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 40}>;
  Flash& flash = erased<Flash>();
  flash.stick(77, 0xFF, 0x5A);
  EXPECT_FALSE(session(flash, 2));
}

TEST(FlashJournal, takes_a_unit_and_a_few_words_of_ram) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 40}>;
  static_assert(sizeof(FlashJournal<Flash>) <= 2 * sizeof(void*) + 8 + 12);
}
