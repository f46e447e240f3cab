/* FreeRTOS 11 for the sample: static tasks, no heap, stacks checked. CMakeLists.txt sets configCPU_CLOCK_HZ.
   Also the kernel's sources in C and assembly read it. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configTICK_RATE_HZ 1000
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configUSE_PREEMPTION 1
#define configUSE_TIME_SLICING 0
#define configMAX_PRIORITIES 4
#define configMINIMAL_STACK_SIZE 128
#define configUSE_TASK_NOTIFICATIONS 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configUSE_TIMERS 0

#define configSUPPORT_STATIC_ALLOCATION 1
#define configSUPPORT_DYNAMIC_ALLOCATION 0
#define configKERNEL_PROVIDED_STATIC_MEMORY 1

/* The last 16 bytes of every stack keep their pattern: freertos_stack.hpp counts them. */
#define configCHECK_FOR_STACK_OVERFLOW 2
#define INCLUDE_uxTaskGetStackHighWaterMark 1
#define INCLUDE_xTaskGetHandle 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_vTaskDelay 1
#define INCLUDE_uxTaskPriorityGet 1
#define INCLUDE_xTaskDelayUntil 1

/* Interrupts that call the kernel have priorities of 5 and more, of 8 (3 bits). */
#define configPRIO_BITS 3
#define configKERNEL_INTERRUPT_PRIORITY (7 << (8 - configPRIO_BITS))
#define configMAX_SYSCALL_INTERRUPT_PRIORITY (5 << (8 - configPRIO_BITS))

/* Armv8-M: the tasks use the FPU, and all code is secure, as the processor starts. */
#define configENABLE_FPU 1
#define configENABLE_MPU 0
#define configENABLE_TRUSTZONE 0
#define configRUN_FREERTOS_SECURE_ONLY 1
#if defined(__ARM_FEATURE_MVE)
#define configENABLE_MVE 1
#endif

/* The handlers, by the names that the vector table of ports/cortex_m has. */
#define vPortSVCHandler svc_handler
#define xPortPendSVHandler pendsv_handler
#define xPortSysTickHandler systick_handler
#define SVC_Handler svc_handler
#define PendSV_Handler pendsv_handler
#define SysTick_Handler systick_handler

#if defined(__cplusplus)
extern "C"
#endif
    void
    assertion_failed(const char* file, int line);
#define configASSERT(condition) ((condition) ? (void)0 : assertion_failed(__FILE__, __LINE__))

#endif
