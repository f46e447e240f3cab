// The part of FreeRTOS that ports/rtos names, as its documentation and the port ARM_CM4F have it; with
// ATTUNE_STUB_CORES more than 1, of a kernel for several cores.
#pragma once

#include <cstdint>

using BaseType_t = long;
using UBaseType_t = unsigned long;
using StackType_t = std::uint32_t;
using TickType_t = std::uint32_t;

#define pdTRUE (static_cast<BaseType_t>(1))
#define portMAX_DELAY (static_cast<TickType_t>(0xFFFFFFFFUL))
#define configMAX_PRIORITIES (8)
#define configCHECK_FOR_STACK_OVERFLOW (2)
#define configTICK_RATE_HZ (static_cast<TickType_t>(1000))
#define pdMS_TO_TICKS(xTimeInMs) \
  (static_cast<TickType_t>((static_cast<std::uint64_t>(xTimeInMs) * configTICK_RATE_HZ) / 1000U))
#define INCLUDE_vTaskDelay 1
#define INCLUDE_uxTaskPriorityGet 1
#define INCLUDE_xTaskGetCurrentTaskHandle 1
#if defined(ATTUNE_STUB_CORES)
#define configNUMBER_OF_CORES ATTUNE_STUB_CORES
#if ATTUNE_STUB_CORES > 1
#define configUSE_CORE_AFFINITY 1
#endif
#endif

struct StaticTask_t {
  void* pxDummy[20];
};
