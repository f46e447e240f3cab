// The port functions that an emulator answers, for every Arm core.
#include "semihosting.hpp"

#include <string_view>

#include "../port.hpp"

namespace port {
namespace {

using semihosting::call;
using semihosting::Operation;

std::uint32_t word(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer));
}

std::int32_t open_console() {
  static constexpr char kConsole[] = ":tt";
  constexpr std::uint32_t kModeWrite = 4;
  const std::uint32_t block[] = {word(kConsole), kModeWrite, sizeof kConsole - 1};
  return call(Operation::kOpen, block);
}

}  // namespace

void write(const char* text, std::size_t length) {
  static std::int32_t console = 0;  // handle 0 is never given out
  if (console == 0) console = open_console();
  if (console < 0) return;
  const std::uint32_t block[] = {static_cast<std::uint32_t>(console), word(text), length};
  call(Operation::kWrite, block);
}

// The emulator's semihosting command line, whose first word is the program.
void command_line(char* text, std::size_t size) {
  std::uint32_t block[] = {word(text), size};
  if (call(Operation::kGetCommandLine, block) != 0) text[0] = '\0';
}

// The runner adds --terminal.
bool is_terminal() {
  char text[256] = {};
  command_line(text, sizeof text);
  return std::string_view(text).find("--terminal") != std::string_view::npos;
}

void exit(int code) {
  constexpr std::uint32_t kApplicationExit = 0x20026;
  const std::uint32_t block[] = {kApplicationExit, static_cast<std::uint32_t>(code)};
  for (;;) call(Operation::kExitExtended, block);
}

std::size_t heap_calls() { return 0; }

}  // namespace port
