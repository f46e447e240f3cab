// expect: attune::FlashStore: a record is a pointer or a view, whose address would be saved
#include <attune/attune.hpp>

struct Flash {
  static constexpr std::uint32_t kPageSize = 1024, kPages = 64, kProgramUnit = 4;
  static constexpr unsigned char kErased = 0xFF;
  attune::Status read(std::uint32_t, void*, std::size_t);
  attune::Status program(std::uint32_t, const void*, std::size_t);
  attune::Status erase(std::uint32_t);
  attune::Status sync();
};
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
Flash flash;
attune::FlashStore<Flash, Model::ParametersOf<attune::TransposedReference, attune::Reference>> store(flash);
