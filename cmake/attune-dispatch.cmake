# attune_add_dispatched(target SOURCES file...)
# Adds sources to `target`, compiled once for each of ATTUNE_PROCESSORS; the program runs those of the best that the machine
# has. Without -march anywhere it is so as fast as one that is compiled for the machine, and runs on every other.
#
#   add_executable(app main.cpp)
#   target_link_libraries(app PRIVATE attune::attune)
#   attune_add_dispatched(app SOURCES model.cpp)   # main.cpp calls functions of model.cpp, as ever; or main is among SOURCES
#
# What other files may call are the functions that SOURCES define, but for inline ones and templates. All else in them is a
# copy for each processor that no other file sees: variables, inline functions, templates (Eigen's and the standard library's,
# too), initializers, which run for the chosen one alone. So nothing of a processor's code is reachable on a lesser one.
# Types that main.cpp and model.cpp share have one layout: Eigen aligns to 16 bytes in all of them. (What trains in Lockstep has
# the width of the processor in its name and size; keep it in model.cpp.)
#
# ATTUNE_PROCESSOR=sse2, avx2 or avx512 in the environment of a program takes that one instead (attune/host/dispatch.hpp). In
# unfused arithmetic all have the same bits. Fused arithmetic has no sse2, and a program of it refuses to run there; its files
# outside SOURCES have no FMA, and so may not include attune's headers.
#
# The sources are compiled once, with the project's options, as target_sources would: where ATTUNE_PROCESSORS is empty; where
# CMAKE_CXX_FLAGS ask for more than x86-64, sanitize or profile; where the processor is no x86-64, the compiler neither GCC nor
# Clang, the system without ELF and GNU ld, or the generator has several configurations.
set(ATTUNE_PROCESSORS sse2 avx2 avx512 CACHE STRING
  "What attune_add_dispatched compiles for, of sse2, avx2 (x86-64-v3) and avx512 (x86-64-v4); empty: as the project does")

