// What outlives a reset: on a board RAM that start-up leaves alone, as one that a battery keeps; in a process
// a file without a name. Flash treats it as NOR flash: programming only clears bits.
#pragma once

#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>
#include <ticks.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>
#endif

namespace monitor {

inline constexpr std::uint32_t kPageSize = 1024, kPages = 24;

struct Nonvolatile {
  unsigned char flash[kPageSize * kPages];
  // As in the backup registers of a clock: since the power came.
  std::uint32_t late_ticks, late_windows, windows_in_training, rows_printed, window_of_reset, reset_during;
};

#if defined(__unix__) || defined(__APPLE__)

/// So many bytes, zero at first; nullptr where there is no temporary file. A reset hands its descriptor on.
inline void* map_file(std::size_t bytes) {
  static char variable[32];
  constexpr const char* kName = "ATTUNE_NONVOLATILE";
  int file = -1;
  if (port::reset_count() > 0 && std::getenv(kName) != nullptr) {
    file = std::atoi(std::getenv(kName));
  } else {
    std::FILE* const temporary = std::tmpfile();
    if (temporary == nullptr) return nullptr;
    file = ::dup(::fileno(temporary));
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
    std::snprintf(variable, sizeof variable, "%s=%d", kName, file);
    ::putenv(variable);
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory != MAP_FAILED ? memory : nullptr;
}
inline Nonvolatile* map_nonvolatile() { return static_cast<Nonvolatile*>(map_file(sizeof(Nonvolatile))); }

#else

[[gnu::section(".noinit")]] inline Nonvolatile in_ram;
inline Nonvolatile* map_nonvolatile() { return &in_ram; }

#endif

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
