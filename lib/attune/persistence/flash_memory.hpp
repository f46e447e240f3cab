// The interface of a flash, for FlashStore and FlashJournal: a type that describes the flash and transfers
// bytes. `at` counts bytes from the start of the store or journal:
//
//   static constexpr std::uint32_t kPageSize;     // bytes that are erased together
//   static constexpr std::uint32_t kPages;        // of the store or journal
//   static constexpr std::uint32_t kProgramUnit;  // 1 to 32 bytes that are programmed together
//   static constexpr unsigned char kErased;       // value of an erased byte, 0xFF or 0x00
//   attune::Status read(std::uint32_t at, void* to, std::size_t bytes);            // any place and number
//   attune::Status program(std::uint32_t at, const void* from, std::size_t bytes); // whole units; from: any
//   attune::Status erase(std::uint32_t at);       // one page
//   attune::Status sync();                        // returns when all before is in the flash
//
// read returns kUnreadable for bytes that error correction cannot restore, as a power cut may leave them. Any
// other error (kFlashFault, of a bus or a driver) ends the call.
//
// FlashStore and FlashJournal erase one page at a time and program one unit at a time, never twice, and only
// after reading it as erased. Write-once flash (ECC rows) therefore needs nothing else.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <attune/core/status.hpp>
#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

/// The interface of a flash: see the top of this file.
template <class Flash>
concept FlashMemory = requires(Flash& flash, std::uint32_t at, void* to, const void* from,
                               std::size_t bytes) {
  { Flash::kPageSize + Flash::kPages + Flash::kProgramUnit } -> std::integral;
  { Flash::kErased } -> std::convertible_to<unsigned char>;
  { flash.read(at, to, bytes) } -> std::same_as<Status>;
  { flash.program(at, from, bytes) } -> std::same_as<Status>;
  { flash.erase(at) } -> std::same_as<Status>;
  { flash.sync() } -> std::same_as<Status>;
};

namespace detail {

/// A condition of a static assertion, which prints both numbers.
template <std::uint64_t pages, std::uint64_t needed>
concept HasPages = pages >= needed;

/// How often bytes are read before they count as damaged. A power cut leaves bits that read
/// differently from time to time, and a read of good bits may fail once.
inline constexpr int kFlashReads = 8;

/// Whether all bytes are erased.
template <class Flash>
[[nodiscard]] constexpr bool is_erased(const unsigned char* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes[i] != Flash::kErased) return false;
  }
  return true;
}

/// Programs one unit, which is read before. kNotErased: it is in use, or worn; nothing is programmed then.
template <class Flash>
[[gnu::noinline]] Status program_unit(Flash& flash, std::uint32_t at, const unsigned char* unit) {
  unsigned char before[Flash::kProgramUnit];
  Status status = flash.read(at, before, sizeof before);
  if (status == Status::kUnreadable) return Status::kNotErased;
  if (status != Status::kOk) return status;
  if (!is_erased<Flash>(before, sizeof before)) return Status::kNotErased;
  return flash.program(at, unit, Flash::kProgramUnit);
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
