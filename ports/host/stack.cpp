// Stack painting in a process: a function whose frame is the whole zone fills it and returns, leaving the
// pattern behind below the stack pointer. The address of the frame that paints first is the origin of all
// measurements.
#include "../port.hpp"
#include "sanitizer.hpp"

namespace port {

#if ATTUNE_SANITIZED

void paint_stack() {}
std::size_t stack_high_water() { return 0; }

#else

namespace {

constexpr std::size_t kZoneWords = (std::size_t{1} << 20) / sizeof(std::uint32_t);
constexpr std::uint32_t kPaint = 0xA77E57ACU;

// The zone of the first painting, and the end of what the last painting reached.
std::uintptr_t zone_begin = 0;
std::uintptr_t zone_end = 0;

[[gnu::noinline]] void paint_frame() {
  volatile std::uint32_t frame[kZoneWords];
  for (std::size_t i = 0; i < kZoneWords; ++i) frame[i] = kPaint;
  if (zone_end == 0) {
    zone_begin = reinterpret_cast<std::uintptr_t>(&frame[0]);
    zone_end = zone_begin + sizeof frame;
  }
}

// Before main and before other constructors.
[[gnu::constructor(101)]] void paint_at_start() { paint_stack(); }

}  // namespace

void paint_stack() { paint_frame(); }

[[gnu::noinline]] std::size_t stack_high_water() {
  std::uintptr_t address = zone_begin;
  while (address < zone_end && *reinterpret_cast<const volatile std::uint32_t*>(address) == kPaint) {
    address += sizeof(std::uint32_t);
  }
  return zone_end - address;
}

#endif

}  // namespace port
