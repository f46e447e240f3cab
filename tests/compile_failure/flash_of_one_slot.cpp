// expect: attune::FlashStore: a state that power cuts cannot break needs two slots of kSlotPages pages; give the store more pages, or fewer records
#include "flash.hpp"

using Flash = FlashOf<3>;
struct State {
  float values[300];
};

constexpr auto slots = attune::FlashStore<Flash, State>::kSlots;
