// The reader of journals: whole, cut, flipped and half entries.
#include <attune/persistence/journal_entry.hpp>

#include "check.hpp"
#include "persistence/journal_of_version_1.hpp"
#include "persistence/journaled_training.hpp"

namespace {

using namespace journaled;
using attune::JournalEntry;
using attune::JournalEvent;
using attune::JournalReader;
using attune::Status;

Memory memory;
Trainer trainer;

struct Reading {
  int entries;
  Status end;
  std::size_t rest, at;  // at: of the last entry, or of the damage
};
Reading read_all(std::span<const std::byte> bytes) {
  JournalReader reader(bytes);
  JournalEntry entry{};
  Reading reading{};
  while ((reading.end = reader.next(entry)) == Status::kOk) ++reading.entries;
  reading.rest = reader.rest();
  reading.at = entry.at;
  return reading;
}
/// Writes a journal into memory. Where each of its entries begins, and at last its end; returns their number.
int write_journal(std::size_t (&at)[40]) {
  memory.clear();
  EXPECT_TRUE(train(trainer, memory));
  JournalReader reader(memory.all());
  JournalEntry entry{};
  int count = 0;
  for (; reader.next(entry) == Status::kOk; ++count) at[count] = entry.at;
  at[count] = memory.size;
  return count;
}

}  // namespace

TEST(JournalReader, reads_all_of_a_journal_of_version_1) {
  const auto bytes = std::as_bytes(std::span(kJournalOfVersion1));
  const Reading reading = read_all(bytes);
  EXPECT_EQ(reading.entries, 28);
  EXPECT_EQ(reading.end, Status::kNothingStored);
  EXPECT_EQ(reading.rest, 0u);
  JournalEntry entry{};
  JournalReader reader(bytes);
  EXPECT_EQ(reader.next(entry), Status::kOk);
  attune::JournalSession session{};
  EXPECT_TRUE(entry.event == JournalEvent::kSession && entry.read(session));
  EXPECT_EQ(session.version, 1u);
  EXPECT_EQ(session.base_crc, 0x1234u);
  EXPECT_EQ(session.hash_every, 2u);
  EXPECT_EQ(reader.next(entry), Status::kOk);
  attune::JournalPoint point{};
  EXPECT_TRUE(entry.event == JournalEvent::kStarted && entry.read(point));
  EXPECT_EQ(point.number, 7u);
  EXPECT_EQ(point.steps, 0u);
}

TEST(JournalReader, an_empty_journal_and_erased_flash_have_no_entries) {
  EXPECT_EQ(read_all({}).end, Status::kNothingStored);
  for (const int byte : {0x00, 0xFF}) {
    unsigned char erased[100];
    std::memset(erased, byte, sizeof erased);
    const Reading reading = read_all(std::as_bytes(std::span(erased)));
    EXPECT_EQ(reading.entries, 0);
    EXPECT_EQ(reading.end, Status::kNothingStored);
  }
}

TEST(JournalReader, a_journal_cut_at_any_byte_loses_its_last_entry_alone) {
  std::size_t at[40];
  const int count = write_journal(at);
  int whole = 0;
  for (std::size_t size = 0; size < memory.size; ++size) {
    if (whole < count && size == at[whole + 1]) ++whole;
    const Reading reading = read_all(memory.all().first(size));
    EXPECT_EQ(reading.entries, whole);
    EXPECT_EQ(reading.end, Status::kNothingStored);
    EXPECT_LE(reading.rest, size - at[whole]);
    EXPECT_EQ(reading.rest > 0, size > at[whole]);  // no event is 0 or 255
  }
}

TEST(JournalReader, a_session_behind_half_an_entry_goes_on) {
  std::size_t at[40];
  const int count = write_journal(at);
  static Memory both;
  for (const int last : {2, 7, 9}) {
    for (std::size_t part = 1; part < at[last + 1] - at[last]; ++part) {
      both.clear();
      both(reinterpret_cast<const char*>(memory.bytes), at[last] + part);
      const char erased[] = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
      both(erased, part % 9);
      both(reinterpret_cast<const char*>(memory.bytes), memory.size);
      const Reading reading = read_all(both.all());
      EXPECT_EQ(reading.entries, last + count);
      EXPECT_EQ(reading.end, Status::kNothingStored);
    }
  }
}

TEST(JournalReader, finds_each_flipped_bit) {
  std::size_t at[40];
  const int count = write_journal(at);
  int damaged = 0;  // the entry
  for (std::size_t byte = 0; byte < memory.size; ++byte) {
    if (byte == at[damaged + 1]) ++damaged;
    memory.bytes[byte] ^= std::byte(1u << byte % 8);
    const Reading reading = read_all(memory.all());
    memory.bytes[byte] ^= std::byte(1u << byte % 8);
    if (reading.end == Status::kUnreadable) {
      EXPECT_EQ(reading.entries, damaged);
      EXPECT_EQ(reading.at, at[damaged]);
      continue;
    }
    // At the end of a session it is as a cut: the last entry is lost, and the one before if the bit is in its
    // CRC.
    const int lost = count - reading.entries;
    EXPECT_TRUE(lost == 1 || (lost == 2 && byte >= at[damaged + 1] - sizeof(std::uint32_t)));
    const int last = damaged + lost - 1;
    JournalEntry entry{};
    JournalReader behind(memory.all().subspan(at[last + 1]));
    EXPECT_TRUE(last == count - 1 || (behind.next(entry) == Status::kOk &&
                                      entry.event == JournalEvent::kSession && entry.at == 0));
  }
}

TEST(JournalReader, finds_an_entry_that_is_missing_or_comes_twice) {
  std::size_t at[40];
  (void)write_journal(at);
  static Memory other;
  for (const int entry : {2, 3, 5}) {
    for (const bool twice : {false, true}) {
      other.clear();
      other(reinterpret_cast<const char*>(memory.bytes), at[twice ? entry + 1 : entry]);
      const std::size_t from = at[twice ? entry : entry + 1];
      other(reinterpret_cast<const char*>(memory.bytes) + from, memory.size - from);
      const Reading reading = read_all(other.all());
      EXPECT_EQ(reading.end, Status::kUnreadable);
      EXPECT_EQ(reading.entries, twice ? entry + 1 : entry);
    }
  }
}
