// Addresses that sections.ld defines. Only the addresses mean anything: there are no objects behind the
// names.
#pragma once

#include <cstdint>

extern "C" {
extern const std::uint32_t code_region_begin[], code_region_end[], ram_region_begin[], ram_region_end[];
extern std::uint32_t data_load[], data_begin[], data_end[];
extern std::uint32_t bss_begin[], bss_end[];
extern std::uint32_t stack_limit[], stack_top[];
extern void (*const init_array_begin[])();
extern void (*const init_array_end[])();
}
