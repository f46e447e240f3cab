// NOR flash whose power can be cut at any operation, for tests: what was under way is torn.
//
// An operation is one unit that is programmed, one page that is erased, or a sync. Programming clears bits
// (or sets them, where erased is 00), and what was not erased whole since the last cut must not be
// programmed: `misuses` counts that, and calls that are not aligned.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>

/// What a cut leaves of the operation that it hits. kFirstPart: the bytes up to one; kRandomBits: any of
/// those that were to change; kUnreadable: error correction gives up; kFlickering: each read differs.
enum class Tear : std::uint8_t { kNotDone, kDone, kFirstPart, kRandomBits, kUnreadable, kFlickering };
inline constexpr int kTears = 6;

struct NorShape {
  std::uint32_t unit, pages;
  unsigned char erased = 0xFF;
  std::uint32_t page_size = 64;
};

template <NorShape shape>
class NorFlash {
 public:
  static constexpr std::uint32_t kPageSize = shape.page_size, kPages = shape.pages, kProgramUnit = shape.unit,
                                 kSize = kPageSize * kPages;
  static constexpr unsigned char kErased = shape.erased;
  using Status = attune::Status;

  /// Without a cut.
  static constexpr std::uint32_t kNever = ~0u;

  explicit NorFlash(std::uint32_t first = 1) {
    seed(first);
    std::memset(bytes_, kErased, kSize);
    std::memcpy(synced_, bytes_, kSize);
  }

  // ---- The four functions. ----

  Status read(std::uint32_t at, void* to, std::size_t count) {
    if (at > kSize || count > kSize - at || count == 0) return misuse();
    if (!powered_ || broken) return Status::kFlashFault;
    const bool spoilt = reads++ == spoilt_read;
    if (spoilt && spoilt_answer != Status::kOk) return spoilt_answer;
    auto* const bytes = static_cast<unsigned char*>(to);
    if (plain_) {
      std::memcpy(bytes, bytes_ + at, count);
    } else {
      for (std::uint32_t row = at / kProgramUnit; row <= (at + count - 1) / kProgramUnit; ++row) {
        if (rows_[row] == Row::kUnreadable) return Status::kUnreadable;
      }
      for (std::size_t i = 0; i < count; ++i) bytes[i] = seen(at + static_cast<std::uint32_t>(i));
    }
    if (spoilt) bytes[count / 2] ^= 0x10;
    return Status::kOk;
  }

  Status program(std::uint32_t at, const void* from, std::size_t count) {
    if (at > kSize || count > kSize - at || count == 0 || at % kProgramUnit != 0 || count % kProgramUnit != 0)
      return misuse();
    const auto* const bytes = static_cast<const unsigned char*>(from);
    for (std::uint32_t done = 0; done < count; done += kProgramUnit) {
      if (!powered_ || broken) return Status::kFlashFault;
      if (rows_[(at + done) / kProgramUnit] != Row::kErased) return misuse();
      const bool cut = next_is_cut();
      program_unit(at + done, bytes + done, cut ? tear : Tear::kDone);
      if (cut) return lose_power();
    }
    return Status::kOk;
  }

  Status erase(std::uint32_t at) {
    if (at >= kSize || at % kPageSize != 0) return misuse();
    if (!powered_ || broken) return Status::kFlashFault;
    const bool cut = next_is_cut();
    erase_page(at, cut ? tear : Tear::kDone, cut);
    return cut ? lose_power() : Status::kOk;
  }

  Status sync() {
    if (!powered_ || broken) return Status::kFlashFault;
    const bool cut = next_is_cut();
    if (cut) return lose_power();
    std::memcpy(synced_, bytes_, kSize);
    return Status::kOk;
  }

  // ---- What a test does to it. ----

