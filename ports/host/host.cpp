// The POSIX process as a port.
#include <cerrno>
#include <cstdlib>
#include <ctime>

#include <unistd.h>

#include "../port.hpp"

namespace port {

// Straight to the descriptor: stdio would allocate its buffer on the heap that heap_calls() watches.
void write(const char* text, std::size_t length) {
  while (length > 0) {
    const ssize_t written = ::write(STDOUT_FILENO, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text += written;
    length -= static_cast<std::size_t>(written);
  }
}

// ATTUNE_TERMINAL is how examples/run says that a terminal follows its pipe.
bool is_terminal() { return ::isatty(STDOUT_FILENO) != 0 || std::getenv("ATTUNE_TERMINAL") != nullptr; }

// A process cannot reach the arguments of its main everywhere; examples/run puts them into the environment.
void command_line(char* text, std::size_t size) {
  const char* arguments = std::getenv("ATTUNE_ARGUMENTS");
  std::size_t length = 0;
  for (; arguments != nullptr && arguments[length] != '\0' && length + 1 < size; ++length)
    text[length] = arguments[length];
  text[length] = '\0';
}

std::uint64_t microseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000U;
}

void exit(int code) { std::exit(code); }

}  // namespace port
