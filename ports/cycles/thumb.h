// What a Thumb instruction is to a pipeline: its class, and the registers that it reads and writes. Decoded from the
// encodings of the Armv8-M Architecture Reference Manual (DDI0553, chapter C2): half-words `first` and `second`.
//
// Classes are as coarse as published timings are. What is not told apart is an ALU instruction.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum class {
  // integer
  kAlu,         // one register to another, flags
  kShifted,     // … with a shifted operand, bit fields, DSP
  kMul,         // 32 bits of a product
  kMla,         // … and a sum
  kMull,        // 64 bits of a product
  kMlal,        // … and a sum
  kDiv,         //
  kIt,          // IT
  kNop,         // hints
  kSystem,      // MRS, MSR
  kBarrier,     // DMB, DSB, ISB
  kBranch,      // B, conditional or not, CBZ, CBNZ
  kCall,        // BL
  kIndirect,    // BX, BLX register, MOV PC
  kTable,       // TBB, TBH
  kLoop,        // WLS, DLS, LE
  kLoad,        // LDR of one register, of any width
  kStore,       // STR at an immediate offset
  kStoreIndex,  // STR at a register's offset
  kLoadTwo,     // LDRD
  kStoreTwo,    // STRD
  kLoadMany,    // LDM, POP
  kStoreMany,   // STM, PUSH
  // floating point, single precision
  kFloatAdd,     // VADD, VSUB, and what is like them: VABS, VNEG, VMINNM, VSEL
  kFloatMul,     // VMUL, VNMUL
  kFloatMla,     // VMLA, VMLS, VNMLA, VNMLS: two roundings
  kFloatFma,     // VFMA, VFMS, VFNMA, VFNMS: one rounding
  kFloatDiv,     //
  kFloatSqrt,    //
  kFloatCompare, // VCMP
  kFloatConvert, // VCVT, VRINT
  kFloatMove,    // VMOV of registers and immediates
  kFloatCore,    // VMOV of one register from or to the core, VMRS, VMSR
  kFloatCoreTwo, // VMOV of two
  kFloatLoad,    // VLDR
  kFloatStore,   // VSTR
  kFloatLoadMany,
  kFloatStoreMany,
  // the same in double precision, where hardware has it
  kDoubleAdd,
  kDoubleMul,
  kDoubleMla,
  kDoubleFma,
  kDoubleDiv,
  kDoubleSqrt,
  // MVE: two beats each
  kVectorMemory,
  kVectorInteger,
  kVectorFloat,  // floating point and products
  kNumClasses,
};

struct instruction {
  enum class class;
  int words;                              // of a transfer of several registers
  bool wide;                              // 32 bits
  bool simple;                            // ADD and SUB of an immediate, MOV, SXT, UXT
  bool loads_pc;                          // POP {…, pc}, LDR pc
  bool returns;                           // BX lr, POP {…, pc}
  uint16_t reads, addresses, writes;      // bits of r0 … r15; addresses are not in reads
  uint32_t float_reads, accumulates, float_writes;  // bits of s0 … s31; what is summed into is in accumulates only
};

static bool is_wide(uint16_t first) { return first >= 0xE800; }

static int count_bits(uint32_t bits) { return __builtin_popcount(bits); }

static uint32_t bits_of(unsigned at, unsigned number) {
  return at >= 32 ? 0 : (number >= 32 ? ~0U : (1U << number) - 1) << at;
}

