// expect: attune::ParameterGroups: master weights in bf16 go around the groups: Bfloat16MasterWeights<ParameterGroups<...>>
#include <attune/attune.hpp>

using Groups = attune::ParameterGroups<attune::Bfloat16MasterWeights<attune::AdamW>>;
constexpr auto kFingerprint = Groups::kFingerprint;
