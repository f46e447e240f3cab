# Toolchain file for bare-metal Arm with GCC and newlib:
#   cmake --toolchain cmake/arm-none-eabi.cmake -DATTUNE_CPU=cortex-m4 ...

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)

set(ATTUNE_CPU cortex-m4 CACHE STRING "Processor of the firmware")
# Compiler checks configure a project of their own, which reads this file again.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ATTUNE_CPU)

set(attune_flags_cortex-m0  "-mcpu=cortex-m0 -mfloat-abi=soft")
set(attune_flags_cortex-m0plus "-mcpu=cortex-m0plus -mfloat-abi=soft")
set(attune_flags_cortex-m3  "-mcpu=cortex-m3 -mfloat-abi=soft")
set(attune_flags_cortex-m4  "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard")
set(attune_flags_cortex-m7  "-mcpu=cortex-m7 -mfpu=fpv5-sp-d16 -mfloat-abi=hard -DATTUNE_SPLIT_VMLA=0")
set(attune_flags_cortex-m7-dp "-mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard")  # with double precision
set(attune_flags_cortex-m33 "-mcpu=cortex-m33 -mfpu=fpv5-sp-d16 -mfloat-abi=hard")
set(attune_flags_cortex-m55 "-mcpu=cortex-m55 -mfloat-abi=hard")
# newlib's int32_t is long, which arm_neon.h's vector types and therefore Eigen's NEON code do not accept.
set(attune_flags_cortex-a15 "-mcpu=cortex-a15 -mfpu=neon-vfpv4 -mfloat-abi=hard \
-U__INT32_TYPE__ -D__INT32_TYPE__=int -U__UINT32_TYPE__ -D__UINT32_TYPE__=unsigned")
set(attune_cpus cortex-m0 cortex-m0plus cortex-m3 cortex-m4 cortex-m7 cortex-m7-dp cortex-m33 cortex-m55 cortex-a15)
set_property(CACHE ATTUNE_CPU PROPERTY STRINGS ${attune_cpus})
if(NOT ATTUNE_CPU IN_LIST attune_cpus)
  list(JOIN attune_cpus ", " attune_cpus)
  message(FATAL_ERROR "ATTUNE_CPU is '${ATTUNE_CPU}'; cmake/arm-none-eabi.cmake knows ${attune_cpus}.")
endif()

find_program(ATTUNE_ARM_COMPILER arm-none-eabi-g++)
if(NOT ATTUNE_ARM_COMPILER)
  message(FATAL_ERROR "arm-none-eabi-g++ is not on the PATH. On Debian and Ubuntu: apt-get install gcc-arm-none-eabi "
    "libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib")
endif()
set(CMAKE_CXX_COMPILER ${ATTUNE_ARM_COMPILER})
string(REGEX REPLACE "g\\+\\+([.]exe)?$" "gcc" CMAKE_C_COMPILER ${ATTUNE_ARM_COMPILER})
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})

# Firmware without a heap, exceptions or a C runtime; unused functions are separable, so the linker can drop them.
set(attune_flags "-mthumb ${attune_flags_${ATTUNE_CPU}} -ffunction-sections -fdata-sections \
-fno-unwind-tables -fno-asynchronous-unwind-tables -DNDEBUG")
set(CMAKE_C_FLAGS_INIT "${attune_flags}")
set(CMAKE_ASM_FLAGS_INIT "-mthumb ${attune_flags_${ATTUNE_CPU}}")
set(CMAKE_CXX_FLAGS_INIT "${attune_flags} -fno-exceptions -fno-rtti -fno-threadsafe-statics -DEIGEN_NO_IO")

# There is no program to link before a port has provided start-up code.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Header-only packages such as Eigen may come from the machine that compiles; its libraries and headers may not.
list(APPEND CMAKE_SYSTEM_PREFIX_PATH /usr/local /usr)
cmake_path(GET ATTUNE_ARM_COMPILER PARENT_PATH attune_compiler_folder)
set(CMAKE_FIND_ROOT_PATH ${attune_compiler_folder}/../arm-none-eabi)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
