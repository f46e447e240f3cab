// expect: attune::Frozen, BiasesAndNorms, Adapted: the constants do not match the layer: they differ in
#include <attune/attune.hpp>

using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>;
static attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 4}>::Parameters other;
using Model = attune::Sequential<attune::Frozen<Head, other>, attune::Linear<attune::LinearShape{1, 2, 4}>>;
static_assert(sizeof(Model::Parameters) > 0);
