/* backends/cpu/kernels/pointwise_compile.h: what a region is while it is being compiled. Private to
 * pointwise_emit.c and pointwise_compile.c. */
#ifndef TN_BACKENDS_CPU_KERNELS_POINTWISE_COMPILE_H
#define TN_BACKENDS_CPU_KERNELS_POINTWISE_COMPILE_H

#include <stdbool.h>

#include "backends/cpu/kernels/pointwise_ops.h"

enum {
  TN_PW_NONE = -1,
  TN_PW_LATER = 1 << 30 /* a position behind every instruction */
};

/* A virtual register: written by one instruction. */
typedef struct tn_pw_vreg {
  int32_t lane;
  bool uniform;            /* one value for all elements: computed in the prologue */
  int32_t made, last_use;  /* positions of instructions */
  int32_t operand, result; /* whose memory it is, or TN_PW_NONE */
  int32_t reg;             /* in the program */
} tn_pw_vreg;

typedef struct tn_pw_compiler {
  const void *handle;
  const tn_match *match;
  const tn_type *space; /* dims of the iteration space */
  int32_t n_values;
  const tn_type **types; /* of every value of the match */
  int32_t *regs;         /* virtual register of every value, TN_PW_NONE before it is loaded */
  tn_pw_vreg *vregs;
  tn_pw_insn *insns;
  tn_pw_map *maps;
  int64_t *tables;
  int32_t n_vregs, n_insns, n_prologue, n_maps, n_tables, n_slots;
  int32_t (*inplace)[2];
  int32_t n_inplace;
  bool positions; /* some instruction depends on where in the space it is */
} tn_pw_compiler;

enum { TN_PW_INSNS_PER_NODE = 6 }; /* at most (random numbers of a block), besides the loads of operands */

static inline bool tn_pw_is_single(const tn_type *type) { return tn_type_count(type) == 1; }

/* Instructions for every node, in order. The arrays have room for them. */
tn_status tn_pw_emit(tn_pw_compiler *c);
/* One more instruction, which writes a result to memory. */
void tn_pw_emit_store(tn_pw_compiler *c, int32_t result);

#endif
