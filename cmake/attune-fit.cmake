# attune_fit(target MODEL <C++ type> HEADER header.hpp [LOSS <C++ type>] [BOARD name | CORE name] [RAM 64K] [FLASH 256K] [STEP 100ms]
#            [ONLY name] [ALL] [ATTEMPTS n])
# A target that prints which ways to train a model fit a board: RAM of each way, then flash, stack, time and boards of the first that
# fits (attune_torch's fit). No build takes it in; build it by name. Takes Python 3, the compiler for Arm and its emulator.
#
#   attune_fit(which_training MODEL small::Model HEADER model.hpp BOARD stm32f411 RAM 64K)
#   cmake --build build --target which_training
#
# MODEL is a type of HEADER, in float. Weights in flash are drawn. LOSS is attune::CrossEntropy<>, CORE cortex-m4. ONLY takes ways with this in
# their names, ALL prints every way, and ATTEMPTS are built until one is within all limits, 3.
# Results are kept, by the content of HEADER, of what it includes in quotes, and of attune. After an edit of another header, delete
# attune_fit/target in the build folder.

set(ATTUNE_FIT_PYTHONPATH ${CMAKE_CURRENT_LIST_DIR}/../lib/attune_torch CACHE INTERNAL "")

function(attune_fit target)
  cmake_parse_arguments(PARSE_ARGV 1 fit "ALL" "MODEL;HEADER;LOSS;BOARD;CORE;RAM;FLASH;STEP;ONLY;ATTEMPTS" "")
  if(NOT fit_MODEL OR NOT fit_HEADER OR fit_UNPARSED_ARGUMENTS OR fit_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "usage: attune_fit(target MODEL <C++ type> HEADER header.hpp [LOSS <C++ type>] [BOARD name | CORE name] [RAM 64K] "
      "[FLASH 256K] [STEP 100ms] [ONLY name] [ALL] [ATTEMPTS n]). Not known: '${fit_UNPARSED_ARGUMENTS}'; without a value: '${fit_KEYWORDS_MISSING_VALUES}'")
  endif()
  cmake_path(ABSOLUTE_PATH fit_HEADER BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
  if(NOT EXISTS ${fit_HEADER})
    message(FATAL_ERROR "attune_fit: there is no header ${fit_HEADER}")
  endif()
  if(NOT IS_DIRECTORY ${ATTUNE_FIT_PYTHONPATH}/attune_torch)
    message(FATAL_ERROR "attune_fit: the search is in attune's sources: take attune by add_subdirectory or FetchContent")
  endif()
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  set(options "")
  foreach(option IN ITEMS LOSS BOARD CORE RAM FLASH STEP ONLY ATTEMPTS)
    if(DEFINED fit_${option})
      string(TOLOWER ${option} name)
      list(APPEND options --${name} "${fit_${option}}")
    endif()
  endforeach()
  if(fit_ALL)
    list(APPEND options --all)
  endif()
  add_custom_target(${target}
    COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${ATTUNE_FIT_PYTHONPATH} ${Python3_EXECUTABLE} -B -m attune_torch fit
      ${CMAKE_CURRENT_BINARY_DIR}/attune_fit/${target} --model "${fit_MODEL}" --header ${fit_HEADER} ${options}
    USES_TERMINAL VERBATIM)
endfunction()
