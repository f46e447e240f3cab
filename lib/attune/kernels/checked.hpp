// Checked mode, ATTUNE_CHECKED=1: run-time assertions for a caller's promises that no type can express. Views
// must have data, be aligned and lie within their matrix; inputs and outputs must not overlap; ids and rows
// must exist; the processor must round to nearest and keep subnormal numbers; a layer must not write NaN from
// small numbers, nor outside of its memory (execution/checked_step.hpp). Off by default; then it compiles to
// nothing.
//
//   attune::on_failed_check = [](const char* what) { log(what); reset(); };  // a product's own handler
//
// A handler may throw on a PC. If it returns, the call continues as without the check.
#pragma once

#include <attune/kernels/policy.hpp>

#if ATTUNE_CHECKED

#include <bit>
#include <cstdint>
#if __has_include(<unistd.h>) && (defined(__unix__) || defined(__APPLE__))
#include <cstdio>
#include <cstdlib>
#endif

namespace ATTUNE_NAMESPACE {

namespace detail {

[[noreturn]] inline void stop_at_failed_check([[maybe_unused]] const char* what) {
#if __has_include(<unistd.h>) && (defined(__unix__) || defined(__APPLE__))
  std::fputs(what, stderr);
  std::fputc('\n', stderr);
  std::abort();
#else
  __builtin_trap();
#endif
}

/// Whether two memory ranges overlap.
inline bool overlap(const void* first, std::uintptr_t bytes, const void* other, std::uintptr_t other_bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(first), there = reinterpret_cast<std::uintptr_t>(other);
  return at < there + other_bytes && there < at + bytes;
}

/// Whether this thread still rounds to nearest and keeps subnormal numbers. A library that is loaded later,
/// or a task with registers of its own, may have set other modes than SelfTest saw. True where a vector unit
/// flushes by design.
[[nodiscard]] inline bool has_default_rounding() {
  volatile float subnormal = std::bit_cast<float>(std::uint32_t{2}), half = 0.5f;
  const volatile float halved = subnormal * half;
  volatile float one = 1.0f, tie = 0x1p-24f, above_tie = 0x1.8p-24f;
  const volatile float down = one + tie, up = one + above_tie;
  const bool keeps_subnormals = kFlushesSubnormals || std::bit_cast<std::uint32_t>(float{halved}) == 1;
  return keeps_subnormals && std::bit_cast<std::uint32_t>(float{down}) == 0x3F800000u &&
         std::bit_cast<std::uint32_t>(float{up}) == 0x3F800001u;
}

}  // namespace detail

/// Called with a sentence when a check fails. Default: on a PC, prints the sentence to stderr and aborts;
/// elsewhere, a trap.
inline void (*on_failed_check)(const char* what) = detail::stop_at_failed_check;

}  // namespace ATTUNE_NAMESPACE

#define ATTUNE_ASSERT(condition, what) ((condition) ? void() : ::attune::on_failed_check("attune: " what))
#else
#define ATTUNE_ASSERT(condition, what) void()
#endif

/// Before results become permanent, by an update or a save.
#define ATTUNE_ASSERT_ROUNDING()                                                                        \
  ATTUNE_ASSERT(::attune::detail::has_default_rounding(),                                               \
                "this thread flushes subnormal numbers to zero, or does not round to nearest; restore " \
                "the processor's default floating-point mode")
