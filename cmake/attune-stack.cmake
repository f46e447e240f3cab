# attune_stack_bound(target FUNCTION name BYTES number [CALLS CALLER=CALLEE...] [IMAGE program])
# The stack that a function of a firmware needs, for the array that becomes a task's stack: the header FUNCTION_stack.hpp
# with `inline constexpr std::size_t FUNCTION_stack_bytes = number`, which each build of `target` holds against the bound
# that the linked program's call graph gives. Where it is too low the build fails, says what is needed and leaves no program.
#
#   add_executable(firmware main.cpp)
#   target_link_libraries(firmware PRIVATE attune::attune)
#   attune_stack_bound(firmware FUNCTION train_task BYTES 512)
#
# IMAGE is the program, where `target` is a library of it. For Zephyr's app it is zephyr_final.
# FUNCTION is extern "C" or has a C++ name without parameters; of room::task the header and the constant are room_task's. All
# that it calls counts, of other sources and libraries too; interrupts and what an RTOS saves on the stack come on top.
# CALLS says whom a call through a pointer reaches (regular expressions of functions' names); without it such a call has
# no bound, and neither has recursion. The compiler is GCC for Arm, the check takes Python 3; for any other processor,
# as for tests on a PC, only the header is made.
function(attune_stack_bound target)
  cmake_parse_arguments(PARSE_ARGV 1 stack "" "FUNCTION;BYTES;IMAGE" "CALLS")
  if(NOT stack_FUNCTION OR NOT stack_BYTES MATCHES "^[0-9]+$" OR stack_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "usage: attune_stack_bound(target FUNCTION name BYTES number [CALLS CALLER=CALLEE...] [IMAGE program])")
  endif()
  string(MAKE_C_IDENTIFIER "${stack_FUNCTION}" name)
  string(REPLACE "__" "_" name ${name})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/attune_stack/${target})
  file(CONFIGURE OUTPUT ${folder}/${name}_stack.hpp @ONLY CONTENT "\
// By attune_stack_bound, which holds it against the program. Not for editing.
#pragma once

#include <cstddef>

/// At most this much stack does @stack_FUNCTION@ take, with all that it calls.
inline constexpr std::size_t @name@_stack_bytes = @stack_BYTES@;
")
  target_include_directories(${target} PRIVATE ${folder})

  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(arm|cortex)")
    return()
  endif()
  # Once for all bounds: every search starts Python several times.
  if(NOT ATTUNE_PYTHON3)
    find_package(Python3 COMPONENTS Interpreter QUIET)
    set(ATTUNE_PYTHON3 "${Python3_EXECUTABLE}" CACHE INTERNAL "")
  endif()
  if(NOT ATTUNE_PYTHON3)
    message(WARNING "attune_stack_bound: without Python 3 nobody checks that ${stack_BYTES} bytes are enough for "
      "${stack_FUNCTION}")
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "EXECUTABLE" AND NOT stack_IMAGE)
    if(NOT TARGET zephyr_final)
      message(FATAL_ERROR "attune_stack_bound: '${target}' is a library; IMAGE names the program that is checked")
    endif()
    set(stack_IMAGE zephyr_final)
  endif()
  # For each object a .ci file beside it, and with link-time optimization beside the program; the code stays as it is.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-fcallgraph-info=su>)
  if(NOT stack_IMAGE)
    target_link_options(${target} PRIVATE -fcallgraph-info=su)
  endif()
  set(folders ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir)
  if(TARGET attune_port)
    get_target_property(ports attune_port BINARY_DIR)
    list(APPEND folders ${ports}/CMakeFiles)
  endif()
  list(TRANSFORM stack_CALLS PREPEND "--calls;" OUTPUT_VARIABLE calls)
  string(REGEX REPLACE "g[+][+]([.]exe)?$" "" tools "${CMAKE_CXX_COMPILER}")
  set(image ${target})
  if(stack_IMAGE)
    set(image ${stack_IMAGE})
  endif()
  set(check ${ATTUNE_PYTHON3} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/stack_bound.py --root ${stack_FUNCTION} --limit ${stack_BYTES} ${calls}
    --tools ${tools} --on-failure remove $<TARGET_FILE:${image}> ${folders})
  if(stack_IMAGE)  # of another folder, perhaps, where this one adds no commands
    add_custom_target(${target}_${name}_stack ALL COMMAND ${check} VERBATIM)
    add_dependencies(${target}_${name}_stack ${image})
  else()
    add_custom_command(TARGET ${target} POST_BUILD COMMAND ${check} VERBATIM)
  endif()
endfunction()
