// expect: attune::BiasesAndNorms, Adapted: the layer contains an Adapted layer; merge() its factors first
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
constexpr Layer::Parameters kLayer{};
using Adapted = attune::Adapted<
    Layer, kLayer, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections, .biases_and_norms = true}>;
constexpr Adapted::Parameters kAdapted{};
attune::BiasesAndNorms<Adapted, kAdapted>::Parameters parameters;
