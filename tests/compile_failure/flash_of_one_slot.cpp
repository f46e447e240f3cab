// expect: attune::FlashStore: the store needs two slots of kSlotPages pages to survive power cuts; use more pages, or fewer records
#include "flash.hpp"

using Flash = FlashOf<3>;
struct State {
  float values[300];
};

constexpr auto slots = attune::FlashStore<Flash, State>::kSlots;
