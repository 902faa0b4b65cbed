/* backends/onednn/pointwise/code/unit.h: the code of one unit (code.h) while it is being written. Private to
 * this folder.
 *
 *   insns.c    which instructions of the processor do an instruction of the program
 *   whole.c    the same for whole numbers
 *   quotients.c  quotients by products
 *   convert.c  the same for halves and casts
 *   values.c   where values are: vector registers, memory of the tile, the frame
 *   masks.c    the instructions that AVX2 and AVX-512 have in different ways
 *   x86.c      bytes */
#pragma once

#include "backends/onednn/pointwise/code/code.h"
#include "backends/onednn/pointwise/code/x86.h"

enum { UNIT_GROUP = 16, UNIT_VALUES = 29, UNIT_BASES = 12 };

/* The vector registers of an instruction set and their uses. */
typedef struct tn_unit_target {
  tn_x86_set set;
  int32_t lanes;  /* of a vector; a group is one or two of them */
  int32_t narrow; /* values of a unit, at most: without `memory` each has a vector register */
  int32_t values; /* so many registers, from 0 on, hold values; the others are for one instruction: */
  int32_t spare;  /* three from here on */
  int32_t mask;   /* two masks from here on: k registers, or with AVX2 vectors */
  bool memory;    /* instructions read operands from memory, and values may wait in the frame */
  bool streams;   /* results may be written past the caches */
  bool products;  /* quotients by products */
  const struct tn_unit_target *otherwise; /* for units that this one cannot hold; NULL: there is no other */
} tn_unit_target;

/* Where a value is besides its vector register. */
enum { UNIT_IN_NO_MEMORY, UNIT_IN_TILE, UNIT_IN_FRAME };

typedef struct tn_unit_writer {
  const tn_tile_program *program;
  const tn_unit_target *target;
  tn_x86 x;
  int32_t first, end; /* the instructions */
  int32_t at;         /* the one that is being written */
  int32_t part;       /* which vector of the group */
  bool past_caches;   /* results are written past the caches */
  int32_t
      held[TN_PW_REGISTERS];  /* the vector register with the value of a register; TN_PW_NONE: none has it */
  int32_t owner[UNIT_VALUES]; /* the register whose value it has; TN_PW_NONE: it is free */
  int32_t memory[TN_PW_REGISTERS]; /* of the value of a register: UNIT_IN_... */
  int32_t spill[TN_PW_REGISTERS];  /* its place in the frame; TN_PW_NONE: it has none */
  int32_t n_narrow, n_bases, n_spills;
  int32_t in_mask; /* the register whose value is in the first mask alone; TN_PW_NONE: there is no such one */
  tn_tile_unit *unit;
} tn_unit_writer;

static inline const tn_tile_insn *tn_unit_insn(const tn_unit_writer *w, int32_t i) {
  return (const tn_tile_insn *)w->program->base.insns + i;
}

/* ---- unit.c ------------------------------------------------------------------------------------- */

/* NULL: there is no code for the instruction set (TN_ISA_...). */
const tn_unit_target *tn_unit_target_of(int32_t isa);
/* Appends the code of instructions first .. end - 1 to `x`. Returns `end`, or the instruction that needs more
 * registers than there are: then the code so far does not count. */
int32_t tn_unit_write(tn_unit_writer *w, int32_t first, int32_t end, tn_tile_unit *unit);

/* ---- insns.c ------------------------------------------------------------------------------------ */

/* Whether there is code for an instruction. */
bool tn_unit_has(const tn_tile_insn *insn);
/* Writes instruction w->at. false: it needs more registers than there are. */
bool tn_unit_write_insn(tn_unit_writer *w);

/* ---- whole.c ------------------------------------------------------------------------------------ */

static inline bool tn_unit_is_comparison(int32_t op) { return op >= TN_PW_EQ && op <= TN_PW_GE; }

