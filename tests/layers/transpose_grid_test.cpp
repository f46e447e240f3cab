// TransposeGrid: order of tokens and cells, the way back, and plans of training.
#include <attune/layers/transpose_grid.hpp>

#include <attune/models/each_group.hpp>

#include "check.hpp"
#include "layers/every_plan.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

using ByColumn = TransposeGrid<TransposeGridShape{.rows = 2, .cols = 3, .d_model = 2}>;
using ByRow = TransposeGrid<TransposeGridShape{.rows = 3, .cols = 2, .d_model = 2}>;

}  // namespace

TEST(TransposeGrid, has_tokens_column_by_column) {
  check::Problem<ByColumn> a(1);
  a.x = {{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}};
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, ByColumn::Output{{0, 1, 10, 11, 2, 3, 12, 13, 4, 5, 14, 15}}));
  a.infer();
  EXPECT_TRUE(check::same_bits(a.y, ByColumn::Output{{0, 1, 10, 11, 2, 3, 12, 13, 4, 5, 14, 15}}));
  a.dy = a.y;
  a.backward();
  EXPECT_TRUE(check::same_bits(a.dx, a.x));
  check::Problem<ByRow> back(1);
  back.x = a.y;
  back.infer();
  EXPECT_TRUE(check::same_bits(back.y, a.x));
}

TEST(TransposeGrid, keeps_cells_together) {
  using Cells = TransposeGrid<TransposeGridShape{.rows = 2, .cols = 2, .d_model = 1, .cell = 2}>;
  check::Problem<Cells> a(1);
  a.x = {{0, 1, 2, 3, 4, 5, 6, 7}};
  a.infer();
  EXPECT_TRUE(check::same_bits(a.y, Cells::Output{{0, 1, 4, 5, 2, 3, 6, 7}}));
  // The windows of two by two tokens of an image of two by four.
  using Windows = EachGroup<1, Cells>;
  check::Problem<Windows> b(1);
  b.x = a.x;
  b.infer();
  EXPECT_TRUE(check::same_bits(b.y, a.y));
}

TEST(TransposeGrid, has_the_same_bits_in_every_plan) { check::expect_same_bits_in_every_plan<ByColumn>(); }
