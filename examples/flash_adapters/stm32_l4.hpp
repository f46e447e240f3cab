// The flash of an STM32 L4, G4, WB or L5 with pages, as attune::FlashStore wants it: 8 bytes at a time, each
// with its error correction. Copy it into the project, behind the HAL's header:
//
//   #include "stm32l4xx_hal.h"
//   #include "stm32_l4.hpp"
//   Stm32PageFlash<4, FLASH_PAGE_SIZE> flash({.address = 0x080FE000, .bank = FLASH_BANK_2, .page = 252});
//   extern "C" void NMI_Handler() { if (!stm32_unreadable_row()) for (;;) {} }
//
// A row that a power cut tore is an NMI when it is read; the handler above leaves it to read(). Keep the
// pages out of the program, in the linker script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <attune/core/status.hpp>

struct Stm32Pages {
  std::uintptr_t address;  // of the first byte
  std::uint32_t bank;      // FLASH_BANK_1 or FLASH_BANK_2
  std::uint32_t page;      // number of the first page in the bank
};

inline volatile bool stm32_row_was_unreadable = false;

/// For the NMI handler: whether the flash was the cause.
inline bool stm32_unreadable_row() {
  if (!__HAL_FLASH_GET_FLAG(FLASH_FLAG_ECCD)) return false;
  __HAL_FLASH_CLEAR_FLAG(FLASH_FLAG_ECCD);
  stm32_row_was_unreadable = true;
  return true;
}

template <std::uint32_t pages, std::uint32_t page_size>
class Stm32PageFlash {
 public:
  static constexpr std::uint32_t kPageSize = page_size, kPages = pages, kProgramUnit = 8;
  static constexpr unsigned char kErased = 0xFF;

  explicit Stm32PageFlash(const Stm32Pages& where) : where_(where) {}

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    stm32_row_was_unreadable = false;
    std::memcpy(to, reinterpret_cast<const void*>(where_.address + at), bytes);
    __DSB();  // an error of the last byte is here by now
    return stm32_row_was_unreadable ? attune::Status::kUnreadable : attune::Status::kOk;
  }

  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    HAL_StatusTypeDef status = HAL_FLASH_Unlock();
    for (std::size_t done = 0; done < bytes && status == HAL_OK; done += kProgramUnit) {
      std::uint64_t row;
      std::memcpy(&row, static_cast<const unsigned char*>(from) + done, sizeof row);
      status = HAL_FLASH_Program(FLASH_TYPEPROGRAM_DOUBLEWORD,
                                 static_cast<std::uint32_t>(where_.address + at + done), row);
    }
    return lock(status);
  }

  attune::Status erase(std::uint32_t at) {
    FLASH_EraseInitTypeDef page{};
    page.TypeErase = FLASH_TYPEERASE_PAGES;
    page.Banks = where_.bank;
    page.Page = where_.page + at / kPageSize;
    page.NbPages = 1;
    std::uint32_t failed;
    HAL_StatusTypeDef status = HAL_FLASH_Unlock();
    if (status == HAL_OK) status = HAL_FLASHEx_Erase(&page, &failed);
    return lock(status);
  }

  /// The HAL waits for each operation, and empties the caches behind an erase.
  attune::Status sync() { return attune::Status::kOk; }

 private:
  static attune::Status lock(HAL_StatusTypeDef status) {
    return HAL_FLASH_Lock() == HAL_OK && status == HAL_OK ? attune::Status::kOk : attune::Status::kFlashFault;
  }
  Stm32Pages where_;
};
