// A QEMU plugin that counts the instructions a program executes between two marks, hints that do nothing on a processor: of
// Thumb 0xBF60 (begin) and 0xBF70 (end), of RISC-V 0x0006 and 0x000A (c.slli of x0, for custom use), of 64-bit Arm 0xD5032E1F
// and 0xD5032E9F (HINT 112 and 116). instructions.hpp sets them. It estimates cycles on a core of cycles/core.h, which are all of Arm's.
//
//   -plugin instruction_counter.so,out=FILE[,core=NAME][,functions=on][,memory=NAME:BEGIN:END:CYCLES[:CACHE]]...
//
// Writes a line `region COUNT` for every region, in order, and `region COUNT CYCLES` with a core that is known; with
// functions=on also `  COUNT FUNCTION` or `  COUNT CYCLES FUNCTION` for every function in it. Counts are exact; counts
// and cycles are the same in every run. The marks themselves belong to nobody.
//
// Each `memory` is a range of addresses, hexadecimal, where every load or store of a word, or of less, takes so many cycles more:
// no cache, no bursts. After each region comes a line
// `memory NAME BYTES CYCLES WORDS`: its size, and words that were loaded or stored. Fetching instructions takes no longer.
// With CACHE, a number of bytes, the range has a cache of its own for data, of two ways and lines of 32 bytes. Then CYCLES are of a
// line that is loaded or written back, and the line ends with the number of these.
//
// On two cores a region's count is its time, in instructions: QEMU takes turns (-accel tcg,thread=single), so each core has a
// clock of its own. While a core waits for a flag nothing counts; afterwards its clock is at least that of the core which
// published the number, when it did. second_core.hpp sets these marks: 0xBF80 (wait), 0xBF90 (waited) and 0xBFA0 (publish), of RISC-V
// 0x000E, 0x0012 and 0x0016. Two loads behind
// wait and publish have the addresses of the flag and, modulo 1024, the number. A function's count is the sum of both cores.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cycles/core.h"

// What is used of QEMU's plugin interface: version 1 as in QEMU 7.2, 2 the same, or 3 as in QEMU 10. Debian 12 ships no header
// for it.
#ifndef ATTUNE_PLUGIN_INTERFACE
#define ATTUNE_PLUGIN_INTERFACE 1
#endif

typedef uint64_t qemu_plugin_id_t;
typedef struct {
  const char *target_name;  // and more, which is not used
} qemu_info_t;
struct qemu_plugin_tb;    // a translated block
struct qemu_plugin_insn;  // an instruction in it
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };  // QEMU 7.2 calls nobody back who asks for reads alone
typedef uint32_t qemu_plugin_meminfo_t;

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *),
                                            enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
                                      void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *), enum qemu_plugin_cb_flags,
                                      enum qemu_plugin_mem_rw, void *);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
#if ATTUNE_PLUGIN_INTERFACE >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
#endif
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = ATTUNE_PLUGIN_INTERFACE;

enum { MAX_FUNCTIONS = 4096, CORES = 2, MAX_FLAGS = 1024, NUMBERS = 1024, MAX_MEMORIES = 16, COST_OF_A_LOOK = 5 };
enum { WORD = 4, LINE = 32, WAYS = 2 };
enum mark { BEGIN, END, WAIT, WAITED, PUBLISH, MARKS };

struct total {
  uint64_t instructions, cycles;
};

static struct function {
  const char *name;
  struct total total, at_begin;
} functions[MAX_FUNCTIONS];
static int num_functions;
static bool count_functions;
static uint32_t marks[MARKS] = {0xBF60, 0xBF70, 0xBF80, 0xBF90, 0xBFA0};  // 0: there is none
static bool riscv;
static bool whole_words;  // instructions are 32 bits, and so are marks

// Instructions that are executed from the first one to the last one: a translated block, or its part up to a mark.
struct piece {
  uint64_t begin, end;  // addresses
  struct total total;   // without the refill behind a branch
  struct function *function;
  bool begins_across_words;  // with a 32-bit instruction
  // Of the branch at its end:
  uint8_t refill;  // 0 without one
  bool returns;
  int8_t taken;     // two bits of prediction, from -2 to 1: taken if not negative
  uint64_t target;  // the last one
};