  /// Cuts the power at the `operation`-th from now.
  void cut_at(std::uint32_t operation, Tear how) {
    if (how == Tear::kUnreadable || how == Tear::kFlickering) plain_ = false;
    operations = 0;
    cut_at_ = operation;
    tear = how;
  }
  void power_on() {
    powered_ = true;
    cut_at_ = kNever;
  }
  [[nodiscard]] bool powered() const { return powered_; }
  /// Bits that read as they like, whatever is programmed and erased: 0 or 1 as in `value`.
  void stick(std::uint32_t at, unsigned char bits, unsigned char value) {
    plain_ = false;
    stuck_at_ = at;
    stuck_bits_ = bits;
    stuck_value_ = value;
  }
  /// Bytes from somewhere else, as flash that had another use.
  void fill(unsigned char byte) {
    for (unsigned char& each : bytes_) each = byte;
    for (Row& row : rows_) row = Row::kWritten;
  }
  [[nodiscard]] unsigned char& byte(std::uint32_t at) { return bytes_[at]; }
  void flicker(std::uint32_t at, unsigned char bits) {
    plain_ = false;
    flickering_[at] = bits;
  }
  /// Begins another sequence of random numbers.
  void seed(std::uint32_t seed) { random_ = seed * 2654435761u | 1u; }
  std::uint32_t random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    return random_ ^= random_ << 5;
  }

  std::uint32_t operations = 0, reads = 0, misuses = 0;
  std::uint32_t spoilt_read = kNever;  // counted from 0: it has a wrong bit, or answers
  Status spoilt_answer = Status::kOk;
  bool broken = false;  // every call fails
  bool cached = false;  // what was not synced may be lost with the power
  Tear tear = Tear::kNotDone;

 private:
  // kSuspect: an erase of it was cut, so that it may read erased and is not, or it is worn.
  enum class Row : std::uint8_t { kSuspect, kErased, kWritten, kUnreadable };

  Status misuse() {
    ++misuses;
    return Status::kFlashFault;
  }
  bool next_is_cut() { return operations++ == cut_at_; }
  Status lose_power() {
    powered_ = false;
    if (!cached) return Status::kFlashFault;
    for (std::uint32_t at = 0; at < kSize; at += kProgramUnit) {
      if (std::memcmp(bytes_ + at, synced_ + at, kProgramUnit) == 0 || (random() & 1) != 0) continue;
      std::memcpy(bytes_ + at, synced_ + at, kProgramUnit);
      std::memset(flickering_ + at, 0, kProgramUnit);
      rows_[at / kProgramUnit] = Row::kSuspect;
    }
    std::memcpy(synced_, bytes_, kSize);
    return Status::kFlashFault;
  }
  unsigned char seen(std::uint32_t at) {
    auto value = bytes_[at];
    if (flickering_[at] != 0) value = static_cast<unsigned char>(value ^ (flickering_[at] & random()));
    if (at == stuck_at_)
      value = static_cast<unsigned char>((value & ~stuck_bits_) | (stuck_value_ & stuck_bits_));
    return value;
  }
  /// A byte on its way to another value, hit by a cut.
  void tear_byte(std::uint32_t at, unsigned char to, Tear how, bool in_first_part) {
    const auto changes = static_cast<unsigned char>(bytes_[at] ^ to);
    switch (how) {
      case Tear::kNotDone:
        return;
      case Tear::kDone:
        bytes_[at] = to;
        flickering_[at] = 0;
        return;
      case Tear::kFirstPart:
        if (in_first_part) bytes_[at] = to;
        return;
      case Tear::kFlickering:
        flickering_[at] = changes;
        [[fallthrough]];
      case Tear::kRandomBits:
      case Tear::kUnreadable:
        bytes_[at] = static_cast<unsigned char>(bytes_[at] ^ (changes & random()));
    }
  }
  void program_unit(std::uint32_t at, const unsigned char* from, Tear how) {
    const std::uint32_t part = random() % (kProgramUnit + 1);
    for (std::uint32_t i = 0; i < kProgramUnit; ++i) {
      const auto to = kErased == 0xFF ? bytes_[at + i] & from[i] : bytes_[at + i] | from[i];
      tear_byte(at + i, static_cast<unsigned char>(to), how, i < part);
    }
    rows_[at / kProgramUnit] = how == Tear::kUnreadable ? Row::kUnreadable : Row::kWritten;
  }
  void erase_page(std::uint32_t at, Tear how, bool cut) {
    const std::uint32_t part = random() % (kPageSize + 1);
    if (plain_ && !cut) {
      std::memset(bytes_ + at, kErased, kPageSize);
      std::fill_n(rows_ + at / kProgramUnit, kPageSize / kProgramUnit, Row::kErased);
      return;
    }
    for (std::uint32_t row = at / kProgramUnit; row < (at + kPageSize) / kProgramUnit; ++row) {
      const bool unreadable = how == Tear::kUnreadable && random() % 4 == 0;
      for (std::uint32_t i = row * kProgramUnit; i < (row + 1) * kProgramUnit; ++i)
        tear_byte(i, kErased, how, i < at + part);
      const bool untouched =
          how == Tear::kNotDone || (how == Tear::kFirstPart && row * kProgramUnit >= at + part);
      if (cut && untouched) continue;
      const bool stuck = stuck_at_ / kProgramUnit == row && seen(stuck_at_) != kErased;
      rows_[row] = unreadable ? Row::kUnreadable : cut || stuck ? Row::kSuspect : Row::kErased;
    }
  }

  unsigned char bytes_[kSize], synced_[kSize], flickering_[kSize] = {};
  Row rows_[kSize / kProgramUnit] = {};
  std::uint32_t random_, cut_at_ = kNever, stuck_at_ = kNever;
  unsigned char stuck_bits_ = 0, stuck_value_ = 0;
  bool powered_ = true;
  bool plain_ = true;  // no byte is stuck, flickers or cannot be read, so that reads and erasures are copies
};
