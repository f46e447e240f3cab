// expect: attune::RotaryPositions: rotary_dim must be even and at most d_k: features are rotated in pairs
#include <attune/attention/rotary_positions.hpp>

attune::RotaryPositions<attune::RotaryShape{.seq_len = 4, .num_heads = 2, .d_k = 5}>::Input x;