static struct instruction decode_narrow(uint16_t h) {
  struct instruction i = {.class = kAlu};
  const unsigned low = h & 7, middle = h >> 3 & 7, high = h >> 8 & 7;
  switch (h >> 12) {
    case 0x0:
    case 0x1:  // shifts, ADD, SUB
      i.reads = 1U << middle, i.writes = 1U << low;
      if ((h & 0xFC00) == 0x1800) i.reads |= 1U << (h >> 6 & 7);
      i.simple = (h & 0xFC00) == 0x1C00;
      break;
    case 0x2:
    case 0x3:  // MOV, CMP, ADD, SUB of eight bits
      if (h >> 11 != 4) i.reads = 1U << high;
      if (h >> 11 != 5) i.writes = 1U << high;
      i.simple = h >> 11 != 5;
      break;
    case 0x4:
      if (h < 0x4400) {
        const unsigned operation = h >> 6 & 15;
        i.reads = 1U << low | 1U << middle;
        if (operation == 9 || operation == 15) i.reads = 1U << middle;
        if (operation != 8 && operation != 10 && operation != 11) i.writes = 1U << low;
        if (operation == 13) i.class = kMul;
      } else if (h < 0x4800) {
        const unsigned to = low | (h >> 4 & 8), from = h >> 3 & 15, operation = h >> 8 & 3;
        i.reads = 1U << from;
        i.simple = operation == 2;
        if (operation < 2) i.reads |= 1U << to;
        if (operation == 0 || operation == 2) i.writes = 1U << to;
        if (operation == 3 || i.writes >> 15) i.class = kIndirect, i.returns = operation == 3 && from == 14, i.writes = 0;
      } else {
        i.class = kLoad, i.writes = 1U << high;
      }
      break;
    case 0x5: {
      const bool stores = (h >> 9 & 7) < 3;
      i.class = stores ? kStoreIndex : kLoad;
      i.addresses = 1U << middle | 1U << (h >> 6 & 7);
      *(stores ? &i.reads : &i.writes) = 1U << low;
      break;
    }
    case 0x6:
    case 0x7:
    case 0x8:
    case 0x9: {
      const bool loads = h >> 11 & 1, on_stack = h >> 12 == 9;
      i.class = loads ? kLoad : kStore;
      i.addresses = on_stack ? 1U << 13 : 1U << middle;
      *(loads ? &i.writes : &i.reads) = on_stack ? 1U << high : 1U << low;
      break;
    }
    case 0xA:  // ADR, ADD of SP
      i.writes = 1U << high;
      if (h >> 11 & 1) i.reads = 1U << 13;
      break;
    case 0xB:
      if ((h & 0xFF00) == 0xBF00) {
        i.class = (h & 15) != 0 ? kIt : kNop;
      } else if ((h & 0xF500) == 0xB100) {  // CBZ, CBNZ
        i.class = kBranch, i.reads = 1U << low;
      } else if ((h & 0xF600) == 0xB400) {
        const bool pops = h >> 11 & 1;
        const uint16_t registers = (h & 0xFF) | (h & 0x100 ? 1U << (pops ? 15 : 14) : 0);
        i.class = pops ? kLoadMany : kStoreMany, i.words = count_bits(registers);
        i.addresses = 1U << 13;
        i.writes = 1U << 13 | (pops ? registers & 0x7FFF : 0);
        if (!pops) i.reads = registers;
        i.loads_pc = i.returns = pops && registers >> 15;
      } else if ((h & 0xFF00) == 0xB000) {
        i.reads = i.writes = 1U << 13;
      } else if ((h & 0xFF00) == 0xB200 || (h & 0xFF00) == 0xBA00) {
        i.reads = 1U << middle, i.writes = 1U << low, i.simple = h >> 8 == 0xB2;
      } else {
        i.class = kSystem;
      }
      break;
    case 0xC: {
      const bool loads = h >> 11 & 1;
      i.class = loads ? kLoadMany : kStoreMany, i.words = count_bits(h & 0xFF);
      i.addresses = 1U << high;
      i.writes = 1U << high | (loads ? h & 0xFF : 0);
      if (!loads) i.reads = h & 0xFF;
      break;
    }
    default:  // 0xD, 0xE
      i.class = (h & 0xFE00) == 0xDE00 ? kSystem : kBranch;
  }
  return i;
}

// VFP and MVE.
static struct instruction decode_coprocessor(uint16_t h, uint16_t g) {
  struct instruction i = {.class = kVectorInteger, .wide = true};
  const unsigned coprocessor = g >> 8 & 15;
  const bool vector = (h & 0xEF00) == 0xEF00 || coprocessor >= 14;
  const bool is_double = coprocessor == 11, loads = h >> 4 & 1;
  const unsigned vector_d = 4 * (g >> 13 & 7), vector_n = 4 * (h >> 1 & 7), vector_m = 4 * (g >> 1 & 7);
  // The operands' first scalar and how many it has.
  const unsigned size = is_double ? 2 : 1;
  const unsigned d = is_double ? 2 * ((h >> 2 & 16) | g >> 12) : (unsigned)(g >> 12) << 1 | (h >> 6 & 1);
  const unsigned n = is_double ? 2 * ((g >> 3 & 16) | (h & 15)) : (unsigned)(h & 15) << 1 | (g >> 7 & 1);
  const unsigned m = is_double ? 2 * ((g >> 1 & 16) | (g & 15)) : (unsigned)(g & 15) << 1 | (g >> 5 & 1);

