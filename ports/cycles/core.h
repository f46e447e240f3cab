// Cycles that a Cortex-M takes for instructions in a row, estimated by the timings below (README.md has their sources): memory
// without wait states, caches that always hit, and an instruction that an IT block skips takes as long as if it were
// executed. Registers are ready at the beginning of a block.
#pragma once

#include <string.h>

#include "thumb.h"

// Of a class of instructions, in cycles.
struct timing {
  uint8_t issue;       // until the next instruction can begin; of transfers of several registers one word of several
  uint8_t latency;     // until another instruction can read the result; 0 stands for `issue`
  uint8_t accumulate;  // until another one can accumulate into it; 0 stands for `latency`
  uint8_t busy;        // until its unit, the FPU or a vector pipe, takes another instruction; 0 stands for `issue`
};

enum pairing { kSingle, kBranchesPair, kMovesPair, kDualIssue };
enum refill { kDirect, kThroughRegister, kThroughMemory, kNumRefills };

struct core {
  const char *name;
  uint8_t refill[kNumRefills];   // cycles more of a taken branch, of a mispredicted one where there is a predictor
  bool predicts;                 // … by two bits a branch; returns are always predicted
  bool aligned_refill;           // a cycle more where the target is a 32-bit instruction across two words
  bool loads_pipeline;           // a load or store behind a load takes a cycle less, if its address does not wait
  uint8_t early_address;         // cycles before the issue that an address must be ready, if it was computed
  uint8_t first_word;            // cycles of a transfer of several registers before its first word
  uint8_t words_a_cycle;         // … and words a cycle then
  uint8_t blocked_by_product;    // cycles from a VMLA or VFMA to the next addition or transfer of several registers
  enum pairing pairing;
  struct timing timings[kNumClasses];
};

#define INTEGER_OF_M0(system)                                                                                       \
  [kAlu] = {1}, [kShifted] = {1}, [kMul] = {1}, [kNop] = {1}, [kSystem] = {system}, [kBarrier] = {system},         \
  [kBranch] = {1}, [kCall] = {2}, [kIndirect] = {1}, [kLoad] = {2}, [kStore] = {2}, [kStoreIndex] = {2},           \
  [kLoadMany] = {1}, [kStoreMany] = {1}
#define INTEGER_OF_M3(mla, mull, mlal)                                                                              \
  [kAlu] = {1}, [kShifted] = {1}, [kMul] = {1}, [kMla] = {mla}, [kMull] = {mull}, [kMlal] = {mlal}, [kDiv] = {12}, \
  [kIt] = {1}, [kNop] = {1}, [kSystem] = {2}, [kBarrier] = {2}, [kBranch] = {1}, [kCall] = {1}, [kIndirect] = {1}, \
  [kTable] = {3}, [kLoad] = {2}, [kStore] = {1}, [kStoreIndex] = {2}, [kLoadTwo] = {1}, [kStoreTwo] = {1},         \
  [kLoadMany] = {1}, [kStoreMany] = {1}
#define PIPELINE_OF_M3                                                                                              \
  .refill = {1, 2, 3}, .aligned_refill = true, .loads_pipeline = true, .early_address = 1, .first_word = 1,        \
  .words_a_cycle = 1
#define INTEGER_OF_M33                                                                                              \
  [kAlu] = {1}, [kShifted] = {1, 2}, [kMul] = {1, 2}, [kMla] = {1, 2, 1}, [kMull] = {1, 2}, [kMlal] = {1, 2, 1},   \
  [kDiv] = {12}, [kIt] = {1}, [kNop] = {1}, [kSystem] = {2}, [kBarrier] = {2}, [kCall] = {1}, [kIndirect] = {1},   \
  [kTable] = {3}, [kLoop] = {0}, [kLoad] = {1, 2}, [kStore] = {1}, [kStoreIndex] = {1}, [kLoadTwo] = {1},          \
  [kStoreTwo] = {1}, [kLoadMany] = {1}, [kStoreMany] = {1}

