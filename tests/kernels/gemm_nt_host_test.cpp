#include "kernels/gemm_sweep.hpp"

TEST(ProductSweep, every_rows_cols_and_depth_up_to_33_nt) { check::sweep_each<check::Layout::kNT>(); }
TEST(ProductSweep, sizes_around_every_packet_width_together_nt) {
  check::sweep_together<check::Layout::kNT>();
}
