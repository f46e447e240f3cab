// Of ST's HAL, what is the same for every STM32.
#pragma once

#include "memory.hpp"

namespace {

typedef enum { HAL_OK = 0, HAL_ERROR = 1 } HAL_StatusTypeDef;

HAL_StatusTypeDef HAL_FLASH_Unlock() {
  stub::locked = false;
  return HAL_OK;
}
HAL_StatusTypeDef HAL_FLASH_Lock() {
  stub::locked = true;
  return HAL_OK;
}

}  // namespace
