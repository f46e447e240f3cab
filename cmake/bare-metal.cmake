# What toolchain files of bare metal share: a processor of ATTUNE_CPU, a compiler on the PATH, and firmware's flags. A
# toolchain file sets these, and includes this one:
#   attune_cpus       processors, the first of which is the default, and attune_flags_<cpu> of each
#   attune_compilers  names of g++
#   attune_packages   Debian's, of the compiler, C's library and C++'s headers
#   attune_triple     clang's name of the target, if clang may compile for it
# The compiler is GCC. With -DCMAKE_CXX_COMPILER=clang++ (or clang++-19, or its path) it is clang, and GCC lends it headers,
# libraries and binutils.
set(CMAKE_SYSTEM_NAME Generic)

list(GET attune_cpus 0 attune_cpu)
set(ATTUNE_CPU ${attune_cpu} CACHE STRING "Processor of the firmware")
# Compiler checks configure a project of their own, which reads this file again.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ATTUNE_CPU)
set_property(CACHE ATTUNE_CPU PROPERTY STRINGS ${attune_cpus})
if(NOT ATTUNE_CPU IN_LIST attune_cpus)
  cmake_path(GET CMAKE_TOOLCHAIN_FILE FILENAME attune_file)
  list(JOIN attune_cpus ", " attune_cpus)
  message(FATAL_ERROR "ATTUNE_CPU is '${ATTUNE_CPU}'; cmake/${attune_file} knows ${attune_cpus}.")
endif()

find_program(ATTUNE_TARGET_COMPILER NAMES ${attune_compilers})
if(NOT ATTUNE_TARGET_COMPILER)
  list(GET attune_compilers 0 attune_compiler)
  message(FATAL_ERROR "${attune_compiler} is not on the PATH. On Debian and Ubuntu: apt-get install ${attune_packages}")
endif()
set(attune_flags "${attune_flags_${ATTUNE_CPU}}")
set(attune_cxx_flags "")
if(attune_triple AND CMAKE_CXX_COMPILER MATCHES "clang[+][+][^/]*$")
  include(${CMAKE_CURRENT_LIST_DIR}/bare-metal-clang.cmake)
else()
  set(CMAKE_CXX_COMPILER ${ATTUNE_TARGET_COMPILER})
  string(REGEX REPLACE "g\\+\\+([.]exe)?$" "gcc" CMAKE_C_COMPILER ${ATTUNE_TARGET_COMPILER})
endif()
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})

# Firmware without a heap, exceptions or a C runtime; unused functions are separable, so the linker can drop them.
set(CMAKE_ASM_FLAGS_INIT "${attune_flags}")
set(CMAKE_C_FLAGS_INIT "${attune_flags} -ffunction-sections -fdata-sections \
-fno-unwind-tables -fno-asynchronous-unwind-tables -DNDEBUG")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}${attune_cxx_flags} -fno-exceptions -fno-rtti -fno-threadsafe-statics -DEIGEN_NO_IO")

# There is no program to link before a port has provided start-up code.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Header-only packages such as Eigen may come from the machine that compiles; its libraries and headers may not.
list(APPEND CMAKE_SYSTEM_PREFIX_PATH /usr/local /usr)
string(REGEX REPLACE "^(.*)/bin/([^/]*)-g\\+\\+([.]exe)?$" "\\1/\\2" CMAKE_FIND_ROOT_PATH ${ATTUNE_TARGET_COMPILER})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
