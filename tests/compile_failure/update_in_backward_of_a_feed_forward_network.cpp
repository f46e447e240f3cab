// expect: attune::UpdateInBackward: backward of one of the layers reads parameters behind their gradients
#include <attune/attune.hpp>

using Network = attune::FeedForward<attune::FeedForwardShape{.rows = 4, .d_model = 8, .d_ff = 16}>;
using Model = attune::Sequential<attune::Linear<attune::LinearShape{4, 8, 8}>, attune::Residual<Network>>;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
