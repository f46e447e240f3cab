#pragma once

#include <cstdint>

// The parameters after some steps, of files that are compiled for these vector units.
std::uint32_t hash_sse2();
std::uint32_t hash_avx2();
std::uint32_t hash_avx512();
