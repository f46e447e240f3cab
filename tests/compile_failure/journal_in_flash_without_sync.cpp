// expect: attune::FlashJournal: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, program, erase and sync, which return a Status
#include "flash.hpp"

#include <attune/persistence/flash_journal.hpp>

struct Flash : FlashOf<4> {
  void sync();
};

constexpr auto capacity = attune::FlashJournal<Flash>::kCapacity;
