// Does this core, on this board, compute what every other target computes? If not, -ffp-contract=off is missing (README.md), or
// an option that reorders arithmetic is there.
#include <attune.h>

attune::SelfTest self_test;

void setup() {
  Serial.begin(115200);
  while (!Serial) {
  }
  Serial.println(attune::message(self_test.run()));
}

void loop() {}
