// expect: attune::Sgd: 8- and 16-bit momentum needs float parameters
#include <attune/attune.hpp>

using Int8 = attune::Sgd<attune::Momentum::kNone, float, attune::MomentPrecision::kInt8>;
constexpr auto kFingerprint = Int8::kFingerprint;
