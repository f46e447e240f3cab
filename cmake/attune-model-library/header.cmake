# Writes name.h: sizes as the target's compiler left them in OBJECTS, statuses as they are in core/status.hpp.
#   cmake -DOBJECTS=… -DNAME=… -DTRAINS=… -DSTREAM=… -DLENGTHS=… -DSLICED=… [-DFLASH_PAGES=… -DFLASH_PAGE_SIZE=… -DFLASH_PROGRAM_UNIT=…]
#     -DHEADER=… -DINCLUDES=…|… -P header.cmake
set(found "")
foreach(object IN LISTS OBJECTS)
  file(STRINGS "${object}" found REGEX "ATTUNE_LIBRARY [0-9]+ ")
  if(found)
    break()
  endif()
endforeach()
if(NOT found MATCHES "ATTUNE_LIBRARY ([0-9]+) ([0-9]+) ([0-9]+) ([01]) ([0-9]+) ([0-9]+) ([01]) ([0-9]+) ([0-9]+) [0-9]+ ")
  message(FATAL_ERROR "attune_add_model_library: the sizes of ${NAME} are not in ${OBJECTS}")
endif()
set(RAM ${CMAKE_MATCH_1})
set(ALIGNMENT ${CMAKE_MATCH_2})
set(INPUTS ${CMAKE_MATCH_3})
set(INPUT float)
if(CMAKE_MATCH_4)
  set(INPUT int)
endif()
set(OUTPUTS ${CMAKE_MATCH_5})
set(TARGETS ${CMAKE_MATCH_6})
set(TARGET float)
if(CMAKE_MATCH_7)
  set(TARGET int)
