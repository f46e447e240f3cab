// Stack painting: everything between the stack limit of sections.ld and the current frame.
#include "../port.hpp"
#include "memory_map.hpp"

namespace port {
namespace {
constexpr std::uint32_t kPaint = 0xA77E57ACU;
}

[[gnu::noinline]] void paint_stack() {
  const auto* const frame = static_cast<const std::uint32_t*>(__builtin_frame_address(0));
  constexpr int kOwnFrameWords = 32;
  for (volatile std::uint32_t* word = stack_limit; word < frame - kOwnFrameWords; ++word) *word = kPaint;
}

std::size_t stack_high_water() {
  const volatile std::uint32_t* word = stack_limit;
  while (word < stack_top && *word == kPaint) ++word;
  return static_cast<std::size_t>(stack_top - word) * sizeof(std::uint32_t);
}

}  // namespace port
