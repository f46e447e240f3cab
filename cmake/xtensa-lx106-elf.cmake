# Toolchain file for bare-metal Xtensa LX106, the ESP8266's processor, with GCC and picolibc:
#   cmake --toolchain cmake/xtensa-lx106-elf.cmake -DATTUNE_CPU=lx106 ...

set(CMAKE_SYSTEM_PROCESSOR xtensa)
set(attune_cpus lx106)
set(attune_flags_lx106 -mtext-section-literals)

set(attune_compilers xtensa-lx106-elf-g++)
set(attune_packages "gcc-xtensa-lx106 picolibc-xtensa-lx106-elf libstdc++-arm-none-eabi-newlib")
include(${CMAKE_CURRENT_LIST_DIR}/bare-metal.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/lent-headers.cmake)
