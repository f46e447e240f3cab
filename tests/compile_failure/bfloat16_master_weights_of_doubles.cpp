// expect: attune::Bfloat16MasterWeights: bf16 weights need a model in float
#include <attune/attune.hpp>

using Masters = attune::Bfloat16MasterWeights<attune::Adam<attune::AdamVariant{}, double>>;
constexpr auto kFingerprint = Masters::kFingerprint;
