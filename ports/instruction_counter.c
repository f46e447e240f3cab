// A QEMU plugin that counts the instructions a program executes between two marks, hints that do nothing on a processor: of
// Thumb 0xBF60 (begin) and 0xBF70 (end), of RISC-V 0x0006 and 0x000A (c.slli of x0, for custom use). instructions.hpp sets them.
//
//   -plugin instruction_counter.so,out=FILE[,functions=on]
//
// Writes a line `region COUNT` for every region, in order; with functions=on also `  COUNT FUNCTION` for every function
// in it. Counts are exact and the same in every run.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is used of QEMU's plugin interface, version 1, as in QEMU 7.2. Debian ships no header for it.

typedef uint64_t qemu_plugin_id_t;
typedef struct {
  const char *target_name;  // and more, which is not used
} qemu_info_t;
struct qemu_plugin_tb;    // a translated block
struct qemu_plugin_insn;  // an instruction in it
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *),
                                            enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op, void *, uint64_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

enum { MAX_FUNCTIONS = 4096 };

static struct function {
  const char *name;
  uint64_t count, at_begin;
} functions[MAX_FUNCTIONS];
static int num_functions;
static bool count_functions;
static uint16_t begin_mark = 0xBF60, end_mark = 0xBF70;

static uint64_t instructions, at_begin;
static FILE *out;

static void begin(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  for (int i = 0; i < num_functions; ++i) functions[i].at_begin = functions[i].count;
  at_begin = instructions;
}

static void end(unsigned cpu, void *data) {
  (void)cpu, (void)data;
  // The end mark has been counted before this call; it belongs to nobody.
  fprintf(out, "region %llu\n", (unsigned long long)(instructions - at_begin - 1));
  for (int i = 0; i < num_functions; ++i) {
    const uint64_t count = functions[i].count - functions[i].at_begin;
    if (count > 0) fprintf(out, "  %llu %s\n", (unsigned long long)count, functions[i].name);
  }
}

static uint64_t *counter_of(const char *name) {
  if (name == NULL) name = "(no symbol)";
  for (int i = 0; i < num_functions; ++i) {
    if (strcmp(functions[i].name, name) == 0) return &functions[i].count;
  }
  if (num_functions == MAX_FUNCTIONS) {
    fprintf(stderr, "instruction_counter: more than %d functions\n", MAX_FUNCTIONS);
    exit(1);
  }
  functions[num_functions].name = strdup(name);
  return &functions[num_functions++].count;
}

static bool is(const struct qemu_plugin_insn *instruction, uint16_t mark) {
  // Only the first half-word is looked at, never the size: at the end of a page QEMU takes the half-word behind a
  // 16-bit instruction for a part of it. No 32-bit instruction begins like a mark: of Thumb none with 0xBF, and of RISC-V
  // all with two bits that are set.
  const uint8_t *bytes = qemu_plugin_insn_data(instruction);
  return bytes[0] == (mark & 0xFF) && bytes[1] == mark >> 8;
}

static bool has_marks(const struct qemu_plugin_tb *block) {
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); ++i) {
    const struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
    if (is(instruction, begin_mark) || is(instruction, end_mark)) return true;
  }
  return false;
}

static void count(struct qemu_plugin_insn *at, uint64_t *counter, uint64_t number) {
  qemu_plugin_register_vcpu_insn_exec_inline(at, QEMU_PLUGIN_INLINE_ADD_U64, counter, number);
}

// A block is executed from its first instruction to its last one, so counting its size at the first will do, and costs
// little. Only around marks, and for functions, every instruction counts by itself.
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
  (void)id;
  const size_t size = qemu_plugin_tb_n_insns(block);
  if (!count_functions && !has_marks(block)) {
    count(qemu_plugin_tb_get_insn(block, 0), &instructions, size);
    return;
  }
  for (size_t i = 0; i < size; ++i) {
    struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
    count(instruction, &instructions, 1);
    if (count_functions) count(instruction, counter_of(qemu_plugin_insn_symbol(instruction)), 1);
    if (is(instruction, begin_mark)) {
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    if (is(instruction, end_mark)) {
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, end, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
  }
}

static void on_exit_of_qemu(qemu_plugin_id_t id, void *data) {
  (void)id, (void)data;
  fclose(out);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
  if (strncmp(info->target_name, "riscv", 5) == 0) begin_mark = 0x0006, end_mark = 0x000A;
  for (int i = 0; i < argc; ++i) {
    if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
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
