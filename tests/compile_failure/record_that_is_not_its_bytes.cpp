// expect: attune::FlashStore: records are saved byte by byte and must be trivially copyable
#include <attune/persistence/flash_store.hpp>

struct Flash {
  static constexpr std::uint32_t kPageSize = 1024, kPages = 4, kProgramUnit = 4;
  static constexpr unsigned char kErased = 0xFF;
  attune::Status read(std::uint32_t, void*, std::size_t);
  attune::Status program(std::uint32_t, const void*, std::size_t);
  attune::Status erase(std::uint32_t);
  attune::Status sync();
};
struct Name {
  ~Name() { delete[] text; }
  char* text;
};

constexpr auto slots = attune::FlashStore<Flash, Name>::kSlots;
