// What a sketch includes. The core's macros that the headers of C++ and Eigen have other uses for are set
// aside while those are read. No name of attune is such a macro.
#pragma once

#if __cplusplus <= 201703L
#error \
    "attune needs C++20, and this core compiles an older C++: in platform.local.txt, beside the core's platform.txt, write compiler.cpp.extra_flags=-std=gnu++20 -ffp-contract=off"
#else

#pragma push_macro("A0")
#pragma push_macro("A1")
#pragma push_macro("A2")
#pragma push_macro("B")
#pragma push_macro("B0")
#pragma push_macro("B1")
#pragma push_macro("B2")
#pragma push_macro("B3")
#pragma push_macro("D0")
#pragma push_macro("D1")
#pragma push_macro("D2")
#pragma push_macro("D3")
#pragma push_macro("F")
#pragma push_macro("I1")
#pragma push_macro("I2")
#pragma push_macro("S1")
#pragma push_macro("S2")
#pragma push_macro("abs")
#pragma push_macro("bit")
#pragma push_macro("degrees")
#pragma push_macro("max")
#pragma push_macro("min")
#pragma push_macro("radians")
#pragma push_macro("round")
#pragma push_macro("sq")
#pragma push_macro("word")
#undef A0
#undef A1
#undef A2
#undef B
#undef B0
#undef B1
#undef B2
#undef B3
#undef D0
#undef D1
#undef D2
#undef D3
#undef F
#undef I1
#undef I2
#undef S1
#undef S2
#undef abs
#undef bit
#undef degrees
#undef max
#undef min
#undef radians
#undef round
#undef sq
#undef word

// The compiler shows the line of a header that is missing. A test by __has_include would hide it: GCC 12 then
// skips the #include in silence, and an IDE, which looks for libraries by this error, would not find the
// library.
#include <eigen.h>  // Install the library "Bolder Flight Systems Eigen". ArduinoEigen cannot replace it.

#include <attune/attune.hpp>

#pragma pop_macro("A0")
#pragma pop_macro("A1")
#pragma pop_macro("A2")
#pragma pop_macro("B")
#pragma pop_macro("B0")
#pragma pop_macro("B1")
#pragma pop_macro("B2")
#pragma pop_macro("B3")
#pragma pop_macro("D0")
#pragma pop_macro("D1")
#pragma pop_macro("D2")
#pragma pop_macro("D3")
#pragma pop_macro("F")
#pragma pop_macro("I1")
#pragma pop_macro("I2")
#pragma pop_macro("S1")
#pragma pop_macro("S2")
#pragma pop_macro("abs")
#pragma pop_macro("bit")
#pragma pop_macro("degrees")
#pragma pop_macro("max")
#pragma pop_macro("min")
#pragma pop_macro("radians")
#pragma pop_macro("round")
#pragma pop_macro("sq")
#pragma pop_macro("word")

#endif
