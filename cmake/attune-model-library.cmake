# attune_add_model_library(name MODEL <C++ type> HEADER header.hpp
#                          [NAMES <C++ type> FILE file.safetensors [QUANTIZE int8|bf16|fp16|packed_int8]]
#                          [TRAINS nothing|everything|lora|biases|head] [RANK n] [LOSS <C++ type>] [OPTIMIZER <C++ type>] [BATCH n]
#                          [PLAN <C++ type>] [STREAM capacity] [LENGTHS] [PREDICT_IN_SLICES] [UNLABELED takes] [ANOMALIES] [REPLAY examples]
#                          [FLASH_PAGES n FLASH_PAGE_SIZE bytes FLASH_PROGRAM_UNIT bytes [FLASH_ERASED byte]])
# attune_add_model_library(name FOLDER exported …)
# A static library `name` with a header in plain C, name.h, of a model: for firmware in C, and for programs that are to compile
# fast, since the model's templates are in this library alone.
#
#   attune_add_model_library(gestures FOLDER gestures TRAINS lora)   # a folder that attune_torch.export wrote
#   add_executable(firmware main.c)                                  # #include "gestures.h"
#   target_link_libraries(firmware PRIVATE gestures)
#
# MODEL is a type of HEADER. NAMES and FILE are its weights in flash (attune/exchange/model_file.hpp); without them parameters
# are drawn. NAMES attune::OwnNames<…>, written like that, is of a file that attune wrote: the compiler quantizes it.
# TRAINS: `nothing` with weights in flash, else `everything`; `lora`, `biases` and `head` train beside weights in flash.
# The head is the last layer with parameters of a Sequential. `fit`, with FOLDER: as `python3 -m attune_torch fit` chose, in the
# folder's adapt.hpp, which has the loss, the optimizer, the batch, the plan and the form of the weights, too.
# LOSS is attune::CrossEntropy<>, OPTIMIZER attune::AdamW, BATCH 1, PLAN attune::BySequence. attune::UpdateInBackward has no
# functions that accumulate, and none in slices: name_learn trains. A training without backward, of `fit`, has none in slices, and one
# without labels has name_learn_from instead, which asks for its takes.
# STREAM: token by token with a cache of that many tokens.
# LENGTHS: functions take the number of valid tokens of a sequence that is shorter than the model's (attention/sequence_length.hpp).
# PREDICT_IN_SLICES: predictions in slices beside a training, with scratch of their own; with TRAINS nothing they are always there.
# UNLABELED: with TRAINS head, the head learns from at most that many takes without labels (training/unlabeled_head.hpp).
# ANOMALIES: how far inputs are from the examples that the model knows (training/anomaly.hpp).
# REPLAY: a memory in RAM of at most that many examples, which are trained beside new ones (persistence/replay_memory.hpp).
# FLASH_PAGES and so on: the flash in which name_save_to_flash keeps a training (persistence/flash_store.hpp), behind a driver in C.
# FLASH_ERASED, the value of an erased byte, is 0xFF.
# name.h documents the functions. Nothing uses a heap, an exception or the C++ runtime; several libraries go side by side.
#
# With ATTUNE_CPU, the target name_arduino writes attune_models/name/arduino/name: a precompiled Arduino library for that processor.

set(ATTUNE_MODEL_LIBRARY_FOLDER ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "")