/* Whether there is code for an instruction over whole numbers that is no cast. */
bool tn_unit_has_whole(const tn_tile_insn *insn);
/* The truths of a comparison in the first mask. */
void tn_unit_test_whole(tn_unit_writer *w, const tn_tile_insn *insn, const tn_x86_operand *in);
/* to = the result of an instruction that is neither a comparison, nor a choice, nor a cast. */
void tn_unit_write_whole(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, const tn_x86_operand *in);

/* ---- quotients.c -------------------------------------------------------------------------------- */

/* to = x / y; false: it is for the processor's own instruction. */
bool tn_unit_write_quotient(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, int32_t x,
                            tn_x86_operand y);

/* ---- convert.c ---------------------------------------------------------------------------------- */

/* Whether there is code for a cast. */
bool tn_unit_has_cast(const tn_tile_insn *insn);
/* to = x in another lane, or rounded to a half. */
void tn_unit_write_cast(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, tn_x86_operand x);
void tn_unit_write_round(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to, int32_t x);
/* to = halves from memory. */
void tn_unit_write_widen(tn_unit_writer *w, const tn_tile_insn *insn, int32_t to);
/* Bytes of a vector into lanes of four. */
void tn_unit_write_lanes(tn_unit_writer *w, int32_t lane, int32_t to, tn_x86_operand bytes);
/* Stores x to a result's memory, as its dtype. */
void tn_unit_write_store(tn_unit_writer *w, const tn_tile_insn *insn, int32_t x);

/* ---- values.c ----------------------------------------------------------------------------------- */

/* Bytes of an element of operand k. */
int32_t tn_unit_operand_size(const tn_tile_insn *insn, int32_t k);
/* Of the result in its register. */
int32_t tn_unit_result_size(const tn_tile_insn *insn);

/* Forgets all values in vector registers and in the frame: values that the unit does not make are in the
 * tile. */
void tn_unit_forget(tn_unit_writer *w);
/* Adds the pointers that an instruction needs. false: there are too many. */
bool tn_unit_point(tn_unit_writer *w, int32_t i);
/* Loads what the loop needs in front of it: pointers and narrow values. */
void tn_unit_write_entry(tn_unit_writer *w);
void tn_unit_write_exit(tn_unit_writer *w);

/* The memory at an offset in the frame. */
tn_x86_operand tn_unit_in_frame(size_t offset);
/* The memory of a register's elements, or of a result's (the register is TN_PW_NONE). */
tn_x86_operand tn_unit_memory(const tn_unit_writer *w, int32_t reg, int32_t result);
/* Operand k of the instruction: in its vector register, loaded if it was not, or in memory where that will
 * do (`memory`) and saves a load. false: all registers are in use. */
bool tn_unit_operand(tn_unit_writer *w, int32_t k, bool memory, tn_x86_operand *operand);
/* Operands that no later instruction reads give up their registers. */
void tn_unit_release(tn_unit_writer *w);
/* Whether anything but the unit reads the result of instruction i. */
bool tn_unit_is_stored(const tn_unit_writer *w, int32_t i);
/* The vector register of a register, if it has one, is free. */
void tn_unit_drop(tn_unit_writer *w, int32_t reg);
/* A vector register for the result of the instruction; TN_PW_NONE: all are in use. */
int32_t tn_unit_result(tn_unit_writer *w);
/* Stores lanes of four bytes to a result's memory, of which the tile needs nothing more. */
void tn_unit_write_result(tn_unit_writer *w, int32_t from, tn_x86_operand to);
/* Behind the instruction: stores the result if anything but the unit reads it. */
void tn_unit_finish(tn_unit_writer *w);

/* ---- masks.c ------------------------------------------------------------------------------------ */

enum { P_NONE, P_66, P_F3, P_F2, XMM = 0, LONGEST = 2 };
#define UNIT_OP(name, map, prefix, length, code, immediate)                                                  \
  static const tn_x86_op name = {map, prefix, length, code, immediate}

