// expect: attune::Bfloat16MasterWeights: master weights in bf16 are those of models in float
#include <attune/attune.hpp>

using Masters = attune::Bfloat16MasterWeights<attune::Adam<attune::AdamVariant{}, double>>;
constexpr auto kFingerprint = Masters::kFingerprint;
