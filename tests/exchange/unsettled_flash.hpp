// Flash whose power can be cut at any operation, and whose bits do not come to rest then: a model for tests.
//
// An operation is one unit that is programmed, one page that is erased, or a sync. What a cut hits is left
// as drawn: untouched, done, or any mixture; at rest, or reading differently some times or forever, or
// unreadable, or reading as one thing until a later start and as another from then on. Good bits may be read
// wrong once. A unit may be programmed only if its page was erased to the end since something touched it:
// `misuses` counts others, and calls that are not aligned. If it `forgives`, a unit that reads as erased may
// be programmed, too, which may come to anything.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>

#include "exchange/nor_flash.hpp"

template <NorShape shape>
class UnsettledFlash {
 public:
  static constexpr std::uint32_t kPageSize = shape.page_size, kPages = shape.pages, kProgramUnit = shape.unit,
                                 kSize = kPageSize * kPages;
  static constexpr unsigned char kErased = shape.erased;
  static constexpr std::uint32_t kNever = ~0u;
  using Status = attune::Status;

  explicit UnsettledFlash(std::uint32_t first = 1) : random_(first * 2654435761u | 1u) {
    std::memset(bytes_, kErased, kSize);
  }

  // ---- The four functions. ----

  Status read(std::uint32_t at, void* to, std::size_t count) {
    if (at > kSize || count > kSize - at || count == 0) return misuse();
    if (!powered_) return Status::kFlashFault;
    auto* const bytes = static_cast<unsigned char*>(to);
    std::memcpy(bytes, bytes_ + at, count);
    if (unsettled_ > 0 && !read_unsettled(at, bytes, count)) return Status::kUnreadable;
    if (spoilt_in_ != kNever && spoilt_in_-- == 0) {
      spoilt_in_ = kNever;
      if (random() % 4 == 0) return Status::kUnreadable;
      bytes[random() % count] ^= static_cast<unsigned char>(1u << random() % 8);
    }
    return Status::kOk;
  }

  Status program(std::uint32_t at, const void* from, std::size_t count) {
    if (at > kSize || count > kSize - at || at % kProgramUnit != 0 || count % kProgramUnit != 0)
      return misuse();
    const auto* source = static_cast<const unsigned char*>(from);
    for (const auto end = static_cast<std::uint32_t>(at + count); at < end; at += kProgramUnit) {
      if (!powered_) return Status::kFlashFault;
      Row& row = rows_[at / kProgramUnit];
      if (!row.erased && !forgives) return misuse();
      if (next_is_cut()) return cut_rows(at / kProgramUnit, 1, source);
      std::memcpy(bytes_ + at, source, kProgramUnit);
      if (!row.erased && random() % 2 == 0) bytes_[at + random() % kProgramUnit] ^= 0x11;
      unsettled_ -= row.unsettled();
      row = {.erased = false};
      source += kProgramUnit;
    }
    return Status::kOk;
  }

  Status erase(std::uint32_t at) {
    if (at >= kSize || at % kPageSize != 0) return misuse();
    if (!powered_) return Status::kFlashFault;
    ++erases;
    last_erased = at / kPageSize;
    if (next_is_cut()) return cut_rows(at / kProgramUnit, kPageSize / kProgramUnit, nullptr);
    std::memset(bytes_ + at, kErased, kPageSize);
    for (std::uint32_t row = at / kProgramUnit; row < (at + kPageSize) / kProgramUnit; ++row) {
      unsettled_ -= rows_[row].unsettled();
      rows_[row] = {};
    }
    return Status::kOk;
  }

  Status sync() {
    if (!powered_) return Status::kFlashFault;
    return next_is_cut() ? lose_power() : Status::kOk;
  }

  // ---- What a test does to it. ----

