// expect: attune::optimizer_step: gradients and parameters have different types; use one type
#include <attune/attune.hpp>

using Parameters = attune::Linear<attune::LinearShape{2, 8, 8}>::Parameters;
using Others = attune::Linear<attune::LinearShape{2, 4, 4}>::Parameters;

attune::Status step(Parameters& parameters, const Others& gradients, attune::AdamW::Moments<Others>& moments) {
  return attune::AdamW::step(parameters, gradients, moments, {});
}