static const struct core *core;
static struct processor {
  struct piece *last;
  struct total clock, at_begin;
  bool waits;
  // Of the mark under way:
  uint64_t flag;
  unsigned number;
} processors[CORES];
static struct {
  uint64_t flag;
  struct total *published;  // when, by number
} flags[MAX_FLAGS];
static struct memory {
  char name[64];
  uint64_t begin, end;        // addresses
  unsigned long long cycles;  // more, of a word, or of a line
  struct traffic {
    uint64_t words, lines;
  } total, at_begin;          // by both cores
  uint64_t sets;              // of the cache; 0: there is none
  struct line {
    uint64_t number;          // from 1 on; 0: empty
    bool differs;             // from the memory
  } *lines;                   // WAYS in each set, the one used last in front
} memories[MAX_MEMORIES];
static int num_memories;
static FILE *out;

// A processor that waits has no time, and a third one none at all.
static struct processor *processor_of(unsigned cpu) {
  if (cpu >= CORES) {
    fprintf(stderr, "instruction_counter: more than %d cores\n", CORES);
    exit(1);
  }
  return &processors[cpu];
}

static void print(const char *what, struct total now, struct total before, const char *name) {
  fprintf(out, "%s %llu", what, (unsigned long long)(now.instructions - before.instructions));
  if (core != NULL) fprintf(out, " %llu", (unsigned long long)(now.cycles - before.cycles));
  fprintf(out, "%s%s\n", name[0] != '\0' ? " " : "", name);
}

static void on_begin(unsigned cpu, void *data) {
  (void)data;
  for (int i = 0; i < num_functions; ++i) functions[i].at_begin = functions[i].total;
  for (int i = 0; i < num_memories; ++i) memories[i].at_begin = memories[i].total;
  processor_of(cpu)->at_begin = processor_of(cpu)->clock;
}

static void on_end(unsigned cpu, void *data) {
  (void)data;
  print("region", processor_of(cpu)->clock, processor_of(cpu)->at_begin, "");
  for (int i = 0; i < num_memories; ++i) {
    const struct memory *memory = &memories[i];
    fprintf(out, "memory %s %llu %llu %llu", memory->name, (unsigned long long)(memory->end - memory->begin), memory->cycles,
            (unsigned long long)(memory->total.words - memory->at_begin.words));
    if (memory->sets > 0) fprintf(out, " %llu", (unsigned long long)(memory->total.lines - memory->at_begin.lines));
    fprintf(out, "\n");
  }
  for (int i = 0; i < num_functions; ++i) {
    const struct function *function = &functions[i];
    if (function->total.instructions > function->at_begin.instructions) {
      print(" ", function->total, function->at_begin, function->name);
    }
  }
}

static struct function *function_of(const char *name) {
  if (name == NULL) name = "(no symbol)";
  for (int i = 0; i < num_functions; ++i) {
    if (strcmp(functions[i].name, name) == 0) return &functions[i];
  }
  if (num_functions == MAX_FUNCTIONS) {
    fprintf(stderr, "instruction_counter: more than %d functions\n", MAX_FUNCTIONS);
    exit(1);
  }
  functions[num_functions].name = strdup(name);
  return &functions[num_functions++];
}

// Cycles that the branch at the end of `from` takes more, as it leads to `to`.
static uint64_t refill_between(struct piece *from, const struct piece *to) {
  const bool taken = to->begin != from->end;
  if (!core->predicts) return taken ? from->refill + (core->aligned_refill && to->begins_across_words) : 0;
  const bool expected = from->returns || (taken == (from->taken >= 0) && (!taken || to->begin == from->target));
  if (taken) from->target = to->begin;
  if (taken && from->taken < 1) ++from->taken;
  if (!taken && from->taken > -2) --from->taken;
  return expected ? 0 : from->refill;
}

static void add(struct processor *processor, struct function *function, uint64_t instructions, uint64_t cycles) {
  processor->clock.instructions += instructions, processor->clock.cycles += cycles;
  if (function != NULL) function->total.instructions += instructions, function->total.cycles += cycles;
}

static void on_piece(unsigned cpu, void *data) {
  struct processor *const processor = processor_of(cpu);
  struct piece *const piece = data, *const last = processor->last;
  if (processor->waits) return;
  if (last != NULL && last->refill != 0) add(processor, last->function, 0, refill_between(last, piece));
  add(processor, piece->function, piece->total.instructions, piece->total.cycles);
  processor->last = piece;
}

