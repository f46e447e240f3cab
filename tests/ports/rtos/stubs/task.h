#pragma once

#include "FreeRTOS.h"

struct tskTaskControlBlock;
using TaskHandle_t = tskTaskControlBlock*;
using TaskFunction_t = void (*)(void*);

#define tskIDLE_PRIORITY (static_cast<UBaseType_t>(0U))

extern "C" {
TaskHandle_t xTaskCreateStatic(TaskFunction_t pxTaskCode, const char* pcName, std::uint32_t ulStackDepth,
                               void* pvParameters, UBaseType_t uxPriority, StackType_t* puxStackBuffer,
                               StaticTask_t* pxTaskBuffer);
TickType_t xTaskGetTickCount();
BaseType_t xTaskDelayUntil(TickType_t* pxPreviousWakeTime, TickType_t xTimeIncrement);
BaseType_t xTaskNotifyGive(TaskHandle_t xTaskToNotify);
TaskHandle_t xTaskGetHandle(const char* pcNameToQuery);
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t xTask);
void vTaskStartScheduler();
std::uint32_t ulTaskNotifyTake(BaseType_t xClearCountOnExit, TickType_t xTicksToWait);
}
