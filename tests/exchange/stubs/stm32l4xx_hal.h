// Of ST's HAL for the STM32L4, what the adapter calls: pages of 2 KB.
#pragma once

#include "stm32_hal.hpp"

namespace {

typedef struct {
  std::uint32_t TypeErase, Banks, Page, NbPages;
} FLASH_EraseInitTypeDef;

#define FLASH_TYPEERASE_PAGES 0x00U
#define FLASH_TYPEPROGRAM_DOUBLEWORD 0x00U
#define FLASH_BANK_1 0x01U
#define FLASH_FLAG_ECCD 0x80000000U
#define FLASH_PAGE_SIZE 2048U
#define __HAL_FLASH_GET_FLAG(flag) (stub::torn ? (flag) : 0U)
#define __HAL_FLASH_CLEAR_FLAG(flag) ((void)(flag))

extern "C" void NMI_Handler();

// Waits for loads, and so lets an NMI in.
inline void __DSB() {
  if (stub::torn) NMI_Handler();
}

HAL_StatusTypeDef HAL_FLASH_Program(std::uint32_t type, std::uint32_t address, std::uint64_t data) {
  const bool good = !stub::locked && type == FLASH_TYPEPROGRAM_DOUBLEWORD &&
                    stub::program(stub::place_of(address), &data, sizeof data, 8);
  return good ? HAL_OK : HAL_ERROR;
}
// Page 100 is the first of the array.
HAL_StatusTypeDef HAL_FLASHEx_Erase(FLASH_EraseInitTypeDef* what, std::uint32_t* failed) {
  const bool good = !stub::locked && what->TypeErase == FLASH_TYPEERASE_PAGES &&
                    what->Banks == FLASH_BANK_1 && what->NbPages == 1 &&
                    stub::erase((what->Page - 100) * FLASH_PAGE_SIZE, FLASH_PAGE_SIZE, FLASH_PAGE_SIZE);
  *failed = good ? 0xFFFFFFFFU : what->Page;
  return good ? HAL_OK : HAL_ERROR;
}

}  // namespace
