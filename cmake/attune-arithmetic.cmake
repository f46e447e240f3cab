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

  # The vector unit of a Cortex-M55 flushes subnormal numbers to zero. Unfused arithmetic does without it, so the
  # compiler must not bring it into plain loops either.
  get_target_property(options ${target} INTERFACE_COMPILE_OPTIONS)
  list(REMOVE_ITEM options -fno-tree-vectorize -fno-tree-slp-vectorize)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "arm" AND NOT fused)
    include(CheckCXXSourceCompiles)
    check_cxx_source_compiles("
      #if !defined(__ARM_FEATURE_MVE) || !(__ARM_FEATURE_MVE & 2)
      #error no vector unit for floating point
      #endif
      int main() {}" ATTUNE_TARGET_HAS_MVE)
    if(ATTUNE_TARGET_HAS_MVE)
      list(APPEND options -fno-tree-vectorize -fno-tree-slp-vectorize)  # for clang, these are two
    endif()
  endif()
  set_property(TARGET ${target} PROPERTY INTERFACE_COMPILE_OPTIONS ${options})
endfunction()
