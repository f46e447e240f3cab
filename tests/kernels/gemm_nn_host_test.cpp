#include "kernels/gemm_sweep.hpp"

TEST(GemmSweep, every_rows_cols_and_depth_up_to_33_nn) { check::sweep_each<check::Layout::kNN>(); }
TEST(GemmSweep, sizes_around_every_packet_width_together_nn) {
  check::sweep_together<check::Layout::kNN>();
}