// Lines that an access to a word moves between the cache and its memory: none, one that is loaded, or one that is written back, too.
static unsigned moved_lines(struct memory *memory, uint64_t address, bool stores) {
  const uint64_t number = address / LINE + 1;
  struct line *const set = memory->lines + WAYS * (number % memory->sets);
  unsigned moved = 0;
  if (set[0].number != number) {
    struct line used = set[1];
    if (used.number != number) {
      moved = used.differs ? 2 : 1;
      used = (struct line){number, false};
    }
    set[1] = set[0];
    set[0] = used;
  }
  if (stores) set[0].differs = true;
  return moved;
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
  struct processor *const processor = processor_of(cpu);
  if (processor->waits) return;
  const unsigned shift = qemu_plugin_mem_size_shift(info);
  const uint64_t words = shift > 2 ? 1u << (shift - 2) : 1;
  for (struct memory *memory = memories; memory < memories + num_memories; ++memory) {
    if (address < memory->begin || address >= memory->end) continue;
    uint64_t charged = words;
    if (memory->sets > 0) {
      charged = 0;
      for (uint64_t word = 0; word < words; ++word) {
        charged += moved_lines(memory, address + WORD * word, qemu_plugin_mem_is_store(info));
      }
      memory->total.lines += charged;
    }
    memory->total.words += words;
    add(processor, ((struct piece *)data)->function, 0, core != NULL ? charged * memory->cycles : 0);
  }
}

// When the processor's flag got its number.
static struct total *published(const struct processor *processor) {
  int i = 0;
  while (i < MAX_FLAGS && flags[i].flag != processor->flag && flags[i].published != NULL) ++i;
  if (i == MAX_FLAGS) {
    fprintf(stderr, "instruction_counter: more than %d flags\n", MAX_FLAGS);
    exit(1);
  }
  flags[i].flag = processor->flag;
  if (flags[i].published == NULL) flags[i].published = calloc(NUMBERS, sizeof *flags[i].published);
  return &flags[i].published[processor->number];
}
static void on_flag(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
  (void)info, (void)data;
  processor_of(cpu)->flag = address;
}
static void on_number(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
  (void)info;
  struct processor *const processor = processor_of(cpu);
  processor->number = address % NUMBERS;
  if (*(const enum mark *)data == PUBLISH) {
    *published(processor) = processor->clock;
  } else {
    processor->waits = true;
  }
}
static void on_waited(unsigned cpu, void *data) {
  (void)data;
  struct processor *const processor = processor_of(cpu);
  const struct total *const when = published(processor);
  if (when->instructions > processor->clock.instructions) processor->clock.instructions = when->instructions;
  if (when->cycles > processor->clock.cycles) processor->clock.cycles = when->cycles;
  processor->waits = false, processor->last = NULL;
  add(processor, NULL, COST_OF_A_LOOK, core != NULL ? COST_OF_A_LOOK : 0);
}

// A half-word of an instruction. Its size is not QEMU's: at the end of a page the half-word behind a 16-bit instruction
// is taken for a part of it.
static uint16_t half_word(const struct qemu_plugin_insn *instruction, int at) {
#if ATTUNE_PLUGIN_INTERFACE >= 3
  uint8_t bytes[4] = {0};
  qemu_plugin_insn_data(instruction, bytes, sizeof bytes);
#else
  const uint8_t *bytes = qemu_plugin_insn_data(instruction);
#endif
  return (uint16_t)(bytes[2 * at] | bytes[2 * at + 1] << 8);
}

static enum mark mark_of(uint32_t word) {
  int mark = 0;
  while (mark < MARKS && (marks[mark] == 0 || marks[mark] != word)) ++mark;
  return mark;
}

// Bytes of an instruction of Thumb or RISC-V.
static unsigned size_of(uint16_t first) { return (riscv ? first % 4 == 3 : is_wide(first)) ? 4 : 2; }

// Marks at the end of a block, such as at the end of a page: the next block begins with their loads.
static struct split {
  uint64_t address;
  enum mark mark;
  int loads;
} splits[64];
static int num_splits;

// Watches the loads behind a mark from instruction `at` on, `done` of which are watched. Returns the instruction behind them.
static size_t watch_loads(struct qemu_plugin_tb *block, size_t at, enum mark mark, int done) {
  static const enum mark kinds[MARKS] = {BEGIN, END, WAIT, WAITED, PUBLISH};
  for (; done < 2; ++done, ++at) {
    if (at == qemu_plugin_tb_n_insns(block)) {
      struct qemu_plugin_insn *const last = qemu_plugin_tb_get_insn(block, at - 1);
      if (num_splits == 64) {
        fprintf(stderr, "instruction_counter: too many marks at the end of a block\n");
        exit(1);
      }
      splits[num_splits++] = (struct split){qemu_plugin_insn_vaddr(last) + size_of(half_word(last, 0)), mark, done};
      return at;
    }
    struct qemu_plugin_insn *const load = qemu_plugin_tb_get_insn(block, at);
    qemu_plugin_register_vcpu_mem_cb(load, done == 0 ? on_flag : on_number, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                     (void *)&kinds[mark]);
  }
  return at;
}
static size_t rest_of_mark(struct qemu_plugin_tb *block) {
  const uint64_t begin = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0));
  for (int i = 0; i < num_splits; ++i) {
    if (splits[i].address == begin) return watch_loads(block, 0, splits[i].mark, splits[i].loads);
  }
  return 0;
}

