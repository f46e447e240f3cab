// Text for both programs.
#include <bit>
#include <cstdint>

#include <console.hpp>

extern "C" void print_bits(const char* name, const float* numbers, int count) {
  port::print("bits ", name);
  for (int i = 0; i < count; ++i) port::print(' ', port::hex8(std::bit_cast<std::uint32_t>(numbers[i])));
  port::print('\n');
}
extern "C" void print_check(const char* name, int holds) {
  port::print(holds != 0 ? "holds " : "FAILS ", name, '\n');
}
