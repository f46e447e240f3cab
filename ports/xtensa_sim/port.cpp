// The port functions that Cadence's simulator, and QEMU's sim machine, answer by SIMCALL: the call in a2, its
// arguments in a3 to a5, the answer in a2.
#include "port.hpp"

#include <string_view>

namespace port {
namespace {

enum class Call : int { kExit = 1, kWrite = 4, kCount = 1000, kSize = 1001, kWords = 1002 };

int simulate(Call call, std::uintptr_t first = 0, std::uintptr_t second = 0, std::uintptr_t third = 0) {
  register int a2 asm("a2") = static_cast<int>(call);
  register std::uintptr_t a3 asm("a3") = first;
  register std::uintptr_t a4 asm("a4") = second;
  register std::uintptr_t a5 asm("a5") = third;
  asm volatile("simcall" : "+r"(a2), "+r"(a3) : "r"(a4), "r"(a5) : "memory");
  return a2;
}

std::uintptr_t address(const void* of) { return reinterpret_cast<std::uintptr_t>(of); }

}  // namespace

void write(const char* text, std::size_t length) {
  constexpr std::uintptr_t kOutput = 1;
  simulate(Call::kWrite, kOutput, address(text), length);
}

// The simulator has words: addresses of all of them, then their characters.
void command_line(char* text, std::size_t size) {
  constexpr std::size_t kMost = 512;
  alignas(4) static char words[kMost];
  text[0] = '\0';
  if (static_cast<std::size_t>(simulate(Call::kSize)) > kMost) return;
  const int count = simulate(Call::kCount);
  simulate(Call::kWords, address(words));
  const char* const* word = reinterpret_cast<const char* const*>(words);
  std::size_t at = 0;
  for (int i = 0; i < count; ++i) {
    for (const char* from = word[i]; *from != '\0' && at + 2 < size; ++from) text[at++] = *from;
    if (i + 1 < count && at + 2 < size) text[at++] = ' ';
  }
  text[at] = '\0';
}

bool is_terminal() {
  char text[256] = {};
  command_line(text, sizeof text);
  return std::string_view(text).find("--terminal") != std::string_view::npos;
}

// The processor's counter of cycles, which overflows: whoever asks more than once in its period sees all of
// them. Divisions of 64 bits are none of Debian's libgcc for it.
std::uint64_t microseconds() {
  constexpr std::uint32_t kCycles = ATTUNE_CLOCK_HERTZ / 1'000'000;
  static std::uint32_t last = 0;
  static std::uint64_t passed = 0;
  std::uint32_t now;
  asm volatile("rsr %0, ccount" : "=r"(now));
  const std::uint32_t since = (now - last) / kCycles;
  passed += since;
  last += since * kCycles;
  return passed;
}

void exit(int code) {
  for (;;) simulate(Call::kExit, static_cast<std::uintptr_t>(code));
}

std::size_t heap_calls() { return 0; }

}  // namespace port
