// expect: attune::FlashStore: Flash::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes
#include <attune/persistence/flash_store.hpp>

struct Flash {
  static constexpr std::uint32_t kPageSize = 1024, kPages = 4, kProgramUnit = 64;
  static constexpr unsigned char kErased = 0xFF;
  attune::Status read(std::uint32_t, void*, std::size_t);
  attune::Status program(std::uint32_t, const void*, std::size_t);
  attune::Status erase(std::uint32_t);
  attune::Status sync();
};

constexpr auto slots = attune::FlashStore<Flash, int>::kSlots;
