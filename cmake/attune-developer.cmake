# attune_developer: what our own examples and tests compile with, by link_libraries() in their folders, and no consumer ever
# sees.
include(CheckCXXCompilerFlag)

# What is installed later, such as MPI, is found by the next build: apt-get changes this file.
if(PROJECT_IS_TOP_LEVEL AND EXISTS /var/lib/dpkg/status)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS /var/lib/dpkg/status)
endif()

option(ATTUNE_WERROR "Treat warnings in examples and tests as errors" OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CROSSCOMPILING)
  set(attune_native_default ON)
else()
  set(attune_native_default OFF)
endif()
option(ATTUNE_NATIVE "Compile examples and tests for exactly this processor; without it examples are for ATTUNE_PROCESSORS"
  ${attune_native_default})

add_library(attune_developer INTERFACE)
target_compile_options(attune_developer INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow $<$<BOOL:${ATTUNE_WERROR}>:-Werror>)
# GCC looks for garbage several times a source, a twelfth of its time; there is hardly any.
target_compile_options(attune_developer INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
if(ATTUNE_NATIVE AND NOT CMAKE_CROSSCOMPILING)
  check_cxx_compiler_flag(-march=native ATTUNE_HAS_MARCH_NATIVE)
  if(ATTUNE_HAS_MARCH_NATIVE)
    target_compile_options(attune_developer INTERFACE -march=native)
    set(ATTUNE_PROCESSORS "")
  endif()
endif()

# attune_precompile(target): standard headers are compiled once for all of a build; on the host the library as well. With the
# library for Arm, GCC 12 crashes where call graphs are asked for, and links functions that throw.
function(attune_precompile target)
  if(ATTUNE_CPU STREQUAL "cortex-m55")  # GCC 12 crashes on a precompiled header with arm_mve.h
    return()
  endif()
  if(NOT TARGET attune_precompiled)
    set(source ${PROJECT_BINARY_DIR}/precompiled.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(attune_precompiled OBJECT EXCLUDE_FROM_ALL ${source})
    set_target_properties(attune_precompiled PROPERTIES CXX_EXTENSIONS OFF)
    target_link_libraries(attune_precompiled PRIVATE attune::attune attune_developer)
    if(CMAKE_CROSSCOMPILING)
      target_precompile_headers(attune_precompiled PRIVATE <algorithm> <array> <cmath> <cstring> <limits> <span> <string_view> <tuple>)
    else()
      target_precompile_headers(attune_precompiled PRIVATE <attune/attune.hpp>)
    endif()
  endif()
  # That kernels/simd/arithmetic.hpp asks for silence is forgotten in a precompiled header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-ignored-attributes>)
  target_precompile_headers(${target} REUSE_FROM attune_precompiled)
endfunction()