// A block is executed from its first instruction to its last one, so it is counted at the first. Marks end a piece.
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
  (void)id;
  const size_t size = qemu_plugin_tb_n_insns(block);
  size_t at = rest_of_mark(block);
  while (at < size) {
    struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, at);
    struct piece *piece = calloc(1, sizeof *piece);
    piece->begin = qemu_plugin_insn_vaddr(instruction);
    piece->begins_across_words = is_wide(half_word(instruction, 0)) && piece->begin % 4 != 0;
    if (count_functions) piece->function = function_of(qemu_plugin_insn_symbol(instruction));
    qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_piece, QEMU_PLUGIN_CB_NO_REGS, piece);

    struct schedule schedule = {.core = core};
    for (bool ends = false; at < size && !ends; ++at) {
      instruction = qemu_plugin_tb_get_insn(block, at);
      const uint16_t first = half_word(instruction, 0);
      piece->end = qemu_plugin_insn_vaddr(instruction) + (is_wide(first) ? 4 : 2);
      const uint32_t word = whole_words ? first | (uint32_t)half_word(instruction, 1) << 16 : first;
      const enum mark mark = mark_of(word);
      ends = mark != MARKS;
      if (mark == BEGIN) qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
      if (mark == END) qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_end, QEMU_PLUGIN_CB_NO_REGS, NULL);
      if (mark == WAITED) qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_waited, QEMU_PLUGIN_CB_NO_REGS, NULL);
      if (mark == WAIT || mark == PUBLISH) at = watch_loads(block, at + 1, mark, 0) - 1;  // they belong to nobody
      if (ends) continue;
      ++piece->total.instructions;
      if (num_memories > 0) {
        qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, piece);
      }
      if (core == NULL) continue;
      const struct instruction decoded = decode(first, is_wide(first) ? half_word(instruction, 1) : 0);
      schedule_next(&schedule, &decoded);
      piece->refill = refill_of(core, &decoded);
      piece->returns = decoded.returns;
    }
    if (core != NULL) piece->total.cycles = (uint64_t)cycles_of(&schedule);
  }
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *data) {
  (void)id, (void)data;
  fclose(out);
}

// Reads NAME:BEGIN:END:CYCLES[:CACHE]. False if it is none.
static bool read_memory(const char *text) {
  struct memory *const memory = &memories[num_memories];
  unsigned long long begin, end, cache = 0;
  if (num_memories == MAX_MEMORIES ||
      sscanf(text, "%63[^:]:%llx:%llx:%llu:%llu", memory->name, &begin, &end, &memory->cycles, &cache) < 4 ||
      cache % (WAYS * LINE) != 0) {
    return false;
  }
  memory->begin = begin, memory->end = end;
  memory->sets = cache / (WAYS * LINE);
  memory->lines = calloc(memory->sets * WAYS, sizeof *memory->lines);
  ++num_memories;
  return true;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  if (strncmp(info->target_name, "riscv", 5) == 0) {
    memcpy(marks, (uint32_t[MARKS]){0x0006, 0x000A, 0x000E, 0x0012, 0x0016}, sizeof marks);
    riscv = true;
  }
  if (strcmp(info->target_name, "aarch64") == 0) {
    memcpy(marks, (uint32_t[MARKS]){0xD5032E1F, 0xD5032E9F}, sizeof marks);
    whole_words = true;
  }
  for (int i = 0; i < argc; ++i) {
    if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
    if (strncmp(argv[i], "core=", 5) == 0) core = find_core(argv[i] + 5);
    if (strcmp(argv[i], "functions=on") == 0) count_functions = true;
    if (strncmp(argv[i], "memory=", 7) == 0 && !read_memory(argv[i] + 7)) {
      fprintf(stderr, "instruction_counter: '%s' is not memory=NAME:BEGIN:END:CYCLES[:CACHE]\n", argv[i]);
      return 1;
    }
  }
  if (out == NULL) {
    fprintf(stderr, "instruction_counter: needs out=FILE, a file that can be written\n");
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
  return 0;
}
