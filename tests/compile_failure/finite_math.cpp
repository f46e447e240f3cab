// expect: attune: -ffinite-math-only breaks masks and NaN; compile without it
#undef __FINITE_MATH_ONLY__
#define __FINITE_MATH_ONLY__ 1
#include <attune/attune.hpp>
