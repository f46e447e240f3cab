# Writes the C++ header of a .safetensors file, for attune/exchange/model_file.hpp. attune_add_model() runs this script; where
# a program is not built by CMake (Arduino, STM32CubeIDE, Keil), run it by hand and add the header to the project:
#   cmake -DFILE=digits.safetensors -DNAME=digits_weights [-DHEADER=digits_weights.hpp] -P attune-model-header.cmake
# The file is then an array in the header. With -DASSEMBLY=digits_weights.cpp the header only declares it, and that source,
# for GCC and Clang, has the assembler take it from where it stands.
cmake_minimum_required(VERSION 3.20)

if(NOT FILE OR NOT NAME MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
  message(FATAL_ERROR "usage: cmake -DFILE=file.safetensors -DNAME=name [-DHEADER=name.hpp] -P attune-model-header.cmake, "
    "where name is a C++ identifier")
endif()
if(NOT HEADER)
  set(HEADER ${NAME}.hpp)
endif()
cmake_path(ABSOLUTE_PATH FILE NORMALIZE OUTPUT_VARIABLE path)
cmake_path(GET path FILENAME file_name)
function(refuse why)
  message(FATAL_ERROR "${path} is not a safetensors file: ${why}.")
endfunction()

# 8 bytes, the header's length, and the header.
if(NOT EXISTS "${path}" OR IS_DIRECTORY "${path}")
  message(FATAL_ERROR "There is no file ${path}.")
endif()
file(SIZE "${path}" size)
if(size LESS 10)
  refuse("it has ${size} bytes")
endif()
file(READ "${path}" length LIMIT 8 HEX)
if(NOT length MATCHES "^(..)(..)(..)(..)00000000$")
  refuse("it does not begin with the length of a header")
endif()
math(EXPR length "0x${CMAKE_MATCH_4}${CMAKE_MATCH_3}${CMAKE_MATCH_2}${CMAKE_MATCH_1}")
math(EXPR body "8 + ${length}")
if(body GREATER size)
  refuse("it has ${size} bytes and says that its header ends at ${body}")
endif()
file(READ "${path}" header OFFSET 8 LIMIT ${length})
string(SUBSTRING "${header}" 0 ${length} header)  # reading may add the end of a line
file(READ "${path}" bytes OFFSET 8 LIMIT ${length} HEX)
string(HEX "${header}" read)
math(EXPR last "2 * ${length} - 2")
string(SUBSTRING "${bytes}" ${last} 2 last)
if(last STREQUAL "00")
  refuse("its header is padded with NUL characters: pad it with spaces")
endif()
if(NOT read STREQUAL bytes OR NOT header MATCHES "^[{]")
  refuse("its header is not JSON on lines that end with a line feed")
endif()

# The type to which all of the file is aligned: what its tensors of floating point are.
string(REGEX MATCH "\"dtype\"[ \t\n]*:[ \t\n]*\"F64\"" has_f64 "${header}")
string(REGEX MATCH "\"dtype\"[ \t\n]*:[ \t\n]*\"F32\"" has_f32 "${header}")
if(has_f64 AND NOT has_f32)
  set(scalar double)
  set(scalar_bytes 8)
else()
  set(scalar float)
  set(scalar_bytes 4)
endif()
math(EXPR count "(${size} + ${scalar_bytes} - 1) / ${scalar_bytes}")

# A raw string literal of any text.
function(literal text result)
  set(delimiter "")
  while(text MATCHES "[)]${delimiter}\"")
    string(APPEND delimiter "_")
  endwhile()
  string(LENGTH "${delimiter}" delimiter_length)
  if(delimiter_length GREATER 16)
    refuse("its header has ${delimiter}")
  endif()
  set(${result} "R\"${delimiter}(${text})${delimiter}\"" PARENT_SCOPE)
endfunction()
literal("${header}" header_literal)

if(ASSEMBLY)
  set(includes "#include <cstddef>")
  set(array "extern \"C\" const ${scalar} ${NAME}_file[${count}];")
  set(data "${NAME}_file")
  set(members "")

  # Escapes as the assembler has them.
  string(REGEX REPLACE "([\\\"])" "\\\\\\1" escaped "${path}")
  literal(".incbin \"${escaped}\"" incbin)
  file(WRITE "${ASSEMBLY}" "\
// ${NAME}_file of ${NAME}.hpp, by attune_add_model.
#define ATTUNE_TEXT_OF(name) #name
#define ATTUNE_TEXT(name) ATTUNE_TEXT_OF(name)
#define ATTUNE_SYMBOL ATTUNE_TEXT(__USER_LABEL_PREFIX__) \"${NAME}_file\"

#if defined(__APPLE__)
asm(\".const\\n\"
#else
asm(\".pushsection .rodata.${NAME}_file, \\\"a\\\", %progbits\\n\"
    \".type \" ATTUNE_SYMBOL \", %object\\n\"
#endif
    \".balign 16\\n\"
    \".globl \" ATTUNE_SYMBOL \"\\n\"
    ATTUNE_SYMBOL \":\\n\"
    ${incbin} \"\\n\"
    \".balign ${scalar_bytes}\\n\"
#if defined(__APPLE__)
    \".text\\n\");
#else
    \".size \" ATTUNE_SYMBOL \", . - \" ATTUNE_SYMBOL \"\\n\"
    \".popsection\\n\");
#endif
")
else()
  set(includes "#include <array>\n#include <bit>\n#include <cstddef>\n#include <cstdint>")
  set(data "${NAME}_file.data()")
  set(members "  static constexpr const auto& kFile = ${NAME}_file;\n")
  # Little-endian words, the last one filled up with zeros.
  file(READ "${path}" words HEX)
  math(EXPR missing "${count} * ${scalar_bytes} - ${size}")
  string(REPEAT "00" ${missing} zeros)
  string(APPEND words "${zeros}")
  if(scalar_bytes EQUAL 8)
    set(word std::uint64_t)
    string(REGEX REPLACE "(..)(..)(..)(..)(..)(..)(..)(..)" "0x\\8\\7\\6\\5\\4\\3\\2\\1," words "${words}")
  else()
    set(word std::uint32_t)
    string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${words}")
  endif()
  string(REGEX REPLACE "(0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,0x[^,]*,)" "\\1\n" words "${words}")
  set(array "\
inline constexpr ${word} ${NAME}_words[${count}] = {
${words}};
alignas(16) inline constexpr auto ${NAME}_file = std::bit_cast<std::array<${scalar}, ${count}>>(${NAME}_words);")
endif()

set(text "\
// ${file_name} as a part of the program, made by attune. Not for editing.
#pragma once

${includes}

${array}

struct ${NAME} {
  using Scalar = ${scalar};
  static constexpr char kHeader[] = ${header_literal};
  static constexpr std::size_t kSize = ${size};  // bytes
  static constexpr const Scalar* kData = ${data};
${members}};
")
# A header that only declares the array stays as it is where it would be the same: no source that includes it compiles again.
set(written "")
if(ASSEMBLY AND EXISTS "${HEADER}")
  file(READ "${HEADER}" written)
endif()
if(NOT written STREQUAL text)
  file(WRITE "${HEADER}" "${text}")
endif()
