// expect: attune::Adam: 8- and 16-bit moments need float parameters
#include <attune/attune.hpp>

using Int8 = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8}, double>;
constexpr auto kFingerprint = Int8::kFingerprint;
