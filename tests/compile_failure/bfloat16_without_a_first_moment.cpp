// expect: attune::Adam: without a first moment, the second is kept in scalars or in 8 bits
#include <attune/attune.hpp>

using Rounded = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kBfloat16,
                                                 .first_moment = attune::FirstMoment::kNone}>;
constexpr auto kFingerprint = Rounded::kFingerprint;
