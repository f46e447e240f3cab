// Whether the model in the project's file and the one in the file that the build made are the same.
#include <attune/attune.hpp>

#include <made.hpp>
#include <unused.hpp>
#include <weights.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
using Names = attune::PyTorchModule<Model>;

bool models_agree() {
  Model::Input x;
  Model::Output y, of_made;
  Model::InferenceScratch scratch;
  x(0, 0) = 1;
  x(0, 1) = 2;
  Model::forward(attune::kInFlash<Names, weights>, x, y, scratch);
  Model::forward(attune::kInFlash<Names, made>, x, of_made, scratch);
  return y(0, 0) == of_made(0, 0) && y(0, 1) == of_made(0, 1) && y(0, 2) == of_made(0, 2);
}
