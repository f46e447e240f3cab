// Calls what is compiled for several processors, and tells what it got: for which one, and the bits.
#include "model.hpp"

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

std::string refusal() {
  try {
    room::refuse("too large");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

int main() {
  const std::unique_ptr<Model> model = make_model();
  const float first = model->step();
  float last = first;
  for (int step = 1; step < 5; ++step) last = model->step();
  const Eigen::VectorXf numbers = room::numbers();
  const bool agree = layout() == room::layout_of_model() && last < first && numbers.sum() == 4950.0f &&
                     refusal() == "too large refused by dispatched" && file_agrees() &&
                     model->hash() == hash_on_threads() &&
                     attune::hash_bits(model->trainer().parameters()) == model->hash();
  std::printf("%s %s %08x %s\n", agree ? "right" : "WRONG", compiled_for(7, 0.5), model->hash(),
              layout().c_str());
  return agree ? 0 : 1;
}
