// Instructions as the kernel counts them. Many do not: containers forbid it, virtual machines lack the
// counter.
#include "../instructions.hpp"

#if !defined(__thumb__)
#if defined(__aarch64__)
#define begin_counting begin_kernel_counter
#define end_counting end_kernel_counter
#endif

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace port {

#if defined(__linux__)

namespace {

int open_counter() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
  attributes.disabled = 1;
  attributes.pinned = 1;  // all of the time or not at all: no estimate
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

int counter() {
  static const int descriptor = open_counter();
  return descriptor;
}

}  // namespace

void begin_counting() {
  if (counter() < 0) return;
  ::ioctl(counter(), PERF_EVENT_IOC_RESET, 0);
  ::ioctl(counter(), PERF_EVENT_IOC_ENABLE, 0);
}

std::uint64_t end_counting() {
  if (counter() < 0) return 0;
  ::ioctl(counter(), PERF_EVENT_IOC_DISABLE, 0);
  std::uint64_t instructions = 0;
  return ::read(counter(), &instructions, sizeof instructions) == sizeof instructions ? instructions : 0;
}

#else

void begin_counting() {}
std::uint64_t end_counting() { return 0; }

#endif

}  // namespace port

#endif
