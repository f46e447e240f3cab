// FNV-1a (Fowler, Noll and Vo) of what a program computed: equal on two targets when all bits are.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

struct Fnv1a {
  std::uint32_t value = 2166136261U;

  void add(std::string_view bytes) {
    for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 16777619U;
  }
  void add(const float* numbers, int count) {
    for (int i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(numbers[i]);
      for (int shift = 0; shift < 32; shift += 8) value = (value ^ (bits >> shift & 0xFFU)) * 16777619U;
    }
  }
};