endif()
set(STATE ${CMAKE_MATCH_8})
set(ROW ${CMAKE_MATCH_9})
string(REGEX REPLACE ".* ([0-9]+) $" "\\1" tokens "${CMAKE_MATCH_0}")
string(TOUPPER ${NAME} UPPER)
set(TOKENS "")
set(AND_TOKENS "")
set(OF_TOKENS "")
if(LENGTHS)
  set(TOKENS "\n#define ${UPPER}_TOKENS ${tokens}      /* tokens of a full sequence */")
  set(AND_TOKENS ", int tokens")
  set(OF_TOKENS ", of which the first `tokens` tokens are valid, 1 to ${UPPER}_TOKENS: the others have no influence, and rows of y
   behind them are zero. ${UPPER}_INVALID_LENGTH of another number. A loss over all tokens must ignore targets behind them: -100 for
   classes")
endif()

string(REPLACE "|" ";" includes "${INCLUDES}")
find_file(status_header attune/core/status.hpp PATHS ${includes} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(READ ${status_header} text)
string(REGEX MATCHALL "\n    k[A-Za-z]+ =[ \n]+[0-9]+," names "${text}")
set(STATUSES "")
foreach(status IN LISTS names)
  string(REGEX MATCH "k([A-Za-z]+) =[ \n]+([0-9]+)," ignored "${status}")
  set(number ${CMAKE_MATCH_2})
  string(REGEX REPLACE "([a-z])([A-Z])" "\\1_\\2" status "${CMAKE_MATCH_1}")
  string(TOUPPER "${status}" status)
  string(APPEND STATUSES "#define ${UPPER}_${status} ${number}\n")
endforeach()
string(REGEX REPLACE "\n$" "" STATUSES "${STATUSES}")

set(TRAINING_FUNCTIONS "")
if(NOT TRAINS STREQUAL "nothing")
  set(TRAINING_FUNCTIONS "
/* Begins a training: with the weights of the flash, or drawn from the seed. Forgets what was before it, a pass in slices
   included. Before it, and before a resume, the functions below answer ${UPPER}_NOT_INITIALIZED. */
${NAME}_status ${NAME}_start(${NAME}_model* model, uint64_t seed);
/* Forward and backward of a sequence; its loss, where `loss` is not NULL. */
${NAME}_status ${NAME}_accumulate(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, const ${NAME}_target* target, float* loss);
/* A step of the optimizer with the sequences accumulated since the last. */
${NAME}_status ${NAME}_update(${NAME}_model* model, float learning_rate);
/* Begins the same in slices of bounded work; x and target stay as they are until the end. */
${NAME}_status ${NAME}_accumulate_in_slices(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, const ${NAME}_target* target);
${NAME}_status ${NAME}_update_in_slices(${NAME}_model* model, float learning_rate);
/* The next slice: ${UPPER}_UNDER_WAY until the last, which answers what the whole call would. */
${NAME}_status ${NAME}_slice(${NAME}_model* model);
/* Forgets the sequences accumulated since the last update, and one under way. */
${NAME}_status ${NAME}_discard(${NAME}_model* model);
/* All that the training is, ${UPPER}_STATE bytes, to be stored behind a checksum; and on from there, to the same bits.
   ${UPPER}_OTHER_BASE: the state was trained beside other weights in flash, or in another arithmetic. */
${NAME}_status ${NAME}_save(const ${NAME}_model* model, void* bytes, size_t size);
${NAME}_status ${NAME}_resume(${NAME}_model* model, const void* bytes, size_t size);
/* Begins a training with the trained parameters of such a state beside the weights of this program: after an update of the
   firmware that has brought other weights. */
${NAME}_status ${NAME}_load(${NAME}_model* model, const void* bytes, size_t size);
")
endif()
set(FLASH_FUNCTIONS "")
if(FLASH_PAGES)
  math(EXPR bytes "${FLASH_PAGES} * ${FLASH_PAGE_SIZE}")
  set(FLASH_FUNCTIONS "
/* A driver of ${bytes} bytes of flash in pages of ${FLASH_PAGE_SIZE}: `at` counts from the first. Functions answer ${UPPER}_OK or
   ${UPPER}_FLASH_FAULT; `read` answers ${UPPER}_UNREADABLE where error correction cannot restore the bytes. `program` is called with
   multiples of ${FLASH_PROGRAM_UNIT} bytes in erased pages, `erase` with the first byte of a page; `sync` returns when all before
   it is in the flash. */
typedef struct ${NAME}_flash {
  void* context; /* handed to the functions; may be NULL */
  ${NAME}_status (*read)(void* context, uint32_t at, void* to, size_t bytes);
  ${NAME}_status (*program)(void* context, uint32_t at, const void* from, size_t bytes);
  ${NAME}_status (*erase)(void* context, uint32_t at);
  ${NAME}_status (*sync)(void* context);
} ${NAME}_flash;
/* Saves the training between two updates. A power cut at any time leaves the state before it or this one. */
${NAME}_status ${NAME}_save_to_flash(${NAME}_model* model, const ${NAME}_flash* flash);
/* Begins the same in slices: each is bounded work or one call of the driver. The driver stays as it is until the end, and an update
   answers ${UPPER}_UNDER_WAY. ${NAME}_start ends it, and the flash has the state before. */
${NAME}_status ${NAME}_save_to_flash_in_slices(${NAME}_model* model, const ${NAME}_flash* flash);
/* The next slice: ${UPPER}_UNDER_WAY until the last. ${UPPER}_NOT_INITIALIZED: ${NAME}_start has ended it. */
${NAME}_status ${NAME}_flash_slice(${NAME}_model* model);
/* Resumes from the newest state, and forgets accumulated sequences. ${UPPER}_NOTHING_STORED without one. After ${UPPER}_OTHER_BASE, ${UPPER}_OTHER_ARITHMETIC and
   ${UPPER}_UNREADABLE the model must be started or loaded. */
${NAME}_status ${NAME}_resume_from_flash(${NAME}_model* model, const ${NAME}_flash* flash);
/* ${NAME}_load of the newest state. */
${NAME}_status ${NAME}_load_from_flash(${NAME}_model* model, const ${NAME}_flash* flash);
")
endif()
set(SLICED_FUNCTIONS "")
if(SLICED)
  set(beside "")
  if(NOT TRAINS STREQUAL "nothing")
    set(beside " It may run between the slices of a
   sequence's training, and then an update answers ${UPPER}_UNDER_WAY until it is done. ${UPPER}_NOT_INITIALIZED: ${NAME}_start has ended it.")
  endif()
  set(SLICED_FUNCTIONS "/* Begins the same in slices of bounded work; x and y stay as they are until the end. */
${NAME}_status ${NAME}_predict_in_slices(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, float* y);
/* The next slice: ${UPPER}_UNDER_WAY until the last.${beside} */
${NAME}_status ${NAME}_predict_slice(${NAME}_model* model);
")
endif()
set(STREAM_FUNCTIONS "")
if(STREAM)
  set(STREAM_FUNCTIONS "
/* Token by token: the answer y[${UPPER}_ROW] to the next token, an id or a row of x. ${UPPER}_CACHE_FULL after ${STREAM}. */
${NAME}_status ${NAME}_token(${NAME}_model* model, const ${NAME}_input* x, float* y);
/* From the first token again. */
${NAME}_status ${NAME}_restart(${NAME}_model* model);
")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/header.h.in ${HEADER} @ONLY)
