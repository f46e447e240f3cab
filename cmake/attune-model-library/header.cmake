# Writes name.h: sizes as the target's compiler left them in OBJECTS, statuses as they are in core/status.hpp.
#   cmake -DOBJECTS=… -DNAME=… -DTRAINS=… -DBATCH=… -DACCUMULATES=… -DKIND=backward|forward_only|closed_form|info_max|balanced_labels -DLEARNS_TAKES=… -DNUMBER=learning_rate|ridge -DVALUE=… -DSTEPS=… -DSTREAM=… -DLENGTHS=… -DSLICED=… -DUNLABELED=… -DANOMALIES=… -DREPLAY=… [-DFLASH_PAGES=… -DFLASH_PAGE_SIZE=… -DFLASH_PROGRAM_UNIT=…]
#     -DHEADER=… -DINCLUDES=…|… -P header.cmake
set(found "")
foreach(object IN LISTS OBJECTS)
  file(STRINGS "${object}" found REGEX "ATTUNE_LIBRARY [0-9]+ ")
  if(found)
    break()
  endif()
endforeach()
if(NOT found MATCHES "ATTUNE_LIBRARY ([0-9]+) ([0-9]+) ([0-9]+) ([01]) ([0-9]+) ([0-9]+) ([01]) ([0-9]+) ([0-9]+) [0-9]+ [0-9]+ ")
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
string(REGEX MATCH "([0-9]+) ([0-9]+) $" ignored "${CMAKE_MATCH_0}")
set(tokens ${CMAKE_MATCH_1})
set(sums ${CMAKE_MATCH_2})
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

