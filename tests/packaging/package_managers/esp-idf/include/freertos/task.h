#pragma once

#include "FreeRTOS.h"

#define tskIDLE_PRIORITY 0U

struct tskTaskControlBlock;
using TaskHandle_t = tskTaskControlBlock*;
extern "C" {
TaskHandle_t xTaskCreateStatic(void (*code)(void*), const char* name, std::uint32_t bytes, void* argument, unsigned priority,
                               StackType_t* stack, StaticTask_t* block);
unsigned uxTaskGetStackHighWaterMark(TaskHandle_t task);
void vTaskDelay(std::uint32_t ticks);
}
