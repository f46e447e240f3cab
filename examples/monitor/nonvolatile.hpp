// What outlives a reset: on a board RAM that start-up leaves alone, as one that a battery keeps; in a process
// a file without a name. flash.hpp treats it as flash.
#pragma once

#include <cstdint>

#include <ticks.hpp>

#include "flash.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>
#endif

namespace monitor {

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

}  // namespace monitor
