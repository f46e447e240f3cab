# Toolchain file for bare-metal Arm with GCC and newlib, or with clang and GCC's libraries:
#   cmake --toolchain cmake/arm-none-eabi.cmake -DATTUNE_CPU=cortex-m4 ...
#   cmake --toolchain cmake/arm-none-eabi.cmake -DATTUNE_CPU=cortex-m4 -DCMAKE_CXX_COMPILER=clang++ ...

set(CMAKE_SYSTEM_PROCESSOR arm)
set(attune_cpus cortex-m4 cortex-m0 cortex-m0plus cortex-m3 cortex-m7 cortex-m7-dp cortex-m33 cortex-m55 cortex-a15)
set(attune_flags_cortex-m0  "-mthumb -mcpu=cortex-m0 -mfloat-abi=soft")
set(attune_flags_cortex-m0plus "-mthumb -mcpu=cortex-m0plus -mfloat-abi=soft")
set(attune_flags_cortex-m3  "-mthumb -mcpu=cortex-m3 -mfloat-abi=soft")
set(attune_flags_cortex-m4  "-mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard")
set(attune_flags_cortex-m7  "-mthumb -mcpu=cortex-m7 -mfpu=fpv5-sp-d16 -mfloat-abi=hard -DATTUNE_SPLIT_VMLA=0")
set(attune_flags_cortex-m7-dp "-mthumb -mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard")  # with double precision
set(attune_flags_cortex-m33 "-mthumb -mcpu=cortex-m33 -mfpu=fpv5-sp-d16 -mfloat-abi=hard")
set(attune_flags_cortex-m55 "-mthumb -mcpu=cortex-m55 -mfloat-abi=hard")
# newlib's int32_t is long, which arm_neon.h's vector types do not accept.
set(attune_flags_cortex-a15 "-mthumb -mcpu=cortex-a15 -mfpu=neon-vfpv4 -mfloat-abi=hard \
-U__INT32_TYPE__ -D__INT32_TYPE__=int -U__UINT32_TYPE__ -D__UINT32_TYPE__=unsigned")

set(attune_compilers arm-none-eabi-g++)
set(attune_packages "gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib")
set(attune_triple arm-none-eabi)
include(${CMAKE_CURRENT_LIST_DIR}/bare-metal.cmake)
