# attune_set_arithmetic(target unfused|fused)
# How a multiply-accumulate rounds, for everything that links the target:
#   unfused  the product and the sum each round: the same bits on every processor, soft float included
#   fused    one rounding per multiply-accumulate: the same bits on every processor with an FMA, and faster
function(attune_set_arithmetic target arithmetic)
  if(arithmetic STREQUAL "unfused")
    set(fused 0)
  elseif(arithmetic STREQUAL "fused")
    set(fused 1)
  else()
    message(FATAL_ERROR "ATTUNE_ARITHMETIC is '${arithmetic}'; it can be unfused or fused.")
  endif()
  # Replaces, so that configuring twice does not leave both.
  set_property(TARGET ${target} PROPERTY INTERFACE_COMPILE_DEFINITIONS ATTUNE_FUSED=${fused})
endfunction()
