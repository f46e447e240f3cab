// Positions of large models compile at once in every compiler.
#include <attune/attention/rotary_positions.hpp>
#include <attune/layers/positions.hpp>

using Positions = attune::SinusoidalPositions<attune::PositionShape{.seq_len = 65'536, .d_model = 1'024}>;
using Rotary = attune::RotaryPositions<attune::RotaryShape{.seq_len = 65'536, .num_heads = 1, .d_k = 1'024}>;

void add(const Positions::Input& x, Positions::Output& y, Rotary::Output& rotated) {
  Positions::InferenceScratch scratch;
  Positions::forward({}, x, y, scratch);
  Rotary::forward(y, rotated);
}
