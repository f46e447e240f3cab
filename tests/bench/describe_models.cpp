// A line for each model of models.hpp: its name and its description.
#include <cstdio>
#include <memory>
#include <utility>

#include "model_description.hpp"

namespace {

template <std::size_t index>
void print() {
  constexpr bench::NamedModel kModel = bench::kModels[index];
  const auto parameters = std::make_unique<typename bench::Model<kModel.shape>::Parameters>();
  std::printf("%s %s\n", kModel.name.data(), bench::description<kModel.shape>(*parameters).c_str());
}

template <std::size_t... index>
void print_all(std::index_sequence<index...>) {
  (print<index>(), ...);
}

}  // namespace

int main() { print_all(std::make_index_sequence<std::size(bench::kModels)>()); }
