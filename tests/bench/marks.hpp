// The marks that instruction_counter.c counts between: Thumb hints that do nothing on a processor.
#pragma once

namespace bench {

[[gnu::always_inline]] inline void begin() { asm volatile(".inst.n 0xbf60" ::: "memory"); }
[[gnu::always_inline]] inline void end() { asm volatile(".inst.n 0xbf70" ::: "memory"); }

}  // namespace bench