set(OBJECTIONS "#define ${UPPER}_UNSURE 1        /* too few clear takes: noise, silence, another sensor */
#define ${UPPER}_NOTHING_NEW 2   /* almost all takes are clear */
#define ${UPPER}_IMBALANCE 3     /* classes are not as frequent as the prior says */
#define ${UPPER}_DISAGREEMENT 4  /* a head gives clear takes other classes */
#define ${UPPER}_FORGETTING 5    /* not answered in C, where there is no probe */
")
set(TRAINING_FUNCTIONS "")
set(BATCHES "")
if(NOT TRAINS STREQUAL "nothing")
  set(BATCHES "\n#define ${UPPER}_BATCH ${BATCH}       /* sequences of a step of the optimizer */")
  if(VALUE)
    set(is_ridge "")
    if(NUMBER STREQUAL "ridge")
      set(is_ridge ", as a ridge")
    endif()
    string(APPEND BATCHES "\n#define ${UPPER}_LEARNING_RATE ${VALUE}  /* what was most accurate with the takes of fit${is_ridge} */"
      "\n#define ${UPPER}_STEPS ${STEPS}       /* updates */")
  endif()
  set(learns "forward and backward, and with every ${UPPER}_BATCH-th sequence a step of the optimizer. Its loss, where
   `loss` is not NULL.")
  set(accumulates "Forward and backward of a sequence; its loss, where `loss` is not NULL.")
  set(updates "A step of the optimizer with the sequences accumulated since the last.")
  if(KIND STREQUAL "forward_only")
    string(REPLACE "forward and backward" "two forward passes" learns "${learns}")
    string(REPLACE "Forward and backward" "Two forward passes" accumulates "${accumulates}")
  elseif(KIND STREQUAL "closed_form")
    set(learns "a forward pass, and the head of all sequences so far in closed form. A larger ridge stays closer to
   the weights in flash. ${UPPER}_ILL_CONDITIONED: the sequence is counted, and the head stays; give a larger ridge. There is no
   loss: it is 0.")
    set(accumulates "A forward pass; the sequence is counted, without an update.")
    set(updates "Computes the head of all sequences so far.")
  endif()
  set(learning "/* Learns from a sequence: ${learns} */
${NAME}_status ${NAME}_learn(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, const ${NAME}_target* target, float ${NUMBER}, float* loss);
")
  if(LEARNS_TAKES)
    string(REPLACE "sequences of a step of the optimizer" "takes to learn from, at most" BATCHES "${BATCHES}")
    set(tokens_too "")
    set(says_tokens "")
    if(LENGTHS)
      set(tokens_too ", int* tokens")
      set(says_tokens ", how many `tokens` of it are in use (${UPPER}_TOKENS before the call)")
    endif()
    set(learns "a step of the optimizer by gradients of them all. `objection`, where it is not NULL: 0.")
    set(objections "")
    set(otherwise "")
    if(KIND STREQUAL "balanced_labels")
      set(otherwise "; the head is then that in flash")
      set(learns "the head in closed form, from balanced labels. A larger ridge stays closer to the weights in
   flash. `objection`, where it is not NULL: 0, or why the takes are unsuitable. Then the head is that of the rounds before, and without
   any that in flash.")
      set(objections "${OBJECTIONS}")
    endif()
    set(learning "/* A program's function that gives take i: it writes its x[${UPPER}_INPUTS]${says_tokens}, and its class, if the take has a label
   (-1 before the call). It answers ${UPPER}_OK, or another status, with which the learning ends${otherwise}. */
typedef ${NAME}_status (*${NAME}_take)(void* context, int i, ${NAME}_input* x${tokens_too}, int* label);
${objections}/* Learns from `count` takes, ${UPPER}_BATCH at most, most of them without a label. Asks for all in order, several times, with `context`:
   ${learns} */
${NAME}_status ${NAME}_learn_from(${NAME}_model* model, int count, ${NAME}_take take, void* context, float ${NUMBER}, int* objection);
")
  endif()
  set(accumulating "")
  if(ACCUMULATES)
    set(accumulating "/* ${accumulates} */
${NAME}_status ${NAME}_accumulate(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, const ${NAME}_target* target, float* loss);
/* ${updates} */
${NAME}_status ${NAME}_update(${NAME}_model* model, float ${NUMBER});
")
  endif()
  if(ACCUMULATES AND KIND STREQUAL "backward")
    string(APPEND accumulating "/* Begins the same in slices of bounded work; x and target stay as they are until the end. */
${NAME}_status ${NAME}_accumulate_in_slices(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, const ${NAME}_target* target);
${NAME}_status ${NAME}_update_in_slices(${NAME}_model* model, float learning_rate);
/* The next slice: ${UPPER}_UNDER_WAY until the last, which answers what the whole call would. */
${NAME}_status ${NAME}_slice(${NAME}_model* model);
/* Forgets the sequences accumulated since the last update, and one under way. */
${NAME}_status ${NAME}_discard(${NAME}_model* model);
")
  endif()
  set(TRAINING_FUNCTIONS "
/* Begins a training: with the weights of the flash, or drawn from the seed. Forgets what was before it, a pass in slices
   included. Before it, and before a resume, the functions below answer ${UPPER}_NOT_INITIALIZED. */
${NAME}_status ${NAME}_start(${NAME}_model* model, uint64_t seed);
${learning}${accumulating}/* All that the training is, ${UPPER}_STATE bytes, to be stored behind a checksum; and on from there, to the same bits.
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
set(SUMS "")
set(LEARNING_FUNCTIONS "")
if(UNLABELED OR ANOMALIES)
  set(SUMS "\n#define ${UPPER}_SUMS ${sums}        /* bytes of the sums over examples */")
  string(APPEND LEARNING_FUNCTIONS "
/* Adds an example with its class to the sums over examples: all that a head without labels, and distances, know of the
   factory's data. Fill the sums on a PC, over the training data. ${UPPER}_NOT_FINITE, ${UPPER}_INVALID_TARGET. */
${NAME}_status ${NAME}_add_example(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, const int* label);
/* The sums, ${UPPER}_SUMS bytes, to be stored behind a checksum; on every target the same. */
${NAME}_status ${NAME}_save_sums(const ${NAME}_model* model, void* bytes, size_t size);
${NAME}_status ${NAME}_load_sums(${NAME}_model* model, const void* bytes, size_t size);
")
endif()
if(UNLABELED)
  string(APPEND LEARNING_FUNCTIONS "
/* Keeps a take, in 8 bits; `label` is its class, or -1 of an unknown one. ${UPPER}_FULL_BATCH after ${UNLABELED} takes. */
${NAME}_status ${NAME}_add_take(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, int label);
${NAME}_status ${NAME}_forget_takes(${NAME}_model* model);
/* How learning went. An objection ended it: the head is that of the rounds before it, and without any that in flash. */
typedef struct ${NAME}_learning {
  int objection;    /* 0: none; or one of those below */
  int rounds;       /* whose heads had no objection */
  float clear;      /* share of takes of which the model in flash is sure */
  float agreement;  /* share of those that keep their class */
  float imbalance;  /* how far its classes are from the prior, 0 to 1 */
} ${NAME}_learning;
${OBJECTIONS}/* Begins a training whose head has learned from the takes, most of them without a label. `prior`: how frequent classes are,
   ${UPPER}_OUTPUTS numbers whose sum is 1; NULL: equally. ${UPPER}_NOTHING_STORED without takes. */
${NAME}_status ${NAME}_learn_takes(${NAME}_model* model, const float* prior, ${NAME}_learning* learning);
")
endif()
if(ANOMALIES)
  string(APPEND LEARNING_FUNCTIONS "
/* Fits distances to the sums. Before it, every distance is infinite. ${UPPER}_NO_TARGETS, ${UPPER}_ILL_CONDITIONED: too few examples. */
${NAME}_status ${NAME}_fit_distance(${NAME}_model* model);
/* How far x is from all examples, with the weights in flash: the squared Mahalanobis distance to the nearest class. */
${NAME}_status ${NAME}_distance(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, float* distance);
/* Adds the distance of a usual input. The threshold has 95 % of them below it; it is infinite without any. */
${NAME}_status ${NAME}_add_usual(${NAME}_model* model, float distance);
${NAME}_status ${NAME}_threshold(const ${NAME}_model* model, float* threshold);
${NAME}_status ${NAME}_forget_usual(${NAME}_model* model);
")
endif()
if(REPLAY)
  string(APPEND LEARNING_FUNCTIONS "
/* Offers an example to a memory in RAM, which keeps ${REPLAY} of all offered, equally many of each class. */
${NAME}_status ${NAME}_remember(${NAME}_model* model, const ${NAME}_input* x${AND_TOKENS}, const int* label);
/* Accumulates `count` of them beside new sequences: BATCH counts both. The seed draws them: give another one in each step.
   ${UPPER}_NOTHING_STORED without any. After another error, those before it stay accumulated. */
${NAME}_status ${NAME}_replay(${NAME}_model* model, int count, uint64_t seed);
${NAME}_status ${NAME}_forget_examples(${NAME}_model* model);
")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/header.h.in ${HEADER} @ONLY)
