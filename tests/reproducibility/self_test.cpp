// SelfTest in a build whose options break the arithmetic: what golden.cpp reports of it, without the
// training.
#include <attune/attune.hpp>

#include "console.hpp"

namespace {

attune::SelfTest self_test;

}  // namespace

int main() {
  const attune::Status status = self_test.run();
  port::print("self_test=", attune::message(status), '\n');
  return status == attune::Status::kOk ? 0 : 1;
}
