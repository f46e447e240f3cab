# attune_add_model(target NAME name FILE file.safetensors
#                  [QUANTIZE int8|bf16|fp16|packed_int8 [WEIGHTS tensor...] [FLOATS tensor...]] [ARRAY])
# Puts a .safetensors file, as it is, among the constants of `target`, a target of the same folder, and gives the target
# the header name.hpp: the C++ type `name` of that file (attune/exchange/model_file.hpp says what to do with it).
#
#   add_executable(firmware main.cpp)
#   target_link_libraries(firmware PRIVATE attune::attune)
#   attune_add_model(firmware NAME digits_weights FILE digits.safetensors)
#
# A relative `file` is one of the current source folder; it may also be what a custom command of that folder makes. When it
# changes, what depends on it is built again. ARRAY: the file is an array in the header instead of bytes for the linker, so
# that the compiler can compute with the weights; so it is, too, where the compiler is neither GCC nor Clang, and on Windows.
#
# QUANTIZE: of what is put there the weights are 8-bit integers with scales, or 16-bit floats (attune/weights/quantized_weights.hpp),
# and the build prints the errors of each. Weights are told from positions, class tokens, biases and norms by the names and
# shapes of tensors; WEIGHTS and FLOATS name those of another role. So do the lines weight=tensor and float=tensor of file.safetensors.roles,
# if there is one: attune_torch.export writes it. In a cross build that takes a compiler of the machine that builds, ATTUNE_HOST_CXX.
#
# QUANTIZE packed_int8: of a file of floats the compiler quantizes the weights, and packs them in the order of the target's
# products in integers: attune::kPackedInt8<Names, name> (attune/exchange/model_file.hpp), the one copy in flash. The model
# says what is a weight. The target's limits of constant evaluation are raised for it.

function(attune_add_model target)
  cmake_parse_arguments(PARSE_ARGV 1 model "ARRAY" "NAME;FILE;QUANTIZE" "WEIGHTS;FLOATS")
  if(NOT model_NAME OR NOT model_FILE OR model_UNPARSED_ARGUMENTS OR "QUANTIZE" IN_LIST model_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "usage: attune_add_model(target NAME name FILE file.safetensors [QUANTIZE int8|bf16|fp16|packed_int8 "
      "[WEIGHTS tensor...] [FLOATS tensor...]] [ARRAY])")
  endif()
  if(NOT model_NAME MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "attune_add_model: NAME is '${model_NAME}'; it becomes a C++ type: letters, digits and _, no digit "
      "first.")
  endif()
  if(DEFINED model_QUANTIZE AND NOT model_QUANTIZE MATCHES "^(int8|bf16|fp16|packed_int8)$")
    message(FATAL_ERROR "attune_add_model: QUANTIZE is '${model_QUANTIZE}'; it is int8, bf16, fp16 or packed_int8.")
  endif()
  if((model_WEIGHTS OR model_FLOATS) AND NOT model_QUANTIZE)
    message(FATAL_ERROR "attune_add_model: WEIGHTS and FLOATS say what QUANTIZE does; there is no QUANTIZE.")
  endif()
  if(model_QUANTIZE STREQUAL "packed_int8")
    if(model_WEIGHTS OR model_FLOATS)
      message(FATAL_ERROR "attune_add_model: WEIGHTS and FLOATS say what QUANTIZE int8, bf16 or fp16 does; the model says what "
        "packed_int8 packs.")
    endif()
    unset(model_QUANTIZE)
    set(model_ARRAY ON)
    set(packs ON)
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "attune_add_model: there is no target '${target}'; add_executable or add_library comes first.")
  endif()
  get_target_property(folder ${target} SOURCE_DIR)
  if(NOT folder STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    message(FATAL_ERROR "attune_add_model: the target '${target}' is of the folder ${folder}; call it there.")
  endif()
  cmake_path(ABSOLUTE_PATH model_FILE BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE file)
  get_source_file_property(generated "${file}" GENERATED)
  if(NOT generated AND (NOT EXISTS "${file}" OR IS_DIRECTORY "${file}"))
    message(FATAL_ERROR "attune_add_model: there is no file ${file}. If the build makes it, its add_custom_command comes "
      "first.")
  endif()

  # A folder for each target: it is on the include path, and another target's model may have the same name.
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/attune_models/${target})
  if(model_QUANTIZE)
    attune_quantize_program(program)
    list(TRANSFORM model_WEIGHTS PREPEND "weight=")
    list(TRANSFORM model_FLOATS PREPEND "float=")
    set(roles "")
    if(EXISTS "${file}.roles")
      file(STRINGS "${file}.roles" roles)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}.roles")
    endif()
    set(quantized ${folder}/${model_NAME}.safetensors)
    add_custom_command(OUTPUT ${quantized}
      COMMAND ${CMAKE_COMMAND} -E make_directory "${folder}"  # which makefiles do not make
      COMMAND "${program}" ${model_QUANTIZE} "${file}" "${quantized}" ${model_WEIGHTS} ${model_FLOATS} ${roles}
      DEPENDS "${file}" attune_quantize
      COMMENT "Quantizing ${model_FILE} to ${model_QUANTIZE}"
      VERBATIM)
    set(file ${quantized})
  endif()
  set(outputs OUTPUT ${folder}/${model_NAME}.hpp)
  set(written ${folder}/${model_NAME}.hpp)
  set(assembly "")
  if(NOT model_ARRAY AND NOT WIN32 AND CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang|AppleClang)$")
    set(assembly ${folder}/${model_NAME}.cpp)
    set(outputs OUTPUT ${assembly} BYPRODUCTS ${written})  # the header changes with names and shapes alone
    set(written ${assembly})
    # What is assembled cannot be delayed until the program is linked, nor share its sections with other sources.
    set_source_files_properties(${assembly} PROPERTIES
      COMPILE_OPTIONS -fno-lto SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/attune-model-header.cmake)
  add_custom_command(${outputs}
    COMMAND ${CMAKE_COMMAND} "-DFILE=${file}" -DNAME=${model_NAME} "-DHEADER=${folder}/${model_NAME}.hpp"
      "-DASSEMBLY=${assembly}" -P "${script}"
    DEPENDS "${file}" "${script}"
    COMMENT "Writing ${model_NAME}.hpp of ${model_FILE}"
    VERBATIM)
  target_sources(${target} PRIVATE ${written})
  # attune_add_dispatched compiles the target's sources elsewhere, once the header is there.
  add_custom_target(${target}_${model_NAME} DEPENDS ${written})
  add_dependencies(${target} ${target}_${model_NAME})
  set_property(TARGET ${target} APPEND PROPERTY ATTUNE_MODELS ${target}_${model_NAME})
  target_include_directories(${target} PRIVATE ${folder})
  if(packs)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fconstexpr-ops-limit=2000000000;-fconstexpr-loop-limit=100000000>"
      "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-fconstexpr-steps=2000000000>")
  endif()
