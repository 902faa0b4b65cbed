/* backends/onednn/own/pointwise_compile.h: what a region is while it is being compiled. Private to
 * pointwise_emit.c, pointwise_fuse.c and pointwise_compile.c. */
#ifndef TN_BACKENDS_ONEDNN_OWN_POINTWISE_COMPILE_H
#define TN_BACKENDS_ONEDNN_OWN_POINTWISE_COMPILE_H

#include "backends/onednn/own/pointwise.h"

enum { TILE_LATER = 1 << 30 /* a position behind every instruction */ };

/* A virtual register: written by one instruction, or memory. */
typedef struct tn_tile_vreg {
  int32_t lane, rate;
  bool wide;
  int32_t made, last_use;  /* positions of instructions */
  int32_t operand, result; /* whose memory it is, or TILE_NONE */
  int32_t map;             /* of an operand that is repeated over segments, or TILE_NONE */
  size_t size;             /* of an element in memory */
  int32_t reg;             /* in the program */
} tn_tile_vreg;

typedef struct tn_tile_compiler {
  const void *handle;
  const tn_match *match;
  tn_tile_space space;
  int64_t cycle; /* tiles are multiples of it */
  int32_t n_values;
  const tn_type **types; /* of every value of the match */
  int32_t *regs;         /* virtual register of every value, TILE_NONE before it is loaded */
  tn_tile_vreg *vregs;
  tn_tile_insn *insns;
  tn_tile_map *maps;
  int64_t *tables;
  int32_t (*inplace)[2];
  int32_t n_vregs, n_insns, n_maps, n_tables, n_slots, n_inplace;
  int32_t end[TILE_RATES];
} tn_tile_compiler;

enum { TILE_INSNS_PER_NODE = 6, TILE_INSNS_PER_OPERAND = 2 };

static inline bool tn_tile_is_single(const tn_type *type) { return tn_type_count(type) == 1; }

/* Instructions for every node, in order. The arrays have room for them. */
tn_status tn_tile_emit(tn_tile_compiler *c);
/* One more instruction, which writes a result to memory. */
void tn_tile_emit_store(tn_tile_compiler *c, int32_t result);
/* Joins instructions into pairs. `uses` has room for every virtual register. */
void tn_tile_fuse(tn_tile_compiler *c, int32_t *uses);

#endif
