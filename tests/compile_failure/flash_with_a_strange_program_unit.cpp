// expect: attune::FlashStore: Flash::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes
#include "flash.hpp"

using Flash = FlashOf<4, 64>;

constexpr auto slots = attune::FlashStore<Flash, int>::kSlots;
