// Memory that behaves as NOR flash: programming only clears bits.
#pragma once

#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>

namespace monitor {

inline constexpr std::uint32_t kPageSize = 1024, kPages = 24;

/// Of attune::FlashStore.
class Flash {
 public:
  static constexpr std::uint32_t kPageSize = monitor::kPageSize, kPages = monitor::kPages, kProgramUnit = 4;
  static constexpr unsigned char kErased = 0xFF;

  explicit Flash(unsigned char* memory) : memory_(memory) {}

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    std::memcpy(to, memory_ + at, bytes);
    return attune::Status::kOk;
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    const auto* const source = static_cast<const unsigned char*>(from);
    for (std::size_t i = 0; i < bytes; ++i) {
      memory_[at + i] = static_cast<unsigned char>(memory_[at + i] & source[i]);
    }
    return attune::Status::kOk;
  }
  attune::Status erase(std::uint32_t at) {
    std::memset(memory_ + at, kErased, kPageSize);
    return attune::Status::kOk;
  }
  attune::Status sync() { return attune::Status::kOk; }

 private:
  unsigned char* memory_;
};

}  // namespace monitor