endfunction()

# attune_quantize_program(result): the command that quantizes, and the target attune_quantize that builds it.
function(attune_quantize_program result)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/attune-quantize.cpp)
  if(NOT CMAKE_CROSSCOMPILING)
    set(${result} attune_quantize PARENT_SCOPE)
    if(NOT TARGET attune_quantize)
      add_executable(attune_quantize EXCLUDE_FROM_ALL ${source})
      target_link_libraries(attune_quantize PRIVATE attune::attune)
      # It runs for a moment, and compiles in half the time.
      target_compile_options(attune_quantize PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-O1>)
    endif()
    return()
  endif()
  if(NOT TARGET attune_quantize)
    find_program(ATTUNE_HOST_CXX NAMES $ENV{CXX_FOR_BUILD} c++ g++ clang++ NO_CMAKE_FIND_ROOT_PATH
      DOC "Compiler of the machine that builds, for programs that run while it does")
    if(NOT ATTUNE_HOST_CXX)
      message(FATAL_ERROR "attune_add_model: QUANTIZE takes a C++20 compiler of the machine that builds: set ATTUNE_HOST_CXX to "
        "one, or quantize the file beforehand (cmake/attune-quantize.cpp) and leave QUANTIZE out.")
    endif()
    set(program ${CMAKE_CURRENT_BINARY_DIR}/attune_models/attune-quantize${CMAKE_HOST_EXECUTABLE_SUFFIX})
    set(includes "$<TARGET_PROPERTY:attune::attune,INTERFACE_INCLUDE_DIRECTORIES>")
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/attune_models)
    add_custom_command(OUTPUT ${program}
      COMMAND ${ATTUNE_HOST_CXX} -std=c++20 -O1 -ffp-contract=off "-I$<JOIN:${includes},;-I>" -w -MMD -MF "${program}.d"
        -MT "${program}" "${source}" -o "${program}"
      DEPENDS "${source}" DEPFILE "${program}.d"
      COMMENT "Building attune-quantize with ${ATTUNE_HOST_CXX}"
      COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(attune_quantize DEPENDS ${program})
    set_target_properties(attune_quantize PROPERTIES ATTUNE_PROGRAM ${program})
  endif()
  get_target_property(program attune_quantize ATTUNE_PROGRAM)
  set(${result} ${program} PARENT_SCOPE)
endfunction()
