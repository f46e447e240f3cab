#include <attune/exchange/model_file.hpp>
#include <attune/exchange/pytorch_names.hpp>
#include <attune/layers/linear.hpp>

#include <weights.hpp>

#include "model.hpp"

int of_the_library() { return 1; }

bool file_agrees() {
  using Line = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
  Line::Input x{{1, 2}};
  Line::Output y{};
  Line::InferenceScratch scratch;
  Line::forward(attune::kInFlash<attune::PyTorchModule<Line>, weights>, x, y, scratch);
  return y(0, 0) == y(0, 0);
}
