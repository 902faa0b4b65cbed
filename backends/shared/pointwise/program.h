/* backends/shared/pointwise/program.h: a region for a machine that runs each instruction over a tile of
 * positions: values become registers, pieces of a buffer that stays in the first cache or the memory of
 * operands and results. */
#pragma once

#include "backends/shared/pointwise/ir.h"

/* A register that is the memory of an operand or result. */
typedef struct tn_pw_binding {
  int32_t reg, view; /* operands first, then results */
  int32_t map;       /* of an operand that is repeated over segments, or TN_PW_NONE */
  size_t size;       /* of an element */
} tn_pw_binding;

enum { TN_PW_REGISTERS = 256, TN_PW_NARROW_BYTES = 128 };

/* One block of memory; the arrays lie behind the back end's struct, which begins with this one. */
typedef struct tn_pw_program {
  size_t bytes;             /* of the block */
  int64_t count, tile;      /* positions of the space and of a tile */
  int32_t storage_order;    /* 1: any storage order will do */
  int32_t end[TN_PW_RATES]; /* instructions of each rate end here */
  int32_t n_slots, n_bindings, n_inplace;
  void *insns; /* the back end's, to be filled by it */
  tn_pw_map *maps;
  int64_t *tables;
  uint32_t *slots; /* where each register begins in the buffer */
  tn_pw_binding *bindings;
  int32_t (*inplace)[2];
} tn_pw_program;

typedef struct tn_pw_machine {
  size_t program, insn; /* bytes of the back end's structs */
  int64_t most, least;  /* elements of a tile: powers of two */
  int64_t multiple;     /* of which a tile is one */
  size_t buffer;        /* bytes for registers */
} tn_pw_machine;

/* Assigns a register to every value (tn_pw_value.reg) and chooses the largest tile whose registers fit the
 * buffer. The program is the caller's (tn_delete). TN_EUNSUPPORTED: too many values are alive at once. */
tn_status tn_pw_assign(tn_pw_region *region, const tn_pw_machine *machine, tn_pw_program **program);

static inline int32_t tn_pw_register(const tn_pw_region *r, int32_t value) {
  return value == TN_PW_NONE ? TN_PW_NONE : r->values[value].reg;
}

/* ---- values per range: tenon/attributes.h, tn_spread_attributes ---- */

/* The last of n ranges that begins at or before i. */
static inline int64_t tn_pw_range_of(const int64_t *starts, int64_t n, int64_t i) {
  int64_t low = 0, high = n;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (starts[middle] <= i)
      low = middle;
    else
      high = middle;
  }
  return low;
}
