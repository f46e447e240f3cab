// expect: nodiscard
#pragma GCC diagnostic error "-Wunused-result"
#include <attune/attune.hpp>

void use(attune::KeyPaddingMask<4>& mask) { mask.set_length(5); }