static const struct core cores[] = {
    {.name = "cortex-m0",
     .refill = {2, 2, 3},
     .first_word = 1,
     .words_a_cycle = 1,
     .timings = {INTEGER_OF_M0(4)}},
    {.name = "cortex-m0plus",
     .refill = {1, 1, 2},
     .first_word = 1,
     .words_a_cycle = 1,
     .timings = {INTEGER_OF_M0(3)}},
    {.name = "cortex-m3",
     PIPELINE_OF_M3,
     .timings = {INTEGER_OF_M3(2, 5, 7)}},
    {.name = "cortex-m4",
     PIPELINE_OF_M3,
     .timings = {INTEGER_OF_M3(1, 1, 1), [kFloatAdd] = {1, 2}, [kFloatMul] = {1, 2}, [kFloatMla] = {3, 4},
                 [kFloatFma] = {3, 4}, [kFloatDiv] = {1, 15, 0, 14}, [kFloatSqrt] = {1, 15, 0, 14},
                 [kFloatCompare] = {1}, [kFloatConvert] = {1, 2}, [kFloatMove] = {1}, [kFloatCore] = {1},
                 [kFloatCoreTwo] = {2}, [kFloatLoad] = {2}, [kFloatStore] = {2}, [kFloatLoadMany] = {1},
                 [kFloatStoreMany] = {1}}},
    {.name = "cortex-m7",
     .refill = {8, 8, 8},
     .predicts = true,
     .early_address = 1,
     .words_a_cycle = 2,
     .blocked_by_product = 4,
     .pairing = kDualIssue,
     .timings = {[kAlu] = {1}, [kShifted] = {1}, [kMul] = {1, 2}, [kMla] = {1, 2, 1}, [kMull] = {1, 2},
                 [kMlal] = {1, 2, 1}, [kDiv] = {7}, [kIt] = {1}, [kNop] = {1}, [kSystem] = {2}, [kBarrier] = {2},
                 [kBranch] = {1}, [kCall] = {1}, [kIndirect] = {1}, [kTable] = {3}, [kLoad] = {1, 2}, [kStore] = {1},
                 [kStoreIndex] = {1}, [kLoadTwo] = {1, 2}, [kStoreTwo] = {1}, [kLoadMany] = {1, 2}, [kStoreMany] = {1},
                 [kFloatAdd] = {1, 3}, [kFloatMul] = {1, 3}, [kFloatMla] = {1, 6, 3}, [kFloatFma] = {1, 5, 3},
                 [kFloatDiv] = {16}, [kFloatSqrt] = {14}, [kFloatCompare] = {1}, [kFloatConvert] = {1, 3},
                 [kFloatMove] = {1, 3}, [kFloatCore] = {1, 3}, [kFloatCoreTwo] = {1, 3}, [kFloatLoad] = {1, 1, 3},
                 [kFloatStore] = {1}, [kFloatLoadMany] = {1, 1, 3}, [kFloatStoreMany] = {1}, [kDoubleAdd] = {2, 3},
                 [kDoubleMul] = {5}, [kDoubleMla] = {9}, [kDoubleFma] = {8}, [kDoubleDiv] = {30},
                 [kDoubleSqrt] = {30}}},
    {.name = "cortex-m33",
     .refill = {2, 2, 2},
     .words_a_cycle = 1,
     .pairing = kBranchesPair,
     .timings = {INTEGER_OF_M33, [kBranch] = {0}, [kFloatAdd] = {1, 2}, [kFloatMul] = {1, 2},
                 [kFloatMla] = {1, 4, 3, 3}, [kFloatFma] = {1, 4, 3, 3}, [kFloatDiv] = {1, 15, 0, 14},
                 [kFloatSqrt] = {1, 15, 0, 14}, [kFloatCompare] = {1, 2}, [kFloatConvert] = {1, 2},
                 [kFloatMove] = {1, 2}, [kFloatCore] = {1, 2}, [kFloatCoreTwo] = {2}, [kFloatLoad] = {1},
                 [kFloatStore] = {1}, [kFloatLoadMany] = {1}, [kFloatStoreMany] = {1}}},
    {.name = "cortex-m55",
     .refill = {2, 2, 2},
     .words_a_cycle = 1,
     .pairing = kMovesPair,
     .timings = {INTEGER_OF_M33, [kBranch] = {1}, [kFloatAdd] = {1, 2}, [kFloatMul] = {1, 2}, [kFloatMla] = {1, 4},
                 [kFloatFma] = {1, 2}, [kFloatDiv] = {1, 16, 0, 15}, [kFloatSqrt] = {1, 16, 0, 15},
                 [kFloatCompare] = {1}, [kFloatConvert] = {1, 2}, [kFloatMove] = {1}, [kFloatCore] = {1, 2},
                 [kFloatCoreTwo] = {1, 2}, [kFloatLoad] = {1, 2}, [kFloatStore] = {1}, [kFloatLoadMany] = {1, 2},
                 [kFloatStoreMany] = {1}, [kDoubleAdd] = {1, 15, 0, 14}, [kDoubleMul] = {1, 21, 0, 20},
                 [kDoubleMla] = {1, 36, 0, 35}, [kDoubleFma] = {1, 24, 0, 23}, [kDoubleDiv] = {1, 30, 0, 29},
                 [kDoubleSqrt] = {1, 30, 0, 29}, [kVectorMemory] = {1, 1, 0, 2}, [kVectorInteger] = {1, 1, 0, 2},
                 [kVectorFloat] = {1, 2, 0, 2}}},
};
#undef INTEGER_OF_M3
#undef INTEGER_OF_M33

