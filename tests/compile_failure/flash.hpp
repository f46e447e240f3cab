// A flash of so many pages, which programs so many bytes at a time.
#pragma once

#include <attune/persistence/flash_store.hpp>

template <std::uint32_t pages, std::uint32_t program_unit = 4>
struct FlashOf {
  static constexpr std::uint32_t kPageSize = 1024, kPages = pages, kProgramUnit = program_unit;
  static constexpr unsigned char kErased = 0xFF;
  attune::Status read(std::uint32_t, void*, std::size_t);
  attune::Status program(std::uint32_t, const void*, std::size_t);
  attune::Status erase(std::uint32_t);
  attune::Status sync();
};
