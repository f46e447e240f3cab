// expect: attune::Adam: moments in 8 and 16 bits are those of float parameters
#include <attune/attune.hpp>

using Int8 = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8}, double>;
constexpr auto kFingerprint = Int8::kFingerprint;
