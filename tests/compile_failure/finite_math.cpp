// expect: attune: -ffinite-math-only drops what masks and NaN need; compile without it
#undef __FINITE_MATH_ONLY__
#define __FINITE_MATH_ONLY__ 1
#include <attune/attune.hpp>