// The core of that name, or null.
static const struct core *find_core(const char *name) {
  for (size_t i = 0; i < sizeof cores / sizeof cores[0]; ++i) {
    if (strcmp(cores[i].name, name) == 0) return &cores[i];
  }
  return NULL;
}

enum unit { kCore, kFpu, kVectorLoads, kVectorAlu, kNumUnits };

static enum unit unit_of(enum class class) {
  return class == kVectorMemory ? kVectorLoads : class == kVectorInteger ? kVectorAlu : class >= kFloatAdd ? kFpu : kCore;
}

static bool moves_many(const struct instruction *i) {
  return i->class == kLoadMany || i->class == kStoreMany || i->class == kLoadTwo || i->class == kStoreTwo ||
         i->class == kFloatLoadMany || i->class == kFloatStoreMany ||
         ((i->class == kFloatLoad || i->class == kFloatStore) && i->words > 1);
}
static bool is_load(const struct instruction *i) {
  return (i->class == kLoad || i->class == kFloatLoad) && i->words < 2;
}
static bool is_store(const struct instruction *i) {
  return i->class == kStore || i->class == kStoreIndex || (i->class == kFloatStore && i->words < 2);
}
static bool is_product(const struct instruction *i) { return i->class == kFloatMla || i->class == kFloatFma; }
static bool is_branch(const struct instruction *i) { return i->class >= kBranch && i->class <= kTable; }

// Whether b can begin in the cycle of a, when its operands are ready and its unit is free.
static bool can_pair(enum pairing pairing, const struct instruction *a, const struct instruction *b) {
  const bool narrow = !a->wide && !b->wide;
  const bool free_b = b->class == kBranch || b->class == kIt || b->class == kNop;
  switch (pairing) {
    case kSingle: return false;
    case kBranchesPair: return narrow && free_b;
    case kMovesPair: return narrow && (free_b || a->simple || b->simple);
    default: break;
  }
  const struct instruction *both[] = {a, b};
  int loads = 0, stores = 0, products = 0, shifted = 0, floats = 0, multiplies = 0, moves = 0;
  for (int i = 0; i < 2; ++i) {
    const enum class class = both[i]->class;
    if (moves_many(both[i]) || class == kDiv || class == kSystem || class == kBarrier || class == kFloatCoreTwo) return false;
    loads += is_load(both[i]), stores += is_store(both[i]), products += is_product(both[i]);
    shifted += class == kShifted, multiplies += class >= kMul && class <= kMlal;
    floats += (class >= kFloatAdd && class <= kFloatConvert) || class >= kDoubleAdd;
    moves += class == kFloatMove || class == kFloatCore || class == kFloatLoad || class == kFloatStore;
  }
  return loads < 2 && stores < 2 && shifted < 2 && floats < 2 && multiplies < 2 && !(multiplies && stores) &&
         !(products && moves) && !is_branch(a);
}

