// Translation table of one level: 4,096 sections of a megabyte (Arm DDI 0406, B3.5, "short-descriptor
// format").
#include "memory.hpp"

#include "../bare_metal/memory_map.hpp"

namespace {

constexpr std::uint32_t kSectionShift = 20;

alignas(16 * 1024) std::uint32_t translation_table[4096];

// Section, normal memory, write-back and write-allocate, for any privilege.
constexpr std::uint32_t kCached = 0x2U | 1U << 2 | 1U << 3 | 3U << 10 | 1U << 12;
// Section, a device's registers.
constexpr std::uint32_t kDevice = 0x2U | 1U << 2 | 3U << 10;
constexpr std::uint32_t kReadOnly = 1U << 15;
constexpr std::uint32_t kNeverExecuted = 1U << 4;

void map(std::uintptr_t begin, std::uintptr_t end, std::uint32_t attributes) {
  const auto last = static_cast<std::uint32_t>(end - 1) >> kSectionShift;
  for (auto section = static_cast<std::uint32_t>(begin) >> kSectionShift; section <= last; ++section)
    translation_table[section] = section << kSectionShift | attributes;
}
void map(const std::uint32_t* begin, const std::uint32_t* end, std::uint32_t attributes) {
  map(reinterpret_cast<std::uintptr_t>(begin), reinterpret_cast<std::uintptr_t>(end), attributes);
}

// Maps CODE, which cannot be written, and RAM, which cannot be executed, each to itself and cached;
// everything else faults, null pointers and what lies below the stack included. Runs first of all
// initializers: .bss is zero by then.
[[gnu::constructor(101), gnu::used]] void map_memory() {
  map(code_region_begin, code_region_end, kCached | kReadOnly);
  map(ram_region_begin, ram_region_end, kCached | kNeverExecuted);

  const auto table = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(translation_table));
  constexpr std::uint32_t kWalksCached = 1U << 3 | 1U << 6;
  constexpr std::uint32_t kDomain0Checked = 1U;
  constexpr std::uint32_t kControlOn = 1U | 1U << 2 | 1U << 11 | 1U << 12;  // MMU, caches, branch prediction
  std::uint32_t control;
  asm volatile(
      "mcr p15, 0, %[zero], c2, c0, 2   \n"  // TTBCR: one table for all addresses
      "mcr p15, 0, %[table], c2, c0, 0  \n"  // TTBR0
      "mcr p15, 0, %[domains], c3, c0, 0\n"  // DACR
      "mcr p15, 0, %[zero], c8, c7, 0   \n"  // TLBIALL
      "mcr p15, 0, %[zero], c7, c5, 0   \n"  // ICIALLU
      "mcr p15, 0, %[zero], c7, c5, 6   \n"  // BPIALL
      "dsb                              \n"
      "isb                              \n"
      "mrc p15, 0, %[control], c1, c0, 0\n"  // SCTLR
      "orr %[control], %[control], %[on]\n"
      "mcr p15, 0, %[control], c1, c0, 0\n"
      "isb                              \n"
      : [control] "=&r"(control)
      : [zero] "r"(0), [table] "r"(table | kWalksCached), [domains] "r"(kDomain0Checked), [on] "r"(kControlOn)
      : "memory");
}

}  // namespace

void port::map_device(std::uintptr_t begin, std::uintptr_t end) {
  map(begin, end, kDevice | kNeverExecuted);
  // What was not mapped is in no buffer of translations.
  asm volatile("dsb\n isb" ::: "memory");
}
