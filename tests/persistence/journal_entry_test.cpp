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

/// The reader in its shortest form, which tries every entry at every byte, and all entries if need be.
class SlowReader {
 public:
  explicit SlowReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Status next(JournalEntry& entry) {
    for (std::size_t at = at_; at < bytes_.size(); ++at) {
      if (!read_at(at, entry)) continue;
      if (at != at_ && entry.event != JournalEvent::kSession) return Status::kUnreadable;
      at_ = entry.behind;
      return Status::kOk;
    }
    return Status::kNothingStored;
  }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  [[nodiscard]] std::uint32_t word(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + at, 4);
    return value;
  }
  bool read_at(std::size_t at, JournalEntry& entry) const {
    if (bytes_.size() - at < 8) return false;
    const attune::detail::JournalHead head(word(at));
    const bool session = head.event() == JournalEvent::kSession;
    if (!head.is_event() || head.whole() > bytes_.size() - at || (!session && at < 4)) return false;
    const std::size_t end = at + head.whole() - 4;
    if (attune::crc32(bytes_.data() + at, end - at, session ? 0 : word(at - 4)) != word(end)) return false;
    entry = {head.event(), bytes_.subspan(at + 4, head.size()), at, end + 4};
    return true;
  }
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

/// The bytes that the reader visits, up to the end of a journal or its damage.
std::uint64_t visited(std::span<const std::byte> bytes) {
  JournalReader reader(bytes);
  JournalEntry entry{};
  while (reader.next(entry) == Status::kOk) {
  }
  return reader.visited();
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

TEST(JournalReader, a_journal_cut_at_any_byte_loses_only_its_last_entry) {
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

TEST(JournalReader, a_session_after_half_an_entry_continues) {
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

TEST(JournalReader, detects_every_flipped_bit) {
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

TEST(JournalReader, detects_missing_and_repeated_entries) {
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

TEST(JournalReader, reads_damaged_journals_like_a_byte_by_byte_search) {
  std::size_t at[40];
  (void)write_journal(at);
  static Memory other;
  attune::Rng rng(5);
  int damaged = 0;
  for (int run = 0; run < 3000; ++run) {
    other.clear();
    const auto below = [&rng](std::size_t end) { return static_cast<std::size_t>(rng.next()) % end; };
    for (int part = 0; part < 2; ++part) {  // parts of a journal, as cuts leave them
      const std::size_t from = run % 3 == 0 ? below(memory.size) : 0;
      other(reinterpret_cast<const char*>(memory.bytes) + from, 1 + below(memory.size - from));
    }
    for (std::size_t flips = below(4); flips > 0; --flips)
      other.bytes[below(other.size)] ^= std::byte(1u << below(8));
    JournalReader reader(other.all());
    SlowReader slow(other.all());
    for (Status read = Status::kOk; read == Status::kOk;) {
      JournalEntry entry{}, expected{};
      read = reader.next(entry);
      ASSERT_EQ(read, slow.next(expected));
      damaged += read == Status::kUnreadable;
      if (read == Status::kUnreadable) {
        ASSERT_EQ(entry.at, slow.at());
      }
      if (read != Status::kOk) break;
      ASSERT_EQ(entry.at, expected.at);
      ASSERT_EQ(entry.behind, expected.behind);
      ASSERT_EQ(entry.body.data(), expected.body.data());
    }
  }
  EXPECT_GT(damaged, 300);
}

TEST(JournalReader, reads_each_byte_of_a_damaged_journal_only_a_few_times) {
  constexpr std::size_t kSize = 1 << 14;
  static std::byte bytes[kSize];
  const auto all = std::span<const std::byte>(bytes);
  // Every byte begins an entry that reaches to the end.
  const auto expect_linear = [&](auto&& fill) {
    for (std::size_t i = 0; i < kSize; ++i) bytes[i] = static_cast<std::byte>(fill(i));
    EXPECT_LE(visited(all), 6 * kSize);
  };
  attune::Rng rng(3);
  expect_linear([&](std::size_t) { return rng.next() >> 24; });
  expect_linear([](std::size_t) { return 5; });
  expect_linear([](std::size_t i) { return i % 4 == 0 ? 10 : i % 4 == 3 ? 1 : 0; });
  expect_linear([](std::size_t i) { return i % 4 == 0 ? 5 : 0; });
  // Sessions, each behind an entry that was to be long.
  std::size_t at[40];
  (void)write_journal(at);
  std::size_t size = 0;
  int sessions = 0;
  for (; kSize - size > at[1] + 8; ++sessions) {
    std::memcpy(bytes + size, memory.bytes, at[1]);
    const std::size_t left = kSize - size - at[1] - 8;
    const std::uint32_t head = 10u | static_cast<std::uint32_t>(left) << 8;
    std::memcpy(bytes + size + at[1], &head, sizeof head);
    size += at[1] + sizeof head;
  }
  const Reading reading = read_all(all.first(size));
  EXPECT_EQ(reading.entries, sessions);
  EXPECT_EQ(reading.end, Status::kNothingStored);
  EXPECT_LE(visited(all.first(size)), 6 * size);
}
