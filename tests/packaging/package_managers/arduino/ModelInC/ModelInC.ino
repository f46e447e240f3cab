// A model behind plain C, in a precompiled library: the calls of c_library/main.c on its head.
#include <last.h>
#include <string.h>

void setup() {
  Serial.begin(115200);
  static float x[LAST_INPUTS], y[LAST_OUTPUTS];
  for (int i = 0; i < LAST_INPUTS; ++i) x[i] = 0.125f * (float)(i % 5) - 0.25f;
  const int label = 2;
  last_model* model = last_own();
  last_status status = last_start(model, 4);
  for (int step = 0; step < 5 && status == LAST_OK; ++step) {
    status = last_accumulate(model, x, &label, NULL);
    if (status == LAST_OK) status = last_update(model, 0.1f);
  }
  if (status == LAST_OK) status = last_predict(model, x, y);
  if (status != LAST_OK) Serial.println(last_message(status));
  Serial.print("bits head");
  for (int i = 0; i < LAST_OUTPUTS; ++i) {
    uint32_t bits;
    memcpy(&bits, &y[i], sizeof bits);
    char text[] = " 00000000";
    for (int digit = 8; digit > 0; --digit, bits >>= 4) text[digit] = "0123456789abcdef"[bits & 15];
    Serial.print(text);
  }
  Serial.println("");
}

void loop() {}
