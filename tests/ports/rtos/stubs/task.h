#pragma once

#include "FreeRTOS.h"

struct tskTaskControlBlock;
using TaskHandle_t = tskTaskControlBlock*;
using TaskFunction_t = void (*)(void*);

#define tskIDLE_PRIORITY (static_cast<UBaseType_t>(0U))
#define taskYIELD() vPortYield()

extern "C" {
TaskHandle_t xTaskCreateStatic(TaskFunction_t pxTaskCode, const char* pcName, std::uint32_t ulStackDepth,
                               void* pvParameters, UBaseType_t uxPriority, StackType_t* puxStackBuffer,
                               StaticTask_t* pxTaskBuffer);
TaskHandle_t xTaskCreateStaticAffinitySet(TaskFunction_t pxTaskCode, const char* pcName,
                                          std::uint32_t ulStackDepth, void* pvParameters,
                                          UBaseType_t uxPriority, StackType_t* puxStackBuffer,
                                          StaticTask_t* pxTaskBuffer, UBaseType_t uxCoreAffinityMask);
void vTaskCoreAffinitySet(TaskHandle_t xTask, UBaseType_t uxCoreAffinityMask);
TickType_t xTaskGetTickCount();
void vTaskDelay(TickType_t xTicksToDelay);
BaseType_t xTaskDelayUntil(TickType_t* pxPreviousWakeTime, TickType_t xTimeIncrement);
BaseType_t xTaskNotifyGive(TaskHandle_t xTaskToNotify);
TaskHandle_t xTaskGetHandle(const char* pcNameToQuery);
TaskHandle_t xTaskGetCurrentTaskHandle();
UBaseType_t uxTaskPriorityGet(TaskHandle_t xTask);
void vTaskPrioritySet(TaskHandle_t xTask, UBaseType_t uxNewPriority);
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t xTask);
void vTaskStartScheduler();
void vPortYield();
std::uint32_t ulTaskNotifyTake(BaseType_t xClearCountOnExit, TickType_t xTicksToWait);
}
