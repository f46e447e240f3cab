// examples/flash_adapters over stubs of the interfaces that they are for; stm32_h7_adapter_test.cpp has the
// other STM32, whose HAL has the same names.
#include "exchange/expect_adapter.hpp"
#include "exchange/stubs/stm32l4xx_hal.h"

#include "../../examples/flash_adapters/arduino_eeprom.hpp"
#include "../../examples/flash_adapters/esp_idf.hpp"
#include "../../examples/flash_adapters/stm32_l4.hpp"
#include "../../examples/flash_adapters/zephyr.hpp"

using attune::Status;

extern "C" void NMI_Handler() { (void)stm32_unreadable_row(); }

TEST(FlashAdapters, stm32_with_pages) {
  Stm32PageFlash<4, FLASH_PAGE_SIZE> flash(
      {.address = reinterpret_cast<std::uintptr_t>(stub::memory), .bank = FLASH_BANK_1, .page = 100});
  expect_adapter_keeps_states(flash);
  expect_adapter_finds_torn_rows(flash);
  const char row[8] = {};
  EXPECT_EQ(flash.program(4 * FLASH_PAGE_SIZE - 8, row, 8), Status::kOk);
  EXPECT_EQ(flash.program(4 * FLASH_PAGE_SIZE - 8, row, 8), Status::kFlashFault);
  EXPECT_TRUE(stub::locked);
}

TEST(FlashAdapters, zephyr) {
  using Flash = ZephyrFlash<ZephyrFlashShape{.page_size = 4096, .pages = 4, .unit = 16}>;
  Flash flash(3), missing(4);
  expect_adapter_keeps_states(flash);
  expect_adapter_finds_torn_rows(flash);
  char byte;
  EXPECT_EQ(missing.read(0, &byte, 1), Status::kFlashFault);
  EXPECT_EQ(missing.erase(0), Status::kFlashFault);
  ZephyrFlash<ZephyrFlashShape{.page_size = 4096, .pages = 5, .unit = 16}> too_large(3);
  EXPECT_EQ(too_large.read(0, &byte, 1), Status::kFlashFault);
  ZephyrFlash<ZephyrFlashShape{.page_size = 4096, .pages = 4, .unit = 8}> too_fine(3);
  EXPECT_EQ(too_fine.read(0, &byte, 1), Status::kFlashFault);
}

TEST(FlashAdapters, esp_idf) {
  EspFlash<4> flash("attune"), missing("nvs");
  expect_adapter_keeps_states(flash);
  char byte;
  EXPECT_EQ(missing.read(0, &byte, 1), Status::kFlashFault);
  stub_partition.encrypted = true;
  EspFlash<4> encrypted("attune");
  stub_partition.encrypted = false;
  EXPECT_EQ(encrypted.read(0, &byte, 1), Status::kFlashFault);
  EspFlash<5> too_large("attune");
  EXPECT_EQ(too_large.erase(0), Status::kFlashFault);
}

TEST(FlashAdapters, arduino_eeprom) {
  ArduinoEeprom<64, 16> flash;
  expect_adapter_keeps_states(flash);
}
