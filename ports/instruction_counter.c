// A QEMU plugin that counts the instructions a program executes between two marks, hints that do nothing on a processor: of
// Thumb 0xBF60 (begin) and 0xBF70 (end), of RISC-V 0x0006 and 0x000A (c.slli of x0, for custom use), of 64-bit Arm 0xD5032E1F
// and 0xD5032E9F (HINT 112 and 116). instructions.hpp sets them. It estimates cycles on a core of cycles/core.h, which are all of Arm's.
//
//   -plugin instruction_counter.so,out=FILE[,core=NAME][,functions=on]
//
// Writes a line `region COUNT` for every region, in order, and `region COUNT CYCLES` with a core that is known; with
// functions=on also `  COUNT FUNCTION` or `  COUNT CYCLES FUNCTION` for every function in it. Counts are exact; counts
// and cycles are the same in every run. The marks themselves belong to nobody.
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

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *),
                                            enum qemu_plugin_cb_flags, void *);
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

enum { MAX_FUNCTIONS = 4096 };

struct total {
  uint64_t instructions, cycles;
};

static struct function {
  const char *name;
  struct total total, at_begin;
} functions[MAX_FUNCTIONS];
static int num_functions;
static bool count_functions;
static uint32_t begin_mark = 0xBF60, end_mark = 0xBF70;
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
static struct piece *last;
static struct total total, at_begin;
static FILE *out;

static void print(const char *what, struct total now, struct total before, const char *name) {
  fprintf(out, "%s %llu", what, (unsigned long long)(now.instructions - before.instructions));
  if (core != NULL) fprintf(out, " %llu", (unsigned long long)(now.cycles - before.cycles));
  fprintf(out, "%s%s\n", name[0] != '\0' ? " " : "", name);
}

static void on_begin(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  for (int i = 0; i < num_functions; ++i) functions[i].at_begin = functions[i].total;
  at_begin = total;
}

static void on_end(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  print("region", total, at_begin, "");
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

static void add(struct function *function, uint64_t instructions, uint64_t cycles) {
  total.instructions += instructions, total.cycles += cycles;
  if (function != NULL) function->total.instructions += instructions, function->total.cycles += cycles;
}

static void on_piece(unsigned cpu, void *data) {
  (void)cpu;
  struct piece *piece = data;
  if (last != NULL && last->refill != 0) add(last->function, 0, refill_between(last, piece));
  add(piece->function, piece->total.instructions, piece->total.cycles);
  last = piece;
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

// A block is executed from its first instruction to its last one, so it is counted at the first. Marks end a piece.
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
  (void)id;
  const size_t size = qemu_plugin_tb_n_insns(block);
  for (size_t at = 0; at < size;) {
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
      const uint32_t mark = whole_words ? first | (uint32_t)half_word(instruction, 1) << 16 : first;
      ends = mark == begin_mark || mark == end_mark;
      if (ends) {
        void (*const on_mark)(unsigned, void *) = mark == begin_mark ? on_begin : on_end;
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
        continue;
      }
      ++piece->total.instructions;
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

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  if (strncmp(info->target_name, "riscv", 5) == 0) begin_mark = 0x0006, end_mark = 0x000A;
  if (strcmp(info->target_name, "aarch64") == 0) begin_mark = 0xD5032E1F, end_mark = 0xD5032E9F, whole_words = true;
  for (int i = 0; i < argc; ++i) {
    if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
    if (strncmp(argv[i], "core=", 5) == 0) core = find_core(argv[i] + 5);
    if (strcmp(argv[i], "functions=on") == 0) count_functions = true;
  }
  if (out == NULL) {
    fprintf(stderr, "instruction_counter: needs out=FILE, a file that can be written\n");
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
  return 0;
}
