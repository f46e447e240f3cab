# The page of attune_add_page: cmake -DNAME=… -DHTML=… -DFILES=a.wasm,b.wasm -DPAGE=… -P page.cmake
string(REPLACE "," ";" FILES "${FILES}")
set(modules "")
foreach(file IN LISTS FILES)
  cmake_path(GET file STEM module)
  string(REGEX REPLACE "^${NAME}_" "" module ${module})
  file(READ ${file} digits HEX)
  string(APPEND modules "\n  '${module}': '${digits}',")
endforeach()
# ['NAME', KB of RAM] of each board that fit knows.
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../lib/attune_torch/attune_torch/boards.csv boards)
string(REGEX REPLACE "^[^\n]+" "" boards "${boards}")
string(REGEX REPLACE "\n([^,\n]*),[^,\n]*,[^,\n]*,[^,\n]*,([0-9]+),[^\n]*" "\n  ['\\1', \\2]," boards "${boards}")
configure_file(${HTML} ${PAGE} @ONLY)
