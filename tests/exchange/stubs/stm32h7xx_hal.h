// Of ST's HAL for the STM32H7 and of CMSIS, what the adapter calls: sectors of 4 KB, to fit a test.
#pragma once

#include "stm32_hal.hpp"

namespace {

typedef struct {
  std::uint32_t TypeErase, Banks, Sector, NbSectors, VoltageRange;
} FLASH_EraseInitTypeDef;

#define FLASH_TYPEERASE_SECTORS 0x00U
#define FLASH_TYPEPROGRAM_FLASHWORD 0x01U
#define FLASH_BANK_1 0x01U
#define FLASH_BANK_2 0x02U
#define FLASH_VOLTAGE_RANGE_3 0x00000020U
#define FLASH_FLAG_DBECCERR_BANK1 0x04000000U
#define FLASH_FLAG_DBECCERR_BANK2 0x84000000U
#define FLASH_SECTOR_SIZE 4096U
#define SCB_CCR_BFHFNMIGN_Msk (1UL << 8)
#define __HAL_FLASH_GET_FLAG_BANK1(flag) (0U)
#define __HAL_FLASH_GET_FLAG_BANK2(flag) (stub::torn && stub_faults_ignored ? 1U : 0U)
#define __HAL_FLASH_CLEAR_FLAG_BANK1(flag) ((void)(flag))
#define __HAL_FLASH_CLEAR_FLAG_BANK2(flag) ((void)(flag))

struct {
  std::uint32_t CCR;
} stub_scb;
#define SCB (&stub_scb)
std::uint32_t stub_fault_mask;
bool stub_faults_ignored;  // when loads were waited for last
std::uint32_t __get_FAULTMASK() { return stub_fault_mask; }
void __set_FAULTMASK(std::uint32_t mask) { stub_fault_mask = mask; }
void __DSB() { stub_faults_ignored = stub_fault_mask != 0 && (stub_scb.CCR & SCB_CCR_BFHFNMIGN_Msk) != 0; }
void __ISB() {}
std::int32_t stub_invalidated;  // bytes of cache
void SCB_InvalidateDCache_by_Addr(std::uint32_t*, std::int32_t bytes) { stub_invalidated += bytes; }

// `data` is the address of a row in RAM, cut to 32 bits: the one that is nearest to this function's
// variables.
HAL_StatusTypeDef HAL_FLASH_Program(std::uint32_t type, std::uint32_t address, std::uint32_t data) {
  const auto here = reinterpret_cast<std::uintptr_t>(&data);
  const auto away = static_cast<std::int32_t>(data - static_cast<std::uint32_t>(here));
  const auto* const row =
      reinterpret_cast<const void*>(here + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(away)));
  const bool good = !stub::locked && type == FLASH_TYPEPROGRAM_FLASHWORD && data % 4 == 0 &&
                    stub::program(stub::place_of(address), row, 32, 32);
  return good ? HAL_OK : HAL_ERROR;
}
// Sector 4 of the second bank is the first of the array.
HAL_StatusTypeDef HAL_FLASHEx_Erase(FLASH_EraseInitTypeDef* what, std::uint32_t* failed) {
  const bool good = !stub::locked && what->TypeErase == FLASH_TYPEERASE_SECTORS &&
                    what->Banks == FLASH_BANK_2 && what->NbSectors == 1 &&
                    what->VoltageRange == FLASH_VOLTAGE_RANGE_3 &&
                    stub::erase((what->Sector - 4) * FLASH_SECTOR_SIZE, FLASH_SECTOR_SIZE, FLASH_SECTOR_SIZE);
  *failed = good ? 0xFFFFFFFFU : what->Sector;
  return good ? HAL_OK : HAL_ERROR;
}

}  // namespace
