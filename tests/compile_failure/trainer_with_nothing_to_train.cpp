// expect: attune::Trainer: the model has no trainable parameters; leave a part out of Frozen
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
constexpr Layer::Parameters kLayer{};
attune::Trainer<attune::Sequential<attune::Frozen<Layer, kLayer>, attune::Relu<4, 8>>> trainer;