// A block that is being timed, instruction by instruction.
struct schedule {
  const struct core *core;
  struct instruction previous;
  bool has_previous, paired;
  int begun, next, long_until;    // the last issue; the next one that is possible; the end of a division
  int product_until;              // of blocked_by_product
  int ready[16], address_ready[16], float_ready[32], accumulate_ready[32];
  int unit_ready[kNumUnits];
};

static int later(int a, int b) { return a > b ? a : b; }

static int latest_of(uint32_t registers, const int *ready, int since) {
  for (int r = 0; registers >> r != 0; ++r) {
    if (registers >> r & 1) since = later(since, ready[r]);
    if (r == 31) break;
  }
  return since;
}

static void set_ready(uint32_t registers, int *ready, int at) {
  for (int r = 0; r < 32; ++r) {
    if (registers >> r & 1) ready[r] = at;
  }
}

static void schedule_next(struct schedule *s, const struct instruction *i) {
  const struct core *core = s->core;
  const struct timing *timing = &core->timings[i->class];
  const struct instruction *before = s->has_previous ? &s->previous : NULL;
  const enum unit unit = unit_of(i->class);

  int issue = timing->issue;
  if (moves_many(i)) issue = core->first_word + (i->words + core->words_a_cycle - 1) / core->words_a_cycle;
  if (issue < 1 && moves_many(i)) issue = 1;
  const bool pipelines = core->loads_pipeline && before && is_load(before) && (is_load(i) || is_store(i)) &&
                         !(i->addresses & before->writes);
  if (pipelines && issue > 1) --issue;

  int at = latest_of(i->reads, s->ready, 0);
  at = latest_of(i->addresses, s->address_ready, at);
  at = latest_of(i->float_reads & ~i->accumulates, s->float_ready, at);
  at = latest_of(i->accumulates, s->accumulate_ready, at);
  if (unit != kCore) at = later(at, s->unit_ready[unit]);
  if (core->blocked_by_product && !is_product(i) && (i->class == kFloatAdd || moves_many(i))) at = later(at, s->product_until);

  const bool pair = before && !s->paired && at <= s->begun && can_pair(core->pairing, before, i);
  if (!pair) at = later(at, s->next);
  else at = s->begun;
  s->paired = pair, s->begun = at, s->next = later(s->next, at + issue);

  const int latency = later(issue, timing->latency), busy = later(issue, timing->busy);
  // An address that was computed must be ready early, also by the writing back of a single transfer; what was loaded need not.
  const int base = at + issue + (core->loads_pipeline && !moves_many(i) ? core->early_address : 0);
  set_ready(i->writes, s->ready, at + latency);
  set_ready(i->writes, s->address_ready, at + latency + (i->addresses != 0 ? 0 : core->early_address));
  set_ready(i->writes & i->addresses, s->ready, at + issue);
  set_ready(i->writes & i->addresses, s->address_ready, base);
  set_ready(i->float_writes, s->float_ready, at + latency);
  set_ready(i->float_writes, s->accumulate_ready, at + (timing->accumulate ? later(issue, timing->accumulate) : latency));
  s->unit_ready[unit] = at + busy;
  if (is_product(i)) s->product_until = at + core->blocked_by_product;
  if (busy > 4) s->long_until = at + busy;
  s->previous = *i, s->has_previous = true;
}

static int cycles_of(const struct schedule *s) { return later(s->next, s->long_until); }

// Cycles of the refill behind an instruction, 0 if it is no branch.
static uint8_t refill_of(const struct core *core, const struct instruction *i) {
  if (i->loads_pc) return core->refill[kThroughMemory];
  if (i->class == kIndirect) return core->refill[kThroughRegister];
  return is_branch(i) ? core->refill[kDirect] : 0;
}
