// Selects the best code for this processor, of a program that has some code once per processor. CMake's
// attune_add_dispatched adds this header to the objects that it compiles. Never included by attune.hpp.
//
// Set ATTUNE_PROCESSOR=sse2, avx2 or avx512 in the environment to select other code, for comparisons.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// Without the arithmetic in its name, and without other headers. In fused arithmetic, only this code must run
// on processors without FMA.
namespace attune::dispatch {

/// Levels of the x86-64 psABI, each including the levels before it: x86-64, x86-64-v3 (with FMA) and
/// x86-64-v4.
enum class Processor { kSse2, kAvx2, kAvx512 };
inline constexpr std::string_view kProcessorNames[] = {"sse2", "avx2", "avx512"};

/// A program's code for one processor. Its initializers run only when it is chosen.
struct CodeOfProcessor {
  using Function = void();
  Processor processor;
  Function* const* functions;
  Function* const* initializers;
  Function* const* initializers_end;
};

/// The processor's features, from the registers of CPUID and XGETBV.
struct ProcessorFeatures {
  unsigned ecx_1 = 0;
  unsigned ebx_7 = 0;
  unsigned ecx_80000001 = 0;
  unsigned xcr0 = 0;  // registers that the operating system saves

  /// Reads the features of this machine.
  static ProcessorFeatures read() {
    ProcessorFeatures features;
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) features.ecx_1 = ecx;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) features.ebx_7 = ebx;
    if (__get_cpuid(0x80000001U, &eax, &ebx, &ecx, &edx)) features.ecx_80000001 = ecx;
    if ((features.ecx_1 & kOsxsave) != 0) {
      asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
      features.xcr0 = eax;
    }
#endif
    return features;
  }

  [[nodiscard]] constexpr Processor best() const {
    // SSE3, SSSE3, FMA, CX16, SSE4.1, SSE4.2, MOVBE, POPCNT, AVX, F16C; BMI1, AVX2, BMI2; LAHF, LZCNT.
    constexpr unsigned kAvx2Ecx1 = 1U << 0 | 1U << 9 | 1U << 12 | 1U << 13 | 1U << 19 | 1U << 20 | 1U << 22 |
                                   1U << 23 | kOsxsave | 1U << 28 | 1U << 29;
    constexpr unsigned kAvx2Ebx7 = 1U << 3 | 1U << 5 | 1U << 8;
    constexpr unsigned kAvx2Ecx80000001 = 1U << 0 | 1U << 5;
    constexpr unsigned kAvx2Xcr0 = 0x06;
    // AVX-512 F, DQ, CD, BW, VL.
    constexpr unsigned kAvx512Ebx7 = 1U << 16 | 1U << 17 | 1U << 28 | 1U << 30 | 1U << 31;
    constexpr unsigned kAvx512Xcr0 = 0xe6;
    const auto all = [](unsigned has, unsigned wanted) { return (has & wanted) == wanted; };
    if (!all(ecx_1, kAvx2Ecx1) || !all(ebx_7, kAvx2Ebx7) || !all(ecx_80000001, kAvx2Ecx80000001) ||
        !all(xcr0, kAvx2Xcr0)) {
      return Processor::kSse2;
    }
    return all(ebx_7, kAvx512Ebx7) && all(xcr0, kAvx512Xcr0) ? Processor::kAvx512 : Processor::kAvx2;
  }

 private:
  static constexpr unsigned kOsxsave = 1U << 27;
};

/// The last of `code`, in rising order, that `best` can run. A `wanted` name, not null or empty, selects that
/// code. nullptr if there is none.
constexpr const CodeOfProcessor* choose(std::span<const CodeOfProcessor> code, Processor best,
                                        const char* wanted) {
  const std::string_view name = wanted == nullptr ? "" : wanted;
  const CodeOfProcessor* chosen = nullptr;
  for (const CodeOfProcessor& one : code) {
    const bool asked = name.empty() || name == kProcessorNames[static_cast<int>(one.processor)];
    if (asked && one.processor <= best) chosen = &one;
  }
  return chosen;
}

/// The code that this program runs on this machine. If there is none, or none for ATTUNE_PROCESSOR, the
/// program ends with a message and code 2.
inline const CodeOfProcessor& choose(std::span<const CodeOfProcessor> code) {
  const Processor best = ProcessorFeatures::read().best();
  const char* const wanted = std::getenv("ATTUNE_PROCESSOR");
  const CodeOfProcessor* const chosen = choose(code, best, wanted);
  if (chosen != nullptr) return *chosen;
  std::fputs("attune: this program has code for", stderr);
  for (const CodeOfProcessor& one : code)
    std::fprintf(stderr, " %s", kProcessorNames[static_cast<int>(one.processor)].data());
  std::fprintf(stderr, "; the machine is %s", kProcessorNames[static_cast<int>(best)].data());
  if (wanted != nullptr && *wanted != '\0') std::fprintf(stderr, ", and ATTUNE_PROCESSOR is '%s'", wanted);
  std::fputs("\n", stderr);
  std::_Exit(2);
}

}  // namespace attune::dispatch
