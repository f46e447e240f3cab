# attune_add_replay(target HEADER header.hpp SETUP type)
# A program for this PC that replays journals of a device (attune/persistence/training_journal.hpp): it ends with the device's
# parameters, or names the first step that differs. `type` of `header` says what a journal does not contain, as
# attune/host/replay.hpp shows.
#
#   attune_add_replay(attune-replay HEADER replay_setup.hpp SETUP Setup)
#   attune_add_model(attune-replay NAME weights FILE base.safetensors)     # where the training has a base in flash
#   ./attune-replay JOURNAL [STATE...]
#
# A relative `header` is one of the current source folder. In a build of firmware there is no such program: make it in the build for
# the PC.
function(attune_add_replay target)
  cmake_parse_arguments(PARSE_ARGV 1 replay "" "HEADER;SETUP" "")
  if(NOT replay_HEADER OR NOT replay_SETUP OR replay_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "usage: attune_add_replay(target HEADER header.hpp SETUP type)")
  endif()
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "attune_add_replay: '${target}' runs on a PC; call it in a build for that.")
  endif()
  cmake_path(ABSOLUTE_PATH replay_HEADER BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE header)
  if(NOT EXISTS "${header}")
    message(FATAL_ERROR "attune_add_replay: there is no file ${header}.")
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/attune_replays/${target}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "\
// By attune_add_replay. Not for editing.
#include \"@header@\"

#include <attune/host/replay.hpp>

int main(int count, char** words) { return attune::host::replay_main<@replay_SETUP@>(count, words); }
")
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE attune::attune)
endfunction()