  /// Cuts the power at the `operation`-th from now.
  void cut_at(std::uint32_t operation) { cut_in_ = operation; }
  /// One of the reads has a wrong bit, or cannot be corrected.
  void spoil(std::uint32_t read) { spoilt_in_ = read; }
  /// What reads as one thing until a later start may read as another from this one on.
  void power_on() {
    powered_ = true;
    cut_in_ = spoilt_in_ = kNever;
    for (std::uint32_t row = 0; unsettled_ > 0 && row < kRows; ++row) {
      if (!rows_[row].decays || random() % 2 == 0) continue;
      std::memcpy(bytes_ + row * kProgramUnit, other_ + row * kProgramUnit, kProgramUnit);
      rows_[row].decays = false;
      --unsettled_;
    }
  }
  [[nodiscard]] bool powered() const { return powered_; }
  /// Whether a cut has hit a unit of these bytes that nothing has erased or programmed to the end since.
  [[nodiscard]] bool was_cut(std::uint32_t at, std::uint32_t count) const {
    for (std::uint32_t row = at / kProgramUnit; row < (at + count) / kProgramUnit; ++row) {
      if (rows_[row].cut) return true;
    }
    return false;
  }
  std::uint32_t random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    return random_ ^= random_ << 5;
  }

  std::uint32_t misuses = 0, erases = 0, last_erased = 0;
  bool forgives = false;

 private:
  static constexpr std::uint32_t kRows = kSize / kProgramUnit;
  static constexpr std::uint8_t kForever = 255;
  struct Row {
    bool erased = true;       // to the end, and not touched since
    bool cut = false;         // and nothing has reached its end since
    bool decays = false;      // into other_, at a later start
    bool unreadable = false;  // while reads > 0
    std::uint8_t reads = 0;   // that differ
    [[nodiscard]] std::uint32_t unsettled() const { return decays || reads > 0; }
  };

  Status misuse() {
    ++misuses;
    return Status::kFlashFault;
  }
  bool next_is_cut() { return cut_in_ != kNever && cut_in_-- == 0; }
  Status lose_power() {
    powered_ = false;
    return Status::kFlashFault;
  }
  bool read_unsettled(std::uint32_t at, unsigned char* bytes, std::size_t count) {
    const auto end = static_cast<std::uint32_t>(at + count);
    bool is_readable = true;
    for (std::uint32_t i = at / kProgramUnit; i <= (end - 1) / kProgramUnit; ++i) {
      Row& row = rows_[i];
      if (row.reads == 0) continue;
      is_readable = is_readable && !row.unreadable;
      const std::uint32_t first = (std::max)(at, i * kProgramUnit);
      for (std::uint32_t byte = first; byte < (std::min)(end, (i + 1) * kProgramUnit); ++byte) {
        const auto mix = static_cast<unsigned char>(random());
        bytes[byte - at] = static_cast<unsigned char>((bytes_[byte] & ~mix) | (other_[byte] & mix));
      }
      if (row.reads != kForever && --row.reads == 0) unsettled_ -= !row.decays;
    }
    return is_readable;
  }

  /// Cuts an operation that was to make `to` of these rows; nullptr: erased ones. One manner for all of them.
  Status cut_rows(std::uint32_t first, std::uint32_t count, const unsigned char* to) {
    const std::uint32_t manner = random() % 8, part = random() % (count * kProgramUnit + 1);
    const std::uint32_t result = random() % 4, other = random() % 4;
    constexpr std::uint8_t kReads[] = {1, 2, 3, 7, 8, 20, kForever, kForever};
    const std::uint8_t reads = kReads[random() % 8];
    for (std::uint32_t i = first; i < first + count; ++i) {
      unsigned char from[kProgramUnit], into[kProgramUnit];
      std::memcpy(from, bytes_ + i * kProgramUnit, kProgramUnit);
      std::memset(into, kErased, kProgramUnit);
      if (to != nullptr) std::memcpy(into, to, kProgramUnit);
      const auto mixed = [&](std::uint32_t how, std::uint32_t byte) {
        const auto mix = static_cast<unsigned char>(random());
        const bool in_first_part = (i - first) * kProgramUnit + byte < part;
        return how == 0   ? from[byte]
               : how == 1 ? into[byte]
               : how == 2 ? (in_first_part ? into[byte] : from[byte])
                          : static_cast<unsigned char>((from[byte] & ~mix) | (into[byte] & mix));
      };
      for (std::uint32_t byte = 0; byte < kProgramUnit; ++byte) {
        bytes_[i * kProgramUnit + byte] = mixed(result, byte);
        other_[i * kProgramUnit + byte] = manner < 6 ? mixed(3 - other % 4, byte) : mixed(other, byte);
      }
      Row& row = rows_[i];
      unsettled_ -= row.unsettled();
      row = {.erased = manner == 0 && result == 0 && row.erased, .cut = true};
      if (manner >= 2 && manner < 5) row.reads = reads;
      if (manner == 5) row.reads = reads, row.unreadable = random() % 2 == 0;
      if (manner >= 6) row.decays = true;
      unsettled_ += row.unsettled();
    }
    return lose_power();
  }

  unsigned char bytes_[kSize], other_[kSize] = {};
  Row rows_[kRows];
  std::uint32_t random_, cut_in_ = kNever, spoilt_in_ = kNever;
  std::uint32_t unsettled_ = 0;  // rows
  bool powered_ = true;
};