  if (vector && (h & 0xFE00) == 0xEC00) {
    i.class = kVectorMemory, i.addresses = 1U << (h & 15);
    if (h >> 5 & 1) i.writes = 1U << (h & 15);
    *(loads ? &i.float_writes : &i.float_reads) = bits_of(vector_d, 4);
  } else if (vector) {
    const unsigned kind = g & 0x0F10;
    const bool product = (h & 0xEF00) == 0xEF00 && (kind == 0x0C10 || kind == 0x0D10 || kind == 0x0910);
    const bool accumulates = (h & 0xFF00) == 0xEF00 ? kind == 0x0C10 : (h & 0xEF81) == 0xEE01 && (g & 0x0F60) == 0x0E40;
    if (product || (h & 0xEF00) == 0xEE00 || ((h & 0xEF00) == 0xEF00 && kind == 0x0D00)) i.class = kVectorFloat;
    i.float_writes = bits_of(vector_d, 4);
    i.float_reads = bits_of(vector_n, 4) | ((h & 0xEF00) == 0xEF00 ? bits_of(vector_m, 4) : 0);
    if ((h & 0xEF00) == 0xEE00) i.reads = 1U << (g & 15);
    if (accumulates) i.accumulates = i.float_writes;
  } else if ((h & 0xFFE0) == 0xEC40) {
    const uint32_t scalars = bits_of(m, 2);
    const uint16_t registers = 1U << (g >> 12) | 1U << (h & 15);
    i.class = kFloatCoreTwo;
    if (loads) i.float_reads = scalars, i.writes = registers;
    else i.float_writes = scalars, i.reads = registers;
  } else if ((h & 0xFE00) == 0xEC00) {
    const bool one = (h & 0x0120) == 0x0100;
    const unsigned words = one ? size : g & 0xFF;
    i.class = one ? (loads ? kFloatLoad : kFloatStore) : (loads ? kFloatLoadMany : kFloatStoreMany);
    i.words = (int)words;
    i.addresses = 1U << (h & 15);
    if (!one && (h >> 5 & 1)) i.writes = 1U << (h & 15);
    *(loads ? &i.float_writes : &i.float_reads) = bits_of(d, words);
  } else if (g >> 4 & 1) {
    i.class = kFloatCore;
    if ((h & 0xFFE0) == 0xEEE0) i.class = kFloatCore;  // VMRS, VMSR: flags and modes
    else if (loads) i.float_reads = bits_of(n, 1), i.writes = 1U << (g >> 12);
    else i.float_writes = bits_of(n, 1), i.reads = 1U << (g >> 12);
  } else {
    const unsigned operation = (h >> 5 & 4) | (h >> 4 & 3);
    i.float_writes = bits_of(d, size);
    i.float_reads = bits_of(n, size) | bits_of(m, size);
    if ((h & 0xFF00) == 0xFE00) {
      i.class = is_double ? kDoubleAdd : kFloatAdd;
      if (operation == 7) i.class = kFloatConvert;
      return i;
    }
    switch (operation) {
      case 0:
      case 1: i.class = is_double ? kDoubleMla : kFloatMla, i.accumulates = i.float_writes; break;
      case 2: i.class = is_double ? kDoubleMul : kFloatMul; break;
      case 3: i.class = is_double ? kDoubleAdd : kFloatAdd; break;
      case 4: i.class = is_double ? kDoubleDiv : kFloatDiv; break;
      case 5:
      case 6: i.class = is_double ? kDoubleFma : kFloatFma, i.accumulates = i.float_writes; break;
      default:
        i.float_reads = bits_of(m, size);
        if (!(g >> 6 & 1)) {
          i.class = kFloatMove, i.float_reads = 0;
        } else {
          const unsigned which = (h & 15) << 1 | (g >> 7 & 1);
          i.class = which == 0   ? kFloatMove
                    : which == 3 ? (is_double ? kDoubleSqrt : kFloatSqrt)
                    : which < 4  ? kFloatAdd
                    : which < 12 && which >= 8 ? kFloatCompare
                                 : kFloatConvert;
          if (i.class == kFloatCompare) i.float_reads |= bits_of(d, size), i.float_writes = 0;
        }
    }
  }
  return i;
}

