// expect: attune::FlashStore: a state that power cuts cannot break needs two slots of kSlotPages pages; give the store more pages, or fewer records
#include <attune/persistence/flash_store.hpp>

struct Flash {
  static constexpr std::uint32_t kPageSize = 1024, kPages = 3, kProgramUnit = 4;
  static constexpr unsigned char kErased = 0xFF;
  attune::Status read(std::uint32_t, void*, std::size_t);
  attune::Status program(std::uint32_t, const void*, std::size_t);
  attune::Status erase(std::uint32_t);
  attune::Status sync();
};
struct State {
  float values[300];
};

constexpr auto slots = attune::FlashStore<Flash, State>::kSlots;