# Options of the flash come together, and need a training whose state is stored.
macro(_attune_check_flash)
  if(library_FLASH_PAGES OR library_FLASH_PAGE_SIZE OR library_FLASH_PROGRAM_UNIT OR DEFINED library_FLASH_ERASED)
    if(NOT library_FLASH_PAGES OR NOT library_FLASH_PAGE_SIZE OR NOT library_FLASH_PROGRAM_UNIT)
      message(FATAL_ERROR "attune_add_model_library: a flash has FLASH_PAGES, FLASH_PAGE_SIZE and FLASH_PROGRAM_UNIT")
    elseif(library_TRAINS STREQUAL "nothing")
      message(FATAL_ERROR "attune_add_model_library: FLASH_PAGES: the state of a training is stored, and TRAINS is nothing")
    elseif(DEFINED library_FLASH_ERASED AND NOT library_FLASH_ERASED MATCHES "^(0|255|0x00|0xFF|0xff)$")
      message(FATAL_ERROR "attune_add_model_library: FLASH_ERASED is '${library_FLASH_ERASED}'; an erased byte is 0xFF or 0x00")
    endif()
  endif()
endmacro()

# TRAINS fit: what the folder's adapt.hpp says. A new one configures anew.
macro(_attune_read_fit)
  if(NOT library_FOLDER)
    message(FATAL_ERROR "attune_add_model_library: TRAINS fit takes FOLDER: a folder with the adapt.hpp that `python3 -m attune_torch fit` wrote")
  endif()
  foreach(option IN ITEMS RANK LOSS OPTIMIZER BATCH PLAN QUANTIZE)
    if(DEFINED library_${option})
      message(FATAL_ERROR "attune_add_model_library: TRAINS fit takes ${option} from adapt.hpp; leave it out")
    endif()
  endforeach()
  set(library_HEADER ${library_FOLDER}/adapt.hpp)
  if(NOT EXISTS ${library_HEADER})
    message(FATAL_ERROR "attune_add_model_library: TRAINS fit: ${library_FOLDER} has no adapt.hpp; run `python3 -m attune_torch fit ${library_FOLDER}`")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${library_HEADER} ${library_FOLDER}/${space}.hpp ${library_FILE})
  file(READ ${library_HEADER} adapt)
  file(SHA256 ${library_FOLDER}/${space}.hpp of_header)
  file(SHA256 ${library_FILE} of_file)
  string(SHA256 export "${of_header}${of_file}")
  if(NOT adapt MATCHES "// Export ${export}")
    message(FATAL_ERROR "attune_add_model_library: TRAINS fit: ${library_HEADER} is of another export; run `python3 -m attune_torch fit ${library_FOLDER}` again")
  endif()
  if(adapt MATCHES "// QUANTIZE ([a-z0-9_]+)")
    set(library_QUANTIZE ${CMAKE_MATCH_1})
  endif()
  if(adapt MATCHES "using Length = ")
    set(library_LENGTHS ON)
  endif()
  string(REGEX MATCH "kBatch = ([0-9]+);" ignored "${adapt}")
  set(library_BATCH ${CMAKE_MATCH_1})
  string(REGEX MATCH "using Trainer = ([^;]+);" ignored "${adapt}")
  set(trainer "${CMAKE_MATCH_1}")
  if(trainer MATCHES "UpdateInBackward")
    set(library_PLAN attune::UpdateInBackward)
  elseif(trainer MATCHES "^attune::ClosedFormTrainer")
    set(KIND closed_form)
    set(NUMBER ridge)
  elseif(trainer MATCHES "^attune::ForwardOnlyTrainer")
    set(KIND forward_only)
  elseif(trainer MATCHES "^attune::InfoMaxTrainer")
    set(KIND info_max)
  elseif(trainer MATCHES "^attune::UnlabeledHeadTrainer")
    set(KIND balanced_labels)
    set(NUMBER ridge)
    set(OPTIONS ".head = {.ridge = ridge}")
  endif()
  if(adapt MATCHES "kOptions{[^;]*[.]${NUMBER} = ([^};]+)}")
    set(VALUE ${CMAKE_MATCH_1})
  endif()
  if(adapt MATCHES "kSteps = ([0-9]+)")
    set(STEPS ${CMAKE_MATCH_1})
  endif()
  set(library_MODEL ${space}_fit::Model)
  set(library_NAMES ${space}_fit::Names)
  set(library_LOSS ${space}_fit::Loss)
endmacro()

