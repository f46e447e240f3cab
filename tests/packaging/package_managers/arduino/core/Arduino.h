// Of a core what sketches see first: its macros, whose names C++ and Eigen have other uses for.
#pragma once

#include <cstddef>
#include <cstdint>

#define A0 14
#define A1 15
#define B0 0
#define B1 1
#define F(text) (text)
#define abs(x) ((x) > 0 ? (x) : -(x))
#define bit(b) (1UL << (b))
#define constrain(x, low, high) ((x) < (low) ? (low) : ((x) > (high) ? (high) : (x)))
#define degrees(rad) ((rad)*57.295779513082320876798154814105)
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define radians(deg) ((deg)*0.017453292519943295769236907684886)
#define round(x) ((x) >= 0 ? (long)((x) + 0.5) : (long)((x)-0.5))
#define sq(x) ((x) * (x))

struct SerialPort {
  void begin(long) {}
  explicit operator bool() const { return true; }
  void print(const char* text);
  void println(const char* text);
  void println(long number);
};
extern SerialPort Serial;

void delay(unsigned long milliseconds);
void setup();
void loop();
