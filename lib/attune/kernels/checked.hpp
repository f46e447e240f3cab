// Checked mode, ATTUNE_CHECKED=1: asserts at run time what a caller promises and no type can say: views of
// something, aligned and within their matrix, inputs and outputs that do not overlap, ids and rows that
// exist. Off by default, and then nothing is left of it.
//
//   attune::on_failed_check = [](const char* what) { log(what); reset(); };  // a product's own handler
//
// A handler may throw on a PC. If it returns, the call goes on as without a check.
#pragma once

#include <attune/kernels/policy.hpp>

#if ATTUNE_CHECKED

#include <cstdint>
#if __has_include(<unistd.h>) && (defined(__unix__) || defined(__APPLE__))
#include <cstdio>
#include <cstdlib>
#endif

namespace attune::inline ATTUNE_ARITHMETIC {

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

/// Whether two runs of scalars have one in common.
inline bool overlap(const void* first, std::uintptr_t bytes, const void* other, std::uintptr_t other_bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(first), there = reinterpret_cast<std::uintptr_t>(other);
  return at < there + other_bytes && there < at + bytes;
}

}  // namespace detail

/// Called with a sentence when a check fails. Default: on a PC the sentence on stderr and an abort, elsewhere
/// a trap.
inline void (*on_failed_check)(const char* what) = detail::stop_at_failed_check;

}  // namespace attune::inline ATTUNE_ARITHMETIC

#define ATTUNE_ASSERT(condition, what) ((condition) ? void() : ::attune::on_failed_check("attune: " what))
#else
#define ATTUNE_ASSERT(condition, what) void()
#endif
