// expect: attune: -ffast-math changes the results of training; compile without it
#define __FAST_MATH__ 1
#include <attune/attune.hpp>
