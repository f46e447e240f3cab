// What was learned outlives the power: the state of a training in the EEPROM, kept so that a power cut at any time leaves
// the old state or the new one. For cores whose EEPROM is written byte by byte (arduino_eeprom.hpp says which are not).
#include <attune.h>

#include "arduino_eeprom.hpp"

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::Sgd<>>;

Trainer trainer;
ArduinoEeprom<512, 2> eeprom;  // the first 1,024 bytes: two slots
attune::FlashStore<ArduinoEeprom<512, 2>, Trainer::State> store(eeprom);

void setup() {
  Serial.begin(115200);
  while (!Serial) {
  }
  const attune::Status status = trainer.resume([](Trainer::State& state) { return store.load(state); });
  Serial.println(attune::message(status));
  if (status != attune::Status::kOk) trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
}

void loop() {
  const float x[1][4] = {{1, 2, 3, 4}}, target[1][2] = {{1, -1}};  // a sensor's, and what it meant
  (void)trainer.step(x, target, {.learning_rate = 0.01f});
  Serial.println(attune::message(store.save(trainer.state())));
  delay(60000);
}
