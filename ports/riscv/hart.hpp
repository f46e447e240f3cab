// What each hart has of its own.
#pragma once

#include <cstdint>

// The second hart's stack, and what is below it and may not be accessed: as much as a function may leave out
// below its stack pointer and still be caught.
inline constexpr std::uint32_t kSecondStackBytes = 4096, kStackGuardBytes = 512;

// Traps and protected memory of the hart that calls. Its stack's top is in mscratch. `guard`, if there is
// one, is the beginning of kStackGuardBytes without access, at a multiple of their number.
void set_up_hart(const void* guard);
