// Inference from weights of 8 and 16 bits, as few rows and as many, of which the build holds the stack
// against a bound. Ends with `N passed, N failed`.
#include <attune/layers/feed_forward.hpp>
#include <attune/weights/packed_weights.hpp>
#include <quantized_networks_stack.hpp>

#include "console.hpp"
#include "port.hpp"

namespace {

template <int kRows>
using Network = attune::FeedForward<attune::FeedForwardShape{.rows = kRows, .d_model = 12, .d_ff = 24}>;
template <int kRows>
struct Memory {
  typename Network<kRows>::Input x;
  typename Network<kRows>::Output y;
  typename Network<kRows>::InferenceScratch scratch;
};
template <int kRows>
Memory<kRows> memory;

template <template <class, int, int> class Weights, int kRows>
bool run_network() {
  static const typename Network<kRows>::template ParametersOf<Weights, attune::Tensor> parameters{};
  auto& [x, y, scratch] = memory<kRows>;
  x.values[0] = 1;
  Network<kRows>::forward(parameters, x, y, scratch);
  return y.values[0] == 0;
}

template <template <class, int, int> class Weights>
bool run_networks() {
  return run_network<Weights, 1>() && run_network<Weights, 5>() && run_network<Weights, 16>();
}

}  // namespace

extern "C" [[gnu::noinline]] bool quantized_networks() {
  return run_networks<attune::Int8Weights>() && run_networks<attune::PackedInt8Weights>() && run_networks<attune::Bfloat16Weights>() &&
         run_networks<attune::Float16Weights>();
}

int main() {
  const bool right = quantized_networks();
  port::print(right ? "1 passed, 0 failed\n" : "FAILED zero weights give zero\n0 passed, 1 failed\n");
  return right ? 0 : 1;
}
