// How one unit is programmed.
#include <attune/persistence/flash_memory.hpp>

#include "check.hpp"
#include "exchange/nor_flash.hpp"

namespace {

using attune::Status;
using attune::detail::is_erased;
using attune::detail::program_unit;

template <class Flash>
void expect_programs_erased_units_alone() {
  Flash flash;
  unsigned char unit[Flash::kProgramUnit], seen[Flash::kProgramUnit];
  EXPECT_EQ(flash.erase(0), Status::kOk);
  std::memset(unit, 0x5A, sizeof unit);
  EXPECT_EQ(program_unit(flash, Flash::kProgramUnit, unit), Status::kOk);
  EXPECT_EQ(flash.read(Flash::kProgramUnit, seen, sizeof seen), Status::kOk);
  EXPECT_EQ(std::memcmp(seen, unit, sizeof seen), 0);
  std::memset(unit, 0x12, sizeof unit);
  EXPECT_EQ(program_unit(flash, Flash::kProgramUnit, unit), Status::kNotErased);
  EXPECT_EQ(flash.read(Flash::kProgramUnit, seen, sizeof seen), Status::kOk);
  EXPECT_EQ(seen[0], 0x5A);
  EXPECT_EQ(flash.misuses, 0u);
  flash.broken = true;
  EXPECT_EQ(program_unit(flash, 0, unit), Status::kFlashFault);
}

}  // namespace

TEST(FlashMemory, a_unit_is_programmed_only_if_it_reads_as_erased) {
  expect_programs_erased_units_alone<NorFlash<NorShape{.unit = 1, .pages = 2}>>();
  expect_programs_erased_units_alone<NorFlash<NorShape{.unit = 32, .pages = 2, .erased = 0x00}>>();
}

TEST(FlashMemory, a_range_is_erased_if_every_byte_is) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 2}>;
  unsigned char bytes[] = {0xFF, 0xFF, 0xFF};
  EXPECT_TRUE(is_erased<Flash>(bytes, 3));
  bytes[2] = 0xFE;
  EXPECT_TRUE(is_erased<Flash>(bytes, 2));
  EXPECT_FALSE(is_erased<Flash>(bytes, 3));
}
