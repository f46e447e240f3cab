// The flash of an STM32 H7 as attune::FlashStore wants it: 32 bytes at a time, each with its error
// correction, sectors of 128 KB (8 KB on an H7A3). Copy it into the project, behind the HAL's header:
//
//   #include "stm32h7xx_hal.h"
//   #include "stm32_h7.hpp"
//   Stm32H7Flash<2, FLASH_SECTOR_SIZE> flash({.address = 0x081C0000, .bank = FLASH_BANK_2, .sector = 6});
//
// A row that a power cut tore is a bus fault when it is read: read() holds it off and asks the flash. Keep
// the sectors out of the program, in the linker script, and in the other bank, or the processor waits for
// each erase.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>

struct Stm32Sectors {
  std::uintptr_t address;  // of the first byte
  std::uint32_t bank;      // FLASH_BANK_1 or FLASH_BANK_2
  std::uint32_t sector;    // number of the first sector in the bank
};

template <std::uint32_t sectors, std::uint32_t sector_size>
class Stm32H7Flash {
 public:
  static constexpr std::uint32_t kPageSize = sector_size, kPages = sectors, kProgramUnit = 32;
  static constexpr unsigned char kErased = 0xFF;

  explicit Stm32H7Flash(const Stm32Sectors& where) : where_(where) {}

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    clear_errors();
    constexpr std::size_t kPiece = 256;  // interrupts wait for it
    for (std::size_t done = 0; done < bytes; done += kPiece)
      copy(static_cast<unsigned char*>(to) + done, where_.address + at + done,
           (std::min)(kPiece, bytes - done));
    const bool torn = is_bank_1() ? __HAL_FLASH_GET_FLAG_BANK1(FLASH_FLAG_DBECCERR_BANK1) != 0
                                  : __HAL_FLASH_GET_FLAG_BANK2(FLASH_FLAG_DBECCERR_BANK2) != 0;
    clear_errors();
    return torn ? attune::Status::kUnreadable : attune::Status::kOk;
  }

  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    HAL_StatusTypeDef status = HAL_FLASH_Unlock();
    for (std::size_t done = 0; done < bytes && status == HAL_OK; done += kProgramUnit) {
      alignas(4) unsigned char row[kProgramUnit];
      std::memcpy(row, static_cast<const unsigned char*>(from) + done, sizeof row);
      status = HAL_FLASH_Program(FLASH_TYPEPROGRAM_FLASHWORD,
                                 static_cast<std::uint32_t>(where_.address + at + done),
                                 static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(row)));
    }
    return finish(status, at, bytes);
  }

  attune::Status erase(std::uint32_t at) {
    FLASH_EraseInitTypeDef sector{};
    sector.TypeErase = FLASH_TYPEERASE_SECTORS;
    sector.Banks = where_.bank;
    sector.Sector = where_.sector + at / kPageSize;
    sector.NbSectors = 1;
    sector.VoltageRange = FLASH_VOLTAGE_RANGE_3;
    std::uint32_t failed;
    HAL_StatusTypeDef status = HAL_FLASH_Unlock();
    if (status == HAL_OK) status = HAL_FLASHEx_Erase(&sector, &failed);
    return finish(status, at, kPageSize);
  }

  attune::Status sync() { return attune::Status::kOk; }

 private:
  /// With FAULTMASK set and BFHFNMIGN, a load that faults answers anything and goes on (Armv7-M, B1.5).
  static void copy(void* to, std::uintptr_t from, std::size_t bytes) {
    const std::uint32_t masked = __get_FAULTMASK(), control = SCB->CCR;
    __set_FAULTMASK(1);
    SCB->CCR = control | SCB_CCR_BFHFNMIGN_Msk;
    __DSB();
    __ISB();
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    __DSB();
    SCB->CCR = control;
    __set_FAULTMASK(masked);
  }
  /// The data cache still has what stood there. `at` and `bytes` are whole rows, and those are whole cache
  /// lines.
  attune::Status finish(HAL_StatusTypeDef status, std::uint32_t at, std::size_t bytes) {
    SCB_InvalidateDCache_by_Addr(reinterpret_cast<std::uint32_t*>(where_.address + at),
                                 static_cast<std::int32_t>(bytes));
    return HAL_FLASH_Lock() == HAL_OK && status == HAL_OK ? attune::Status::kOk : attune::Status::kFlashFault;
  }
  bool is_bank_1() const { return where_.bank == FLASH_BANK_1; }
  void clear_errors() {
    if (is_bank_1()) {
      __HAL_FLASH_CLEAR_FLAG_BANK1(FLASH_FLAG_DBECCERR_BANK1);
    } else {
      __HAL_FLASH_CLEAR_FLAG_BANK2(FLASH_FLAG_DBECCERR_BANK2);
    }
  }
  Stm32Sectors where_;
};
