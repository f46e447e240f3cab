// What a sketch includes. The core's macros that the headers of C++ and Eigen have other uses for are set
// aside while those are read.
#pragma once

#if __cplusplus <= 201703L
#error \
    "attune needs C++20, and this core compiles an older C++: in platform.local.txt, beside the core's platform.txt, write compiler.cpp.extra_flags=-std=gnu++20 -ffp-contract=off"
#else

#pragma push_macro("A0")
#pragma push_macro("A1")
#pragma push_macro("B0")
#pragma push_macro("B1")
#pragma push_macro("F")
#pragma push_macro("abs")
#pragma push_macro("bit")
#pragma push_macro("constrain")
#pragma push_macro("degrees")
#pragma push_macro("max")
#pragma push_macro("min")
#pragma push_macro("radians")
#pragma push_macro("round")
#pragma push_macro("sq")
#undef A0
#undef A1
#undef B0
#undef B1
#undef F
#undef abs
#undef bit
#undef constrain
#undef degrees
#undef max
#undef min
#undef radians
#undef round
#undef sq

#include <eigen.h>  // of the library Bolder Flight Systems Eigen; then <Eigen/Core> is found as well

#include <attune/attune.hpp>

#pragma pop_macro("A0")
#pragma pop_macro("A1")
#pragma pop_macro("B0")
#pragma pop_macro("B1")
#pragma pop_macro("F")
#pragma pop_macro("abs")
#pragma pop_macro("bit")
#pragma pop_macro("constrain")
#pragma pop_macro("degrees")
#pragma pop_macro("max")
#pragma pop_macro("min")
#pragma pop_macro("radians")
#pragma pop_macro("round")
#pragma pop_macro("sq")

#endif
