# Toolchain file for WebAssembly with Emscripten:
#   cmake --toolchain cmake/wasm32-unknown-emscripten.cmake ...

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)

find_program(ATTUNE_WASM_COMPILER em++)
if(NOT ATTUNE_WASM_COMPILER)
  message(FATAL_ERROR "em++ is not on the PATH. On Debian and Ubuntu: apt-get install emscripten")
endif()
set(CMAKE_CXX_COMPILER ${ATTUNE_WASM_COMPILER})
string(REGEX REPLACE "em[+][+]$" "emcc" CMAKE_C_COMPILER ${ATTUNE_WASM_COMPILER})
string(REGEX REPLACE "em[+][+]$" "emar" CMAKE_AR ${ATTUNE_WASM_COMPILER})
string(REGEX REPLACE "em[+][+]$" "emranlib" CMAKE_RANLIB ${ATTUNE_WASM_COMPILER})

# As firmware: no heap, exceptions or run-time types. Vectors of 128 bits, which every browser has; the bits are the same.
set(CMAKE_CXX_FLAGS_INIT "-msimd128 -fno-exceptions -fno-rtti -DNDEBUG -DEIGEN_NO_IO \
-include ${CMAKE_CURRENT_LIST_DIR}/../ports/browser/bit_cast.hpp")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Header-only packages such as Eigen may come from the machine that compiles; its libraries and headers may not.
list(APPEND CMAKE_SYSTEM_PREFIX_PATH /usr/local /usr)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