static struct instruction decode_wide(uint16_t h, uint16_t g) {
  if ((h & 0xEC00) == 0xEC00) return decode_coprocessor(h, g);
  struct instruction i = {.class = kAlu, .wide = true};
  const unsigned n = h & 15, d = g >> 8 & 15, m = g & 15, t = g >> 12;
  const bool loads = h >> 4 & 1;
  if ((h & 0xFE40) == 0xE800) {
    if (n == 15) return i.words = count_bits(g), i;  // CLRM
    i.class = loads ? kLoadMany : kStoreMany, i.words = count_bits(g);
    i.addresses = 1U << n;
    i.writes = (h >> 5 & 1) << n | (loads ? g & 0x7FFF : 0);
    if (!loads) i.reads = g;
    i.loads_pc = loads && g >> 15, i.returns = i.loads_pc && n == 13;
  } else if ((h & 0xFFF0) == 0xE8D0 && (g & 0xFFE0) == 0xF000) {
    i.class = kTable, i.addresses = 1U << n | 1U << m, i.loads_pc = true;
  } else if ((h & 0xFE40) == 0xE840) {
    const bool two = (h & 0x0120) != 0;
    i.class = two ? (loads ? kLoadTwo : kStoreTwo) : loads ? kLoad : kStore;
    i.words = 2, i.addresses = 1U << n;
    *(loads ? &i.writes : &i.reads) = 1U << t | (two ? 1U << d : 0);
    if (two && (h >> 5 & 1)) i.writes |= 1U << n;
    if (n == 15 && h == 0xE97F) i = (struct instruction){.class = kNop, .wide = true};  // SG
  } else if ((h & 0xFE00) == 0xEA00) {
    const bool moves = (h >> 5 & 15) == 2 && n == 15;
    if (!moves && (g & 0x70F0) != 0) i.class = kShifted;
    i.reads = 1U << m | (n != 15 ? 1U << n : 0);
    if (d != 15) i.writes = 1U << d;
  } else if ((h & 0xF800) == 0xF000 && !(g >> 15)) {
    const bool plain = h >> 9 & 1;
    if (plain && (h >> 8 & 1)) i.class = kShifted;  // bit fields, saturation
    if (n != 15) i.reads = 1U << n;
    if (plain && (h & 0xF0) == 0xC0) i.reads |= 1U << d;  // MOVT
    if (plain && (h & 0x1F0) == 0x40) i.reads = 0;        // MOVW
    if (d != 15) i.writes = 1U << d;
  } else if ((h & 0xF800) == 0xF000) {
    if ((g & 0xD000) == 0xC000) i.class = kLoop;
    else if (g >> 12 & 1) i.class = g >> 14 & 1 ? kCall : kBranch;
    else if ((h >> 6 & 14) != 14) i.class = kBranch;
    else if ((h & 0xFFF0) == 0xF3A0) i.class = kNop;
    else if ((h & 0xFFF0) == 0xF3B0) i.class = kBarrier;
    else i.class = kSystem;
  } else if ((h & 0xFE00) == 0xF800) {
    const bool immediate = (h >> 7 & 1) || n == 15, indexed = !immediate && (g >> 11 & 1);
    if (loads && t == 15 && (h & 0x60) != 0x40) return i;  // PLD
    i.class = loads ? kLoad : immediate || indexed ? kStore : kStoreIndex;
    if (n != 15) i.addresses = 1U << n | (immediate || indexed ? 0 : 1U << m);
    i.loads_pc = loads && t == 15;
    *(loads ? &i.writes : &i.reads) = t == 15 ? 0 : 1U << t;
    if (indexed && (g >> 8 & 1)) i.writes |= 1U << n;
  } else if ((h & 0xFF80) == 0xFB00) {
    i.class = t == 15 ? kMul : kMla;
    i.reads = 1U << n | 1U << m | (t == 15 ? 0 : 1U << t), i.writes = 1U << d;
  } else if ((h & 0xFF80) == 0xFB80) {
    const unsigned operation = h >> 4 & 7;
    i.class = operation & 4 ? kMlal : operation & 1 ? kDiv : kMull;
    i.reads = 1U << n | 1U << m | (operation & 4 ? 1U << t | 1U << d : 0);
    i.writes = 1U << d | (operation & 1 && !(operation & 4) ? 0 : 1U << t);
  } else {  // shifts by a register, extensions, DSP
    const bool extends = !(h >> 7 & 1) && (g >> 7 & 1), shifts = !(h >> 7 & 1) && !(g >> 7 & 1);
    i.class = shifts || (extends && n == 15) ? kAlu : kShifted;
    i.reads = 1U << m | (n != 15 ? 1U << n : 0), i.writes = 1U << d;
  }
  return i;
}

static struct instruction decode(uint16_t first, uint16_t second) {
  return is_wide(first) ? decode_wide(first, second) : decode_narrow(first);
}
