# Clang as the compiler of a toolchain file of bare metal: bare-metal.cmake includes this one. GCC for the same target, in
# ATTUNE_TARGET_COMPILER, says which headers and libraries fit the processor.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_CXX_COMPILER)
string(REGEX REPLACE "clang[+][+]([^/]*)$" "clang\\1" CMAKE_C_COMPILER ${CMAKE_CXX_COMPILER})
foreach(language IN ITEMS ASM C CXX)
  set(CMAKE_${language}_COMPILER_TARGET ${attune_triple})
endforeach()

separate_arguments(attune_arguments UNIX_COMMAND "${attune_flags}")
# attune_gcc_says(result option...)
function(attune_gcc_says result)
  execute_process(COMMAND ${ATTUNE_TARGET_COMPILER} ${attune_arguments} ${ARGN}
    OUTPUT_VARIABLE said ERROR_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${result} "${said}" PARENT_SCOPE)
endfunction()

# All folders that GCC looks into but its own, whose headers clang has itself.
attune_gcc_says(attune_said -E -v -x c++ /dev/null)
string(REGEX REPLACE ".*search starts here:\n(.*)End of search list.*" "\\1" attune_folders "${attune_said}")
string(REGEX MATCHALL "[^ \n][^\n]*" attune_folders "${attune_folders}")
list(FILTER attune_folders EXCLUDE REGEX "/lib/gcc/[^/]*/[^/]*/include(-fixed)?$")
foreach(folder IN LISTS attune_folders)
  cmake_path(NORMAL_PATH folder)
  string(APPEND attune_cxx_flags " -isystem ${folder}")
endforeach()

# GCC's enumerations for the target, which its libraries have, too. A frame pointer would take a register that assembly needs.
string(APPEND attune_flags " -fshort-enums -fomit-frame-pointer")

string(REGEX REPLACE "g[+][+]([.]exe)?$" "" attune_tools ${ATTUNE_TARGET_COMPILER})
set(CMAKE_AR ${attune_tools}ar CACHE FILEPATH "Archiver")
set(CMAKE_RANLIB ${attune_tools}ranlib CACHE FILEPATH "Indexes archives")
set(CMAKE_EXE_LINKER_FLAGS_INIT "--ld-path=${attune_tools}ld -Wl,-z,noexecstack")
foreach(library IN ITEMS libc.a libgcc.a)
  attune_gcc_says(attune_library -print-file-name=${library})
  cmake_path(GET attune_library PARENT_PATH folder)
  cmake_path(NORMAL_PATH folder)
  string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -L${folder}")
endforeach()
