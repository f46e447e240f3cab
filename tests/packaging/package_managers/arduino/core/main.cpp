// Runs a sketch for a while on an emulated board.
#include "ports/console.hpp"
#include "ports/port.hpp"

#include "Arduino.h"

SerialPort Serial;
void SerialPort::print(const char* text) { port::print(text); }
void SerialPort::println(const char* text) { port::print(text, '\n'); }
void SerialPort::println(long number) { port::print(number, '\n'); }
void delay(unsigned long) {}

const char* port::name() { return "mps2_an386"; }

int main() {
  setup();
  for (int i = 0; i < 101; ++i) loop();
}
