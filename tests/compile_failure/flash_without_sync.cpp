// expect: attune::FlashStore: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, program, erase and sync, which answer a Status
#include <attune/persistence/flash_store.hpp>

struct Flash {
  static constexpr std::uint32_t kPageSize = 1024, kPages = 4, kProgramUnit = 4;
  static constexpr unsigned char kErased = 0xFF;
  attune::Status read(std::uint32_t, void*, std::size_t);
  attune::Status program(std::uint32_t, const void*, std::size_t);
  attune::Status erase(std::uint32_t);
  void sync();
};

constexpr auto slots = attune::FlashStore<Flash, int>::kSlots;
