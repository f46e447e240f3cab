// expect: attune::PackedTape: a tape in 8 or 16 bits is for models in float; double keeps its own
#include <attune/attune.hpp>

using Layer = attune::FeedForward<attune::FeedForwardShape{.rows = 4, .d_model = 8, .d_ff = 8}, double>;
static attune::PackedTape<Layer>::Tape tape;
