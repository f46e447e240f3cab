// A reset of a process: the same program in it once more, from its beginning.
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "../console.hpp"
#include "../port.hpp"
#include "../ticks.hpp"

namespace port {

std::uint32_t reset_count() {
  const char* text = std::getenv("ATTUNE_RESETS");
  return text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : 0U;
}

void reset() {
  static char variable[32];
  std::snprintf(variable, sizeof variable, "ATTUNE_RESETS=%lu",
                static_cast<unsigned long>(reset_count()) + 1UL);
  ::putenv(variable);
#if defined(__linux__)
  ::execl("/proc/self/exe", "/proc/self/exe", static_cast<char*>(nullptr));
#endif
  print("reset: the program cannot start itself again on this system\n");
  exit(kFaultExitCode);
}

}  // namespace port
