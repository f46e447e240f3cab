// Memory that only some programs use.
#pragma once

#include <cstdint>

namespace port {

// Maps the megabytes of [begin, end) to themselves as registers of a device: not cached, never executed.
void map_device(std::uintptr_t begin, std::uintptr_t end);

}  // namespace port