function(attune_add_model_library name)
  if(NOT CMAKE_CXX_COMPILE_FEATURES)
    message(FATAL_ERROR "attune_add_model_library: the library is compiled as C++: project(… LANGUAGES C CXX)")
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 library "LENGTHS;PREDICT_IN_SLICES;ANOMALIES"
    "MODEL;HEADER;NAMES;FILE;QUANTIZE;FOLDER;TRAINS;RANK;LOSS;OPTIMIZER;BATCH;PLAN;STREAM;UNLABELED;REPLAY;FLASH_PAGES;FLASH_PAGE_SIZE;FLASH_PROGRAM_UNIT;FLASH_ERASED" "")
  if(NOT name MATCHES "^[a-z_][a-z0-9_]*$" OR library_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "attune_add_model_library: the name begins functions of C, as 'gestures': small letters, digits and _. "
      "Not known: '${library_UNPARSED_ARGUMENTS}'")
  endif()
  if(library_FOLDER)
    cmake_path(ABSOLUTE_PATH library_FOLDER BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(GET library_FOLDER FILENAME space)
    string(REGEX REPLACE "[^A-Za-z0-9_]+" "_" space "${space}")
    if(NOT EXISTS ${library_FOLDER}/${space}.hpp)
      message(FATAL_ERROR "attune_add_model_library: ${library_FOLDER} has no ${space}.hpp: attune_torch.export writes one, and the "
        "folder keeps its name")
    endif()
    set(library_HEADER ${library_FOLDER}/${space}.hpp)
    set(library_MODEL ${space}::Model)
    set(library_NAMES ${space}::Names)
    set(library_FILE ${library_FOLDER}/model.safetensors)
  endif()
  if(TARGET ${name})
    get_target_property(other ${name} ATTUNE_MODEL_FOLDER)
    if(NOT other OR NOT library_FOLDER)
      message(FATAL_ERROR "attune_add_model_library: there is a target '${name}' already; give one of them another name")
    elseif(other STREQUAL library_FOLDER)
      message(FATAL_ERROR "attune_add_model_library: the library '${name}' is there already, as add_subdirectory(${other}) makes it: "
        "set ${space}_TRAINS, or give another library another name")
    endif()
    message(FATAL_ERROR "Two exported models are called '${name}', in ${other} and in ${library_FOLDER}. The name of the folder is a "
      "namespace, a header and a library: export one of them into a folder of another name")
  endif()
  if(NOT library_MODEL OR NOT library_HEADER OR (library_NAMES AND NOT library_FILE) OR (library_FILE AND NOT library_NAMES))
    message(FATAL_ERROR "attune_add_model_library: give MODEL and HEADER, with NAMES and FILE for weights in flash, or FOLDER")
  endif()
  if(NOT library_TRAINS)
    set(library_TRAINS everything)
    if(library_FILE)
      set(library_TRAINS nothing)
    endif()
  endif()
  if(NOT library_TRAINS MATCHES "^(nothing|everything|lora|biases|head|fit)$")
    message(FATAL_ERROR "attune_add_model_library: TRAINS is '${library_TRAINS}'; it is nothing, everything, lora, biases, head or fit")
  endif()
  set(file_name ${name}_file)
  set(KIND backward)
  set(NUMBER learning_rate)
  set(OPTIONS ".learning_rate = learning_rate")
  set(VALUE "")
  set(STEPS "")
  set(STARTS 0)
  set(START "")
  if(library_TRAINS STREQUAL "fit")
    _attune_read_fit()
    set(file_name ${space}_file)  # as adapt.hpp calls it
    set(STARTS 1)
    set(START "${space}_fit::start")
  endif()
  if(NOT library_FILE AND library_TRAINS MATCHES "^(nothing|lora|biases|head)$")
    message(FATAL_ERROR "attune_add_model_library: TRAINS ${library_TRAINS} takes weights in flash: NAMES and FILE, or FOLDER")
  endif()
  if(DEFINED library_QUANTIZE AND NOT library_QUANTIZE MATCHES "^(int8|bf16|fp16|packed_int8)$")
    message(FATAL_ERROR "attune_add_model_library: QUANTIZE is '${library_QUANTIZE}'; it is int8, bf16, fp16 or packed_int8")
  endif()
  if(library_QUANTIZE AND library_TRAINS STREQUAL "everything")
    message(FATAL_ERROR "attune_add_model_library: quantized weights are constant; TRAINS is nothing, lora, biases or head")
  endif()
  if(library_UNLABELED AND NOT library_TRAINS STREQUAL "head")
    message(FATAL_ERROR "attune_add_model_library: UNLABELED: a head learns without labels; TRAINS is head, with NAMES and FILE, or FOLDER")
  endif()
  if(library_ANOMALIES AND NOT library_FILE)
    message(FATAL_ERROR "attune_add_model_library: ANOMALIES takes weights in flash: NAMES and FILE, or FOLDER")
  endif()
  if(library_REPLAY AND library_TRAINS STREQUAL "nothing")
    message(FATAL_ERROR "attune_add_model_library: REPLAY: stored examples are trained again, and TRAINS is nothing")
  elseif(library_REPLAY AND KIND STREQUAL "closed_form")
    message(FATAL_ERROR "attune_add_model_library: REPLAY: a head in closed form forgets no example; leave it out")
  endif()
  set(ACCUMULATES 1)
  set(LEARNS_TAKES 0)
  if(KIND MATCHES "^(info_max|balanced_labels)$")
    set(ACCUMULATES 0)
    set(LEARNS_TAKES 1)
    if(library_REPLAY)
      message(FATAL_ERROR "attune_add_model_library: REPLAY: stored examples have labels, and adapt.hpp learns without; leave it out")
    endif()
  endif()
  if(library_PLAN MATCHES "UpdateInBackward")
    set(ACCUMULATES 0)
    if(library_REPLAY)
      message(FATAL_ERROR "attune_add_model_library: REPLAY: stored examples are accumulated beside new ones, and PLAN ${library_PLAN} accumulates nothing")
    endif()
  endif()
  foreach(option IN ITEMS RANK BATCH STREAM UNLABELED REPLAY FLASH_PAGES FLASH_PAGE_SIZE FLASH_PROGRAM_UNIT)
    if(DEFINED library_${option} AND NOT library_${option} MATCHES "^[1-9][0-9]*$")
      message(FATAL_ERROR "attune_add_model_library: ${option} is '${library_${option}}'; it is a whole number")
    endif()
  endforeach()
  _attune_check_flash()
  foreach(default IN ITEMS "RANK 4" "BATCH 1" "PLAN attune::BySequence" "LOSS attune::CrossEntropy<>" "OPTIMIZER attune::AdamW" "STREAM 0" "UNLABELED 0" "REPLAY 0")
    string(REGEX MATCH "^([A-Z]+) (.*)$" ignored "${default}")
    if(NOT library_${CMAKE_MATCH_1})
      set(library_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    endif()
  endforeach()
  if(NOT DEFINED library_FLASH_ERASED)
    set(library_FLASH_ERASED 0xFF)
  endif()
  cmake_path(ABSOLUTE_PATH library_HEADER BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)

  string(TOUPPER ${name} NAME)
  foreach(option IN ITEMS MODEL HEADER NAMES TRAINS RANK LOSS OPTIMIZER BATCH PLAN STREAM UNLABELED REPLAY FLASH_PAGES FLASH_PAGE_SIZE FLASH_PROGRAM_UNIT FLASH_ERASED)
    set(${option} "${library_${option}}")
  endforeach()
  set(IN_FLASH 0)
  set(FILE_HEADER "")
  if(library_FILE)
    set(IN_FLASH 1)
    set(FILE_HEADER "#include <${file_name}.hpp>")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/attune_models/${name})
  set(LENGTHS 0)
  set(AND_TOKENS "")
  if(library_LENGTHS)
    set(LENGTHS 1)
    set(AND_TOKENS ", int tokens")
  endif()
  # The form of weights in flash: in place, or quantized by the compiler, which is packed_int8 to attune_add_model.
  set(WEIGHTS_IN_FLASH "attune::kInFlash<${library_NAMES}, ${file_name}>")
  if(library_QUANTIZE STREQUAL "packed_int8")
    set(WEIGHTS_IN_FLASH "attune::kPackedInt8<${library_NAMES}, ${file_name}>")
  elseif(library_QUANTIZE AND library_NAMES MATCHES "OwnNames *<")
    set(of_int8 Int8)
    set(of_bf16 Bfloat16)
    set(of_fp16 Float16)
    set(WEIGHTS_IN_FLASH "attune::kQuantized<${library_NAMES}, ${file_name}, attune::${of_${library_QUANTIZE}}Weights>")
    set(library_QUANTIZE packed_int8)
  endif()
  set(COPIES_FLASH 0)
  if(library_FILE AND TRAINS STREQUAL "everything")
    set(COPIES_FLASH 1)
  endif()
  set(type_of_nothing void)
  set(type_of_everything Model)
  set(type_of_lora "attune::Adapted<Model, kWeights, attune::LowRank{.rank = ${RANK}}>")
  set(type_of_biases "attune::BiasesAndNorms<Model, kWeights>")
  set(type_of_head "attune::LinearProbe<Model, kWeights>")
  set(type_of_fit "${space}_fit::Trained")
  set(TRAINED_TYPE "${type_of_${TRAINS}}")
  set(TRAINER_TYPE "attune::Trainer<TrainedModel, Loss, ${OPTIMIZER}, ${BATCH}, ${PLAN}>")
  if(TRAINS STREQUAL "fit")
    set(TRAINER_TYPE "${space}_fit::Trainer")
  endif()
  set(SLICES 0)
  if(ACCUMULATES AND KIND STREQUAL "backward")
    set(SLICES 1)
  endif()
  set(TRAINED 1)
  if(TRAINS STREQUAL "nothing")
    set(TRAINED 0)
  endif()
  set(SLICED 0)
  if(library_PREDICT_IN_SLICES OR NOT TRAINED)
    set(SLICED 1)
  endif()
  # What is made of the head's input.
  set(ANOMALIES 0)
  set(SUMS 0)
  set(REPLAYS_FEATURES 0)
  set(FEATURES 0)
  if(library_ANOMALIES)
    set(ANOMALIES 1)
  endif()
  if(UNLABELED OR ANOMALIES)
    set(SUMS 1)
  endif()
  if(REPLAY AND TRAINS STREQUAL "head")
    set(REPLAYS_FEATURES 1)
  endif()
  if(SUMS OR REPLAYS_FEATURES)
    set(FEATURES 1)
  endif()
  set(TRAINING "")
  set(LEARNING "")
  set(STREAMING "")
  set(STORE "")
  set(STORES 0)
  configure_file(${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/messages.cpp.in ${folder}/messages.inc @ONLY)
  if(TRAINED)
    configure_file(${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/training.cpp.in ${folder}/training.inc @ONLY)
    set(TRAINING "#include \"training.inc\"")
  endif()
  if(STREAM GREATER 0)
    configure_file(${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/streaming.cpp.in ${folder}/streaming.inc @ONLY)
    set(STREAMING "#include \"streaming.inc\"")
  endif()
  if(FEATURES OR REPLAY)
    configure_file(${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/learning.cpp.in ${folder}/learning.inc @ONLY)
    set(LEARNING "#include \"learning.inc\"")
  endif()
  if(library_FLASH_PAGES)
    configure_file(${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/store.cpp.in ${folder}/store.inc @ONLY)
    set(STORE "#include \"store.inc\"")
    set(STORES 1)
  endif()
  foreach(part IN ITEMS model sizes own)
    configure_file(${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/${part}.cpp.in ${folder}/${name}_${part}.cpp @ONLY)
  endforeach()
  configure_file(${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/model.hpp.in ${folder}/attune_library_${name}.hpp @ONLY)

  # The sizes of name.h are those of the target's compiler: it writes them into an object, where CMake reads them.
  add_library(${name}_sizes OBJECT ${folder}/${name}_sizes.cpp)
  add_library(${name} STATIC ${folder}/${name}_model.cpp ${folder}/${name}_own.cpp ${folder}/${name}.h)
  foreach(target IN ITEMS ${name}_sizes ${name})
    target_link_libraries(${target} PRIVATE attune::attune)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF INTERPROCEDURAL_OPTIMIZATION OFF)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-fno-exceptions;-fno-rtti>)
    if(library_FILE)
      set(quantize "")
      if(library_QUANTIZE)
        set(quantize QUANTIZE ${library_QUANTIZE})
      endif()
      attune_add_model(${target} NAME ${file_name} FILE ${library_FILE} ${quantize})
    endif()
  endforeach()
  add_custom_command(OUTPUT ${folder}/${name}.h
    COMMAND ${CMAKE_COMMAND} "-DOBJECTS=$<TARGET_OBJECTS:${name}_sizes>" -DNAME=${name} -DTRAINS=${TRAINS} -DBATCH=${BATCH} -DACCUMULATES=${ACCUMULATES}
      -DKIND=${KIND} -DLEARNS_TAKES=${LEARNS_TAKES} -DNUMBER=${NUMBER} -DVALUE=${VALUE} -DSTEPS=${STEPS} -DSTREAM=${STREAM} -DLENGTHS=${LENGTHS} -DSLICED=${SLICED}
      -DUNLABELED=${UNLABELED} -DANOMALIES=${ANOMALIES} -DREPLAY=${REPLAY}
      -DFLASH_PAGES=${FLASH_PAGES} -DFLASH_PAGE_SIZE=${FLASH_PAGE_SIZE} -DFLASH_PROGRAM_UNIT=${FLASH_PROGRAM_UNIT}
      "-DHEADER=${folder}/${name}.h" "-DINCLUDES=$<JOIN:$<TARGET_PROPERTY:attune::attune,INTERFACE_INCLUDE_DIRECTORIES>,|>" -P ${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/header.cmake
    DEPENDS ${name}_sizes $<TARGET_OBJECTS:${name}_sizes> ${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/header.cmake
      ${ATTUNE_MODEL_LIBRARY_FOLDER}/attune-model-library/header.h.in
    COMMENT "Writing ${name}.h"
    VERBATIM COMMAND_EXPAND_LISTS)
  target_include_directories(${name} PUBLIC ${folder})
  set_target_properties(${name} PROPERTIES ATTUNE_MODEL_FOLDER "${library_FOLDER}")

  if(ATTUNE_CPU)
    set(arduino ${folder}/arduino/${name})
    file(CONFIGURE OUTPUT ${arduino}/library.properties CONTENT [[
name=@name@
version=1.0.0
author=attune_add_model_library
maintainer=attune_add_model_library
sentence=The model @name@ behind plain C, compiled for @ATTUNE_CPU@.
paragraph=
category=Data Processing
url=
architectures=*
includes=@name@.h
precompiled=true
ldflags=-l@name@
]] @ONLY)
    add_custom_target(${name}_arduino
      COMMAND ${CMAKE_COMMAND} -E make_directory ${arduino}/src/${ATTUNE_CPU}
      COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${name}> ${arduino}/src/${ATTUNE_CPU}
      COMMAND ${CMAKE_COMMAND} -E copy ${folder}/${name}.h ${arduino}/src
      DEPENDS ${name}
      VERBATIM)
  endif()
endfunction()
