// Of Zephyr's flash map, what the adapter calls: partition 3, pages of 4 KB, 16 bytes at a time.
#pragma once

#include <sys/types.h>

#include <cerrno>

#include "exchange/stubs/memory.hpp"

struct flash_area {
  std::uint8_t fa_id;
  off_t fa_off;
  std::size_t fa_size;
};
inline constexpr flash_area kStubArea{3, 0, stub::kSize};

inline int flash_area_open(std::uint8_t id, const flash_area** area) {
  *area = &kStubArea;
  return id == 3 ? 0 : -ENOENT;
}
inline void flash_area_close(const flash_area*) {}
inline std::uint32_t flash_area_align(const flash_area*) { return 16; }
inline std::uint8_t flash_area_erased_val(const flash_area*) { return 0xFF; }
inline int flash_area_read(const flash_area*, off_t at, void* to, std::size_t bytes) {
  if (at < 0 || static_cast<std::size_t>(at) + bytes > stub::kSize) return -EINVAL;
  if (stub::torn) return -EIO;
  std::memcpy(to, stub::memory + at, bytes);
  return 0;
}
inline int flash_area_write(const flash_area*, off_t at, const void* from, std::size_t bytes) {
  return stub::program(static_cast<std::size_t>(at), from, bytes, 16) ? 0 : -EINVAL;
}
inline int flash_area_erase(const flash_area*, off_t at, std::size_t bytes) {
  return stub::erase(static_cast<std::size_t>(at), bytes, 4096) ? 0 : -EINVAL;
}