static inline tn_x86_operand tn_unit_register(int32_t number) {
  return (tn_x86_operand){.kind = TN_X86_REGISTER, .number = number};
}
static inline tn_x86_operand tn_unit_constant(int32_t number) {
  return (tn_x86_operand){.kind = TN_X86_CONSTANT, .number = number};
}
/* to = from op y */
static inline void tn_unit_two(tn_unit_writer *w, tn_x86_op op, int32_t to, int32_t from, tn_x86_operand y) {
  tn_x86_vector(&w->x, op, to, from, y, (tn_x86_mask){0, false}, 0);
}
/* The same of an instruction with a byte behind it. */
static inline void tn_unit_with(tn_unit_writer *w, tn_x86_op op, int32_t to, int32_t from, tn_x86_operand y,
                                uint8_t byte) {
  tn_x86_vector(&w->x, op, to, from, y, (tn_x86_mask){0, false}, byte);
}

static inline int32_t tn_unit_spare(const tn_unit_writer *w, int32_t i) { return w->target->spare + i; }
static inline int32_t tn_unit_mask(const tn_unit_writer *w, int32_t i) { return w->target->mask + i; }

enum { RIGHT = 2, LEFT = 6 };
void tn_unit_shift(tn_unit_writer *w, int32_t direction, int32_t to, int32_t from, uint8_t bits);
/* to = 0 in each lane. */
void tn_unit_clear(tn_unit_writer *w, int32_t to);

/* Predicates of comparisons of f32, which raise no exception for quiet NaN. */
enum { EQ = 0, UNORDERED = 3, NE = 4, LT = 17, LE = 18, GE = 29, GT = 30 };
void tn_unit_compare(tn_unit_writer *w, int32_t mask, int32_t x, tn_x86_operand y, uint8_t predicate);
/* Compares lanes of i32 by TN_PW_EQ to TN_PW_GE. The first spare register does not keep its value. */
void tn_unit_compare_whole(tn_unit_writer *w, int32_t mask, int32_t op, int32_t x, int32_t y);

/* to = mask ? yes : no */
void tn_unit_choose(tn_unit_writer *w, int32_t mask, int32_t to, tn_x86_operand yes, int32_t no);
/* to = from in the lanes of a mask. */
void tn_unit_put(tn_unit_writer *w, int32_t mask, int32_t to, int32_t from);
/* to = from | y in the lanes of a mask; `from` does not keep its value. */
void tn_unit_put_or(tn_unit_writer *w, int32_t mask, int32_t to, int32_t from, tn_x86_operand y);

/* A mask as bytes of 0 or 1, a byte for each lane, and back: any other byte than 0 is true. The first spare
 * register does not keep its value in a test. */
void tn_unit_truths(tn_unit_writer *w, int32_t to, int32_t mask);
void tn_unit_test(tn_unit_writer *w, int32_t mask, tn_x86_operand truths);

/* Bytes, one for each lane: the others of their register do not count. */
void tn_unit_load_bytes(tn_unit_writer *w, int32_t to, tn_x86_operand from);
void tn_unit_store_bytes(tn_unit_writer *w, int32_t from, tn_x86_operand to);
/* The last byte of each lane; `from` and the first spare register do not keep their values. */
void tn_unit_pack_bytes(tn_unit_writer *w, int32_t to, int32_t from);
/* to = truth ? yes : no, and to = x ^ 1. The first spare register and mask do not keep their values. */
void tn_unit_choose_bytes(tn_unit_writer *w, int32_t to, int32_t truths, int32_t yes, int32_t no);
void tn_unit_not(tn_unit_writer *w, int32_t to, int32_t x);
/* Stores the lower halves of lanes whose upper halves are 0; `from` and the first spare register do not keep
 * their values. */
void tn_unit_store_words(tn_unit_writer *w, int32_t from, tn_x86_operand to);
