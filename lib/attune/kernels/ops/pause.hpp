// A pause for spinning threads.
#pragma once

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// Tells the processor that a thread spins, so that the core's other thread runs faster.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace ATTUNE_NAMESPACE::kernels
