// expect: attune::FlashStore: records are saved byte by byte and must be trivially copyable
#include "flash.hpp"

using Flash = FlashOf<4>;
struct Name {
  ~Name() { delete[] text; }
  char* text;
};

constexpr auto slots = attune::FlashStore<Flash, Name>::kSlots;
