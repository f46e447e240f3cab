// expect: attune::Sgd: what is kept in 8 or 16 bits is the momentum of float parameters
#include <attune/attune.hpp>

using Int8 = attune::Sgd<attune::Momentum::kNone, float, attune::MomentPrecision::kInt8>;
constexpr auto kFingerprint = Int8::kFingerprint;
