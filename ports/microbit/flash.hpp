// The end of the micro:bit's flash as attune::FlashStore wants it, over the nRF51's controller of
// non-volatile memory (Nordic Semiconductor, "nRF51 Series Reference Manual", NVMC). memory.ld keeps programs
// out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>

namespace port {

/// The processor waits while the controller works: a word takes 46 µs, a page 22 ms.
class Flash {
 public:
  static constexpr std::uint32_t kPageSize = 1024, kPages = 16, kProgramUnit = 4;
  static constexpr unsigned char kErased = 0xFF;
  static constexpr std::uintptr_t kBegin = 256 * 1024 - kPages * kPageSize;

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    std::memcpy(to, reinterpret_cast<const void*>(kBegin + at), bytes);
    return attune::Status::kOk;
  }

  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    allow(kWrite);
    const auto* const source = static_cast<const unsigned char*>(from);
    for (std::size_t done = 0; done < bytes; done += kProgramUnit) {
      std::uint32_t unit;
      std::memcpy(&unit, source + done, sizeof unit);
      at_address(kBegin + at + done) = unit;
      wait();
    }
    allow(kReadOnly);
    return attune::Status::kOk;
  }

  attune::Status erase(std::uint32_t at) {
    allow(kErase);
    at_address(kErasePage) = static_cast<std::uint32_t>(kBegin + at);
    wait();
    allow(kReadOnly);
    return attune::Status::kOk;
  }

  attune::Status sync() { return attune::Status::kOk; }

 private:
  static constexpr std::uintptr_t kReady = 0x4001E400, kConfig = 0x4001E504, kErasePage = 0x4001E508;
  static constexpr std::uint32_t kReadOnly = 0, kWrite = 1, kErase = 2;

  static volatile std::uint32_t& at_address(std::uintptr_t address) {
    return *reinterpret_cast<volatile std::uint32_t*>(address);
  }
  static void wait() {
    while ((at_address(kReady) & 1u) == 0) {
    }
  }
  static void allow(std::uint32_t what) {
    at_address(kConfig) = what;
    wait();
  }
};

}  // namespace port
