# Toolchain file for Linux on 64-bit Arm, such as a Raspberry Pi, with Debian's cross compiler:
#   cmake --toolchain cmake/aarch64-linux-gnu.cmake -DATTUNE_PORT=host ...
# The compiler is GCC. With -DCMAKE_CXX_COMPILER=clang++ it is clang, with GCC's headers and libraries. ctest and custom commands
# run programs in qemu-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
if(CMAKE_CXX_COMPILER MATCHES "clang[+][+][^/]*$")
  set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
else()
  set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

# Header-only packages such as Eigen may come from the machine that compiles; its libraries may not.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
