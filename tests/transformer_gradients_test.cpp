// The property of gradient_suite.hpp over the layers of a transformer beside attention, which has
// layer_gradients_test.cpp.
#include <attune/activation.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

using attune::Activation;
using check::check_layer_gradients;

TEST(TransformerGradients, activations) {
  check_layer_gradients<attune::Relu<3, 5, double>>(-3, 3);
  check_layer_gradients<attune::Silu<3, 5, double>>(-6, 6);
  check_layer_gradients<attune::Gelu<3, 5, double>>(-4, 4);
  check_layer_gradients<attune::GeluTanh<3, 5, double>>(-4, 4);
}
