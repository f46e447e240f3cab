// The flash of programs on pages: an array in RAM.
#pragma once

#include <cstdint>
#include <cstring>

#include <attune/attune.hpp>

template <std::uint32_t page_size, std::uint32_t pages>
class PageFlash {
 public:
  static constexpr std::uint32_t kPageSize = page_size, kPages = pages, kProgramUnit = 8;
  static constexpr unsigned char kErased = 0xFF;

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    std::memcpy(to, pages_ + at, bytes);
    return attune::Status::kOk;
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    std::memcpy(pages_ + at, from, bytes);
    return attune::Status::kOk;
  }
  attune::Status erase(std::uint32_t at) {
    std::memset(pages_ + at, kErased, kPageSize);
    return attune::Status::kOk;
  }
  attune::Status sync() { return attune::Status::kOk; }

 private:
  unsigned char pages_[kPageSize * kPages] = {};
};