# attune_why_once(result): why code cannot be compiled for several processors here, or "".
function(attune_why_once result)
  set(why "")
  string(TOUPPER "${CMAKE_BUILD_TYPE}" configuration)
  set(flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${configuration}}")
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(why "the processor is no x86-64")
  elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$" OR APPLE OR NOT UNIX)
    set(why "it takes GCC or Clang, and ELF")
  elseif(CMAKE_GENERATOR MATCHES "Multi-Config|Xcode|Visual Studio")
    set(why "the generator has several configurations")
  elseif(flags MATCHES "-fsanitize|-fprofile|--coverage")
    set(why "the project's options sanitize or profile")
  else()
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_QUIET TRUE)
    set(CMAKE_REQUIRED_FLAGS "${flags}")
    string(MAKE_C_IDENTIFIER "ATTUNE_PLAIN_X86_64 ${flags}" plain)
    check_cxx_source_compiles("
      #if defined(__SSE3__)
      #error a processor of the project's own
      #endif
      int main() {}" ${plain})
    # GNU's, whatever the compiler's own are.
    find_program(ATTUNE_LD NAMES ld.bfd ld)
    find_program(ATTUNE_OBJCOPY NAMES objcopy)
    find_program(ATTUNE_READELF NAMES readelf)
    mark_as_advanced(ATTUNE_LD ATTUNE_OBJCOPY ATTUNE_READELF)
    execute_process(COMMAND "${ATTUNE_LD}" --help OUTPUT_VARIABLE help ERROR_QUIET)
    if(NOT ${plain})
      set(why "the project's options choose a processor")
    elseif(NOT help MATCHES "force-group-allocation" OR NOT ATTUNE_OBJCOPY OR NOT ATTUNE_READELF)
      set(why "it takes ld, objcopy and readelf of GNU binutils 2.29")
    endif()
  endif()
  set(${result} "${why}" PARENT_SCOPE)
endfunction()

function(attune_add_dispatched target)
  cmake_parse_arguments(PARSE_ARGV 1 dispatched "" "" "SOURCES")
  if(NOT dispatched_SOURCES OR dispatched_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "usage: attune_add_dispatched(target SOURCES file...)")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "attune_add_dispatched: there is no target '${target}'; add_executable or add_library comes first.")
  endif()
  get_target_property(folder ${target} SOURCE_DIR)
  if(NOT folder STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    message(FATAL_ERROR "attune_add_dispatched: the target '${target}' is of the folder ${folder}; call it there.")
  endif()
  get_target_property(before ${target} ATTUNE_DISPATCHED)
  if(before)
    message(FATAL_ERROR "attune_add_dispatched: '${target}' has dispatched sources already; name all of them in one call.")
  endif()
  foreach(processor IN LISTS ATTUNE_PROCESSORS)
    if(NOT processor MATCHES "^(sse2|avx2|avx512)$")
      message(FATAL_ERROR "ATTUNE_PROCESSORS has '${processor}'; there are sse2, avx2 and avx512.")
    endif()
  endforeach()

  set(processors "")
  foreach(processor IN ITEMS sse2 avx2 avx512)  # in this order
    if(processor IN_LIST ATTUNE_PROCESSORS)
      list(APPEND processors ${processor})
    endif()
  endforeach()
  get_target_property(definitions attune::attune INTERFACE_COMPILE_DEFINITIONS)
  if("ATTUNE_FUSED=1" IN_LIST definitions)
    list(REMOVE_ITEM processors sse2)  # it has no FMA
  endif()
  if(processors)
    attune_why_once(why)
    if(why)
      set(processors "")
      if(NOT CMAKE_CROSSCOMPILING)
        message(STATUS "attune: ${target} is compiled for one processor: ${why}")
      endif()
    endif()
  endif()
  if(NOT processors)
    target_sources(${target} PRIVATE ${dispatched_SOURCES})
    return()
  endif()

  set(march_sse2 x86-64)
  set(march_avx2 x86-64-v3)
  set(march_avx512 x86-64-v4)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/attune_dispatched/${target})
  set(objects "")
  set(results ${folder}/dispatch.cpp)
  foreach(processor IN LISTS processors)
    set(part ${target}_${processor})
    string(COMPARE NOTEQUAL ${processor} sse2 has_avx2)
    string(COMPARE EQUAL ${processor} avx512 has_avx512)
    file(CONFIGURE OUTPUT ${folder}/${processor}.cpp @ONLY CONTENT "\
#if defined(__SSE3__) != @has_avx2@ || defined(__AVX2__) != @has_avx2@ || defined(__AVX512F__) != @has_avx512@
#error \"attune_add_dispatched: an option of this target chooses a processor (-march, -mavx): leave it away, or ATTUNE_PROCESSORS empty\"
#endif
")
    add_library(${part} OBJECT EXCLUDE_FROM_ALL ${dispatched_SOURCES} ${folder}/${processor}.cpp)
    # All that the target compiles with, asked for when it is known.
    target_link_libraries(${part} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
    target_include_directories(${part} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
    target_compile_definitions(${part} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>
      EIGEN_MAX_ALIGN_BYTES=16 EIGEN_MALLOC_ALREADY_ALIGNED=1  # what x86-64 has without an option
      ATTUNE_INSTRUCTION_SET=)  # functions have one name on every processor; which it is stands behind it
    target_compile_options(${part} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS>
      -march=${march_${processor}} -fno-lto $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
    target_compile_features(${part} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_FEATURES>)
    if(processor STREQUAL "avx512" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # Its intrinsics initialize an operand with itself (GCC bug 105593); of the rest the other processors' code warns.
      target_compile_options(${part} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
    endif()
    list(APPEND objects ${processor} $<TARGET_OBJECTS:${part}>)
    list(APPEND results ${folder}/${processor}.o)
    list(APPEND parts ${part})
  endforeach()

  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/attune-dispatch-link.cmake)
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE depends)
  add_custom_command(OUTPUT ${results}
    COMMAND ${CMAKE_COMMAND} -DTARGET=${target} -DFOLDER=${folder} -DLD=${ATTUNE_LD} -DOBJCOPY=${ATTUNE_OBJCOPY}
      -DREADELF=${ATTUNE_READELF} -P ${script} ${objects}
    DEPENDS ${depends} ${script}
    COMMENT "Dispatching ${target}: ${processors}"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_dependencies(${target} ${parts})
  target_sources(${target} PRIVATE ${results})
  # Jumps in assembly cannot be delayed until the program is linked.
  set_source_files_properties(${folder}/dispatch.cpp PROPERTIES
    COMPILE_OPTIONS -fno-lto SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES ATTUNE_DISPATCHED "${parts}")
  cmake_language(EVAL CODE "cmake_language(DEFER CALL attune_finish_dispatched [[${target}]])")
endfunction()

# What generator expressions do not tell, at the end of the target's folder.
function(attune_finish_dispatched target)
  get_target_property(parts ${target} ATTUNE_DISPATCHED)
  get_target_property(models ${target} ATTUNE_MODELS)
  get_target_property(type ${target} TYPE)
  foreach(part IN LISTS parts)
    foreach(property IN ITEMS CXX_STANDARD CXX_STANDARD_REQUIRED CXX_EXTENSIONS CXX_VISIBILITY_PRESET VISIBILITY_INLINES_HIDDEN
        POSITION_INDEPENDENT_CODE COMPILE_FLAGS)
      get_target_property(value ${target} ${property})
      if(NOT value MATCHES "-NOTFOUND$")
        set_target_properties(${part} PROPERTIES ${property} "${value}")
      elseif(property STREQUAL "POSITION_INDEPENDENT_CODE" AND type MATCHES "^(SHARED|MODULE)_LIBRARY$")
        set_target_properties(${part} PROPERTIES ${property} ON)
      endif()
    endforeach()
    if(models)
      add_dependencies(${part} ${models})
    endif()
  endforeach()
endfunction()
