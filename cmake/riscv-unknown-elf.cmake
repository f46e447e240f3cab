# Toolchain file for bare-metal RISC-V with GCC and picolibc or newlib:
#   cmake --toolchain cmake/riscv-unknown-elf.cmake -DATTUNE_CPU=rv32imafc ...

set(CMAKE_SYSTEM_PROCESSOR riscv)
set(attune_cpus rv32imafc rv32imc)
set(attune_flags_rv32imafc "-march=rv32imafc -mabi=ilp32f")
set(attune_flags_rv32imc   "-march=rv32imc -mabi=ilp32")  # the ESP32-C3's

set(attune_compilers riscv64-unknown-elf-g++ riscv32-unknown-elf-g++ riscv-none-elf-g++)
set(attune_packages "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf libstdc++-arm-none-eabi-newlib")
include(${CMAKE_CURRENT_LIST_DIR}/bare-metal.cmake)

include(${CMAKE_CURRENT_LIST_DIR}/lent-headers.cmake)
