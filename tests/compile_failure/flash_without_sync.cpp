// expect: attune::FlashStore: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, program, erase and sync, which return a Status
#include "flash.hpp"

struct Flash : FlashOf<4> {
  void sync();
};

constexpr auto slots = attune::FlashStore<Flash, int>::kSlots;
