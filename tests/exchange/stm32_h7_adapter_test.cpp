#include "exchange/expect_adapter.hpp"
#include "exchange/stubs/stm32h7xx_hal.h"

#include "../../examples/flash_adapters/stm32_h7.hpp"

TEST(FlashAdapters, stm32_with_sectors) {
  Stm32H7Flash<3, FLASH_SECTOR_SIZE> flash(
      {.address = reinterpret_cast<std::uintptr_t>(stub::memory), .bank = FLASH_BANK_2, .sector = 4});
  stub_invalidated = 0;
  expect_adapter_keeps_states(flash);
  expect_adapter_finds_torn_rows(flash);
  EXPECT_EQ(stub_fault_mask, 0u);
  EXPECT_EQ(stub_scb.CCR, 0u);
  // Five saves: a sector, and the rows of a head, a body and a mark.
  EXPECT_EQ(stub_invalidated, 5 * (4096 + 32 + 64 + 32));
}
