# Debian's compiler has its C library beside it, and no headers of C++. Those of libstdc++ for another processor with
# newlib do: what freestanding headers say of the processor they ask of the compiler, and nothing of libstdc++ is linked.
execute_process(COMMAND ${ATTUNE_TARGET_COMPILER} -print-file-name=picolibc.specs
  OUTPUT_VARIABLE attune_specs OUTPUT_STRIP_TRAILING_WHITESPACE)
if(EXISTS "${attune_specs}")
  string(APPEND CMAKE_C_FLAGS_INIT " --specs=picolibc.specs")
  string(APPEND CMAKE_CXX_FLAGS_INIT " --specs=picolibc.specs")
endif()
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
attune_finds(${ATTUNE_TARGET_COMPILER} cstdint attune_headers)
if(NOT attune_headers)
  find_program(ATTUNE_ARM_COMPILER arm-none-eabi-g++)
  if(ATTUNE_ARM_COMPILER)
    attune_finds(${ATTUNE_ARM_COMPILER} cstdint attune_headers)
  endif()
  if(NOT attune_headers)
    message(FATAL_ERROR "${ATTUNE_TARGET_COMPILER} has no headers of C++, and there are none to lend to it. On Debian and "
      "Ubuntu: apt-get install gcc-arm-none-eabi libstdc++-arm-none-eabi-newlib")
  endif()
  string(APPEND CMAKE_CXX_FLAGS_INIT " -isystem ${attune_headers} -isystem ${attune_headers}/arm-none-eabi")
endif()
