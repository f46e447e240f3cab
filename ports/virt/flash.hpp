// The second flash of QEMU's virt machine as attune::FlashStore wants it: two 16-bit chips side by side with
// Intel's commands (JEDEC JESD68, Common Flash Interface, command set 0001), each command to both. It lasts
// in the file that ports/run is given as ATTUNE_FLASH.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>

#include "cortex_a/memory.hpp"

namespace port {

class Flash {
 public:
  static constexpr std::uint32_t kPageSize = 256 * 1024, kPages = 4, kProgramUnit = 4;
  static constexpr unsigned char kErased = 0xFF;
  static constexpr std::uintptr_t kBegin = 0x04000000;

  Flash() { map_device(kBegin, kBegin + kPages * kPageSize); }

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    // Whole words, as device memory takes no others.
    auto* destination = static_cast<unsigned char*>(to);
    for (std::size_t done = 0, part; done < bytes; done += part) {
      const std::uint32_t inside = static_cast<std::uint32_t>(at + done) % kProgramUnit;
      const std::uint32_t unit = word_at(static_cast<std::uint32_t>(at + done) - inside);
      part = kProgramUnit - inside < bytes - done ? kProgramUnit - inside : bytes - done;
      std::memcpy(destination + done, reinterpret_cast<const unsigned char*>(&unit) + inside, part);
    }
    return attune::Status::kOk;
  }

  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    const auto* const source = static_cast<const unsigned char*>(from);
    for (std::size_t done = 0; done < bytes; done += kProgramUnit) {
      std::uint32_t unit;
      std::memcpy(&unit, source + done, sizeof unit);
      const auto place = static_cast<std::uint32_t>(at + done);
      word_at(place) = kProgram;
      word_at(place) = unit;
      if (const attune::Status status = finish(place); status != attune::Status::kOk) return status;
    }
    return attune::Status::kOk;
  }

  attune::Status erase(std::uint32_t at) {
    word_at(at) = kErase;
    word_at(at) = kConfirm;
    return finish(at);
  }

  attune::Status sync() { return attune::Status::kOk; }

 private:
  static constexpr std::uint32_t kProgram = 0x00400040, kErase = 0x00200020, kConfirm = 0x00D000D0,
                                 kClearStatus = 0x00500050, kReadArray = 0x00FF00FF, kReady = 0x00800080,
                                 kErrors = 0x003A003A;

  static volatile std::uint32_t& word_at(std::uint32_t at) {
    return *reinterpret_cast<volatile std::uint32_t*>(kBegin + at);
  }
  /// Waits, and goes back to reading. A flash that is not there answers nothing that looks ready.
  static attune::Status finish(std::uint32_t at) {
    std::uint32_t state = 0;
    for (int tries = 0; tries < 10'000'000 && (state & kReady) != kReady; ++tries) state = word_at(at);
    word_at(at) = kClearStatus;
    word_at(at) = kReadArray;
    return (state & (kReady | kErrors)) == kReady ? attune::Status::kOk : attune::Status::kFlashFault;
  }
};

}  // namespace port
