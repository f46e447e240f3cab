# For attune_add_dispatched, which runs it in a build:
#   cmake -DTARGET=name -DFOLDER=folder -DLD=ld -DOBJCOPY=objcopy -DREADELF=readelf -P this-file PROCESSOR object... PROCESSOR…
# Links the objects of a processor into one, FOLDER/PROCESSOR.o, in which nothing can be seen from outside but the functions
# that it defines, each with the processor after its name; and writes FOLDER/dispatch.cpp, where a function of the name
# itself jumps to that of the chosen processor.
cmake_minimum_required(VERSION 3.20)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "attune_add_dispatched, ${TARGET}: ${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Initializers, in their order, become an array that nobody runs but dispatch.cpp.
file(WRITE ${FOLDER}/initializers.ld "\
SECTIONS {
  .data.rel.ro.initializers 0 : {
    initializers = .;
    KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*)))
    KEEP(*(.init_array))
    initializers_end = .;
  }
  others 0 : { KEEP(*(.fini_array .fini_array.* .preinit_array .ctors .ctors.* .dtors .dtors.*)) }
}
ASSERT(SIZEOF(others) == 0, \"a function with __attribute__((destructor)) would run on every processor\")
")

# defined_in(object types bindings visibilities result): the symbols of an object that it defines, of these, sorted. A line of
# readelf is number, value, size, type, binding, visibility, section and name.
function(defined_in object types bindings visibilities result)
  run("${READELF}" -sW ${object})
  string(REGEX MATCHALL " (${types}) +(${bindings}) +(${visibilities}) +([0-9]+|ABS|COM) [^ \n]+" symbols "${output}")
  list(TRANSFORM symbols REPLACE ".* " "")
  list(SORT symbols)
  set(${result} ${symbols} PARENT_SCOPE)
endfunction()

# The arguments after the script.
set(processors "")
set(options TRUE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  set(argument "${CMAKE_ARGV${i}}")
  if(argument MATCHES "^(sse2|avx2|avx512)$")
    list(APPEND processors ${argument})
    set(options FALSE)
  elseif(NOT options)
    list(GET processors -1 processor)
    list(APPEND objects_${processor} "${argument}")
  endif()
endforeach()

string(MAKE_C_IDENTIFIER "${TARGET}" name)
foreach(processor IN LISTS processors)
  set(linked ${FOLDER}/${processor}_linked.o)
  # Sections that linkers take once of all files that have them become this file's own.
  run("${LD}" -r --force-group-allocation -T ${FOLDER}/initializers.ld -o ${linked} ${objects_${processor}})
  defined_in(${linked} FUNC GLOBAL [A-Z]+ defined)
  if(NOT defined)
    message(FATAL_ERROR "attune_add_dispatched, ${TARGET}: its sources define no function that another file could call.")
  endif()
  if(DEFINED functions AND NOT functions STREQUAL defined)
    set(some ${functions} ${defined})
    list(REMOVE_ITEM some ${functions})
    list(REMOVE_ITEM functions ${defined})
    message(FATAL_ERROR "attune_add_dispatched, ${TARGET}: not every processor has ${functions} ${some}")
  endif()
  set(functions ${defined})
  defined_in(${linked} FUNC GLOBAL "HIDDEN|INTERNAL" hidden_functions)

  list(TRANSFORM functions APPEND .${processor} OUTPUT_VARIABLE kept)
  list(TRANSFORM functions REPLACE "(.+)" "\\1 \\1.${processor}" OUTPUT_VARIABLE renamed)
  foreach(symbol IN ITEMS initializers initializers_end)
    list(APPEND kept ${symbol}.${name}.${processor})
    list(APPEND renamed "${symbol} ${symbol}.${name}.${processor}")
  endforeach()
  foreach(lines IN ITEMS kept renamed)
    list(JOIN ${lines} "\n" text)
    file(WRITE ${FOLDER}/${processor}.${lines} "${text}\n")
  endforeach()
  run("${OBJCOPY}" --redefine-syms=${FOLDER}/${processor}.renamed --keep-global-symbols=${FOLDER}/${processor}.kept
    # Of a type that no linker takes for initializers.
    --rename-section .data.rel.ro.initializers=.data.rel.ro.${name}.${processor},alloc,load,data,contents
    ${linked} ${FOLDER}/${processor}.o)
  file(REMOVE ${linked})
  defined_in(${FOLDER}/${processor}.o [A-Z]+ "GLOBAL|WEAK|UNIQUE" [A-Z]+ seen)
  list(SORT kept)
  set(kept_${processor} ${kept})
  if(NOT seen STREQUAL kept)
    list(REMOVE_ITEM seen ${kept})
    message(FATAL_ERROR "attune_add_dispatched, ${TARGET}: code for ${processor} would be seen from outside: ${seen}")
  endif()
endforeach()

# The tables, the choice and the jumps.
set(declarations "")
set(tables "")
set(choices "")
set(jumps "")
set(hidden "")
foreach(function IN LISTS hidden_functions)
  string(APPEND hidden "    \".hidden ${function}\\n\"\n")
endforeach()
foreach(processor IN LISTS processors)
  set(row "")
  set(i 0)
  foreach(function IN LISTS functions)
    string(APPEND declarations "Function ${processor}_${i} asm(\"${function}.${processor}\");\n")
    string(APPEND row "${processor}_${i},")
    math(EXPR i "${i} + 1")
  endforeach()
  foreach(symbol IN ITEMS initializers initializers_end)
    string(APPEND declarations "extern Function* const ${processor}_${symbol}[] asm(\"${symbol}.${name}.${processor}\");\n")
  endforeach()
  foreach(symbol IN LISTS kept_${processor})
    string(APPEND hidden "    \".hidden ${symbol}\\n\"\n")
  endforeach()
  string(APPEND tables "constexpr Function* k_${processor}[] = {${row}};\n")
  string(REPLACE "avx" "kAvx" enumerator ${processor})
  string(REPLACE "sse" "kSse" enumerator ${enumerator})
  string(APPEND choices
    "    {attune::dispatch::Processor::${enumerator}, k_${processor}, ${processor}_initializers, ${processor}_initializers_end},\n")
endforeach()
list(GET processors 0 least)
set(i 0)
foreach(function IN LISTS functions)
  string(APPEND jumps "\
    \".globl ${function}\\n.type ${function}, @function\\n.balign 16\\n${function}:\\n.cfi_startproc\\nendbr64\\n\"
    \"movq attune_${name}_functions(%rip), %r11\\njmp *8*${i}(%r11)\\n.cfi_endproc\\n.size ${function}, . - ${function}\\n\"\n")
  math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${FOLDER}/dispatch.cpp "\
// The functions of ${TARGET}, each a jump to that of one processor. By attune_add_dispatched, not for editing.
#include <attune/host/dispatch.hpp>

using Function = void();

extern \"C\" {
${declarations}}

namespace {

${tables}constexpr attune::dispatch::CodeOfProcessor kCode[] = {
${choices}};
const attune::dispatch::CodeOfProcessor* code = kCode;

}  // namespace

extern \"C\" {
[[gnu::visibility(\"hidden\")]] constinit Function* const* attune_${name}_functions = k_${least};
}

namespace {

// Before other initializers, which may call the functions.
[[gnu::constructor(101)]] void choose() {
  code = &attune::dispatch::choose(kCode);
  attune_${name}_functions = code->functions;
}

[[gnu::constructor]] void initialize() {
  for (Function* const* next = code->initializers; next != code->initializers_end; ++next) (*next)();
}

}  // namespace

asm(\".pushsection .text.attune_dispatch, \\\"ax\\\", @progbits\\n\"
${jumps}${hidden}    \".popsection\\n\");
")
