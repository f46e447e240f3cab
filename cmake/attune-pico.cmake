# Included for attune::attune. The Pico SDK gives a program the floats of the RP2040's boot ROM, or Hazard3's, unless it asks for
# others. Both flush subnormal numbers to zero, so that results are not those of other targets. A program that has not chosen does not
# link, and the linker's message has the remedy. What the SDK knows is asked when CMake generates, since pico_sdk_init() may come later;
# only an executable has the choice, which is its property.
function(attune_check_pico_floats target)
  set(flushes $<TARGET_EXISTS:pico_float_pico> $<NOT:$<TARGET_EXISTS:pico_float_pico_vfp>>)
  list(JOIN flushes "," flushes)
  set(unchosen $<NOT:$<BOOL:$<TARGET_PROPERTY:PICO_TARGET_FLOAT_IMPL>>>)
  set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_OPTIONS
    "$<$<AND:${flushes},${unchosen}>:LINKER:--require-defined=attune: these floats flush subnormals: call pico_set_float_implementation($<TARGET_PROPERTY:NAME> compiler)>")
endfunction()
