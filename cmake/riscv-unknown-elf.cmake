# Toolchain file for bare-metal RISC-V with GCC and picolibc or newlib:
#   cmake --toolchain cmake/riscv-unknown-elf.cmake -DATTUNE_CPU=rv32imafc ...

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv)

set(ATTUNE_CPU rv32imafc CACHE STRING "Processor of the firmware")
# Compiler checks configure a project of their own, which reads this file again.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ATTUNE_CPU)

set(attune_flags_rv32imafc "-march=rv32imafc -mabi=ilp32f")
set(attune_flags_rv32imc   "-march=rv32imc -mabi=ilp32")  # the ESP32-C3's
set(attune_cpus rv32imafc rv32imc)
set_property(CACHE ATTUNE_CPU PROPERTY STRINGS ${attune_cpus})
if(NOT ATTUNE_CPU IN_LIST attune_cpus)
  list(JOIN attune_cpus ", " attune_cpus)
  message(FATAL_ERROR "ATTUNE_CPU is '${ATTUNE_CPU}'; cmake/riscv-unknown-elf.cmake knows ${attune_cpus}.")
endif()

find_program(ATTUNE_RISCV_COMPILER NAMES riscv64-unknown-elf-g++ riscv32-unknown-elf-g++ riscv-none-elf-g++)
if(NOT ATTUNE_RISCV_COMPILER)
  message(FATAL_ERROR "riscv64-unknown-elf-g++ is not on the PATH. On Debian and Ubuntu: apt-get install "
    "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf libstdc++-arm-none-eabi-newlib")
endif()
set(CMAKE_CXX_COMPILER ${ATTUNE_RISCV_COMPILER})
string(REGEX REPLACE "g\\+\\+([.]exe)?$" "gcc" CMAKE_C_COMPILER ${ATTUNE_RISCV_COMPILER})
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})

# Debian's compiler has its C library beside it, and no headers of C++. Those of libstdc++ for another processor with
# newlib do: what freestanding headers say of the processor they ask of the compiler, and nothing of libstdc++ is linked.
set(attune_target_flags "${attune_flags_${ATTUNE_CPU}}")
set(attune_headers "")
# attune_finds(compiler header result): the folder in which a compiler finds a header of C++, or nothing
function(attune_finds compiler header result)
  execute_process(COMMAND ${compiler} -M -x c++ -std=c++20 -include ${header} /dev/null
    OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE code)
  set(folder "")
  if(code EQUAL 0 AND said MATCHES " ([^ \n]+)/${header}[ \n]")
    set(folder "${CMAKE_MATCH_1}")
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()
execute_process(COMMAND ${ATTUNE_RISCV_COMPILER} -print-file-name=picolibc.specs
  OUTPUT_VARIABLE attune_specs OUTPUT_STRIP_TRAILING_WHITESPACE)
if(EXISTS "${attune_specs}")
  string(APPEND attune_target_flags " --specs=picolibc.specs")
endif()
attune_finds(${ATTUNE_RISCV_COMPILER} cstdint attune_headers)
if(NOT attune_headers)
  find_program(ATTUNE_ARM_COMPILER arm-none-eabi-g++)
  if(ATTUNE_ARM_COMPILER)
    attune_finds(${ATTUNE_ARM_COMPILER} cstdint attune_headers)
  endif()
  if(NOT attune_headers)
    message(FATAL_ERROR "${ATTUNE_RISCV_COMPILER} has no headers of C++, and there are none to lend to it. On Debian and "
      "Ubuntu: apt-get install gcc-arm-none-eabi libstdc++-arm-none-eabi-newlib")
  endif()
  string(APPEND attune_target_flags " -isystem ${attune_headers} -isystem ${attune_headers}/arm-none-eabi")
endif()

# Firmware without a heap, exceptions or a C runtime; unused functions are separable, so the linker can drop them.
set(attune_flags "${attune_target_flags} -ffunction-sections -fdata-sections \
-fno-unwind-tables -fno-asynchronous-unwind-tables -DNDEBUG")
set(CMAKE_C_FLAGS_INIT "${attune_flags}")
set(CMAKE_ASM_FLAGS_INIT "${attune_flags_${ATTUNE_CPU}}")
set(CMAKE_CXX_FLAGS_INIT "${attune_flags} -fno-exceptions -fno-rtti -fno-threadsafe-statics -DEIGEN_NO_IO")

# There is no program to link before a port has provided start-up code.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Header-only packages such as Eigen may come from the machine that compiles; its libraries and headers may not.
list(APPEND CMAKE_SYSTEM_PREFIX_PATH /usr/local /usr)
cmake_path(GET ATTUNE_RISCV_COMPILER PARENT_PATH attune_compiler_folder)
set(CMAKE_FIND_ROOT_PATH ${attune_compiler_folder}/../riscv64-unknown-elf)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
