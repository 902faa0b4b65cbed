/* backends/cpu/kernels/pointwise_ops.h: the program that a region of pointwise ops becomes.
 *
 * The iteration space is the dims of the region's results, walked in row-major order in tiles of at
 * most TN_TILE elements. A program is a straight line of instructions, each over a whole tile:
 * loads (which broadcast), arithmetic between registers, stores. Registers are pieces of one buffer
 * on the stack of whoever runs a chunk, or the memory of an operand or result itself where that lies
 * as the tile does. What has the same value everywhere is computed once per chunk, in the prologue. */
#ifndef TN_BACKENDS_CPU_KERNELS_POINTWISE_OPS_H
#define TN_BACKENDS_CPU_KERNELS_POINTWISE_OPS_H

#include "backends/cpu/kernels/lane.h"

enum {
  PW_NEG,
  PW_ABS,
  PW_SIGN,
  PW_EXP,
  PW_LOG,
  PW_SQRT,
  PW_RSQRT,
  PW_RECIPROCAL,
  PW_TANH,
  PW_SIGMOID,
  PW_ERF,
  PW_SIN,
  PW_COS,
  PW_FLOOR,
  PW_ADD,
  PW_SUB,
  PW_MUL,
  PW_DIV,
  PW_MAXIMUM,
  PW_MINIMUM,
  PW_POW,
  PW_AFFINE,
  PW_EQ,
  PW_NE,
  PW_LT,
  PW_LE,
  PW_GT,
  PW_GE,
  PW_IS_FINITE,
  PW_AND,
  PW_OR,
  PW_NOT,
  PW_WHERE,
  PW_CAST,
  PW_ROUND,
  PW_FILL,
  PW_LOAD,
  PW_STORE,
  PW_INDEX,
  PW_SPREAD,
  PW_UNIFORM,
  PW_NORMAL
};

/* How the elements of a tensor meet the iteration space: a row-major walk over `dims` whose steps
 * move by `strides` elements, 0 where the tensor is broadcast. Neighbouring dimensions are merged, so
 * that one dimension of stride 1 means "lies as the iteration space does". */
typedef struct tn_pw_map {
  int32_t rank; /* at least 1 */
  int64_t dims[TN_MAX_RANK], strides[TN_MAX_RANK];
} tn_pw_map;

typedef struct tn_pw_insn {
  uint8_t op;
  uint8_t lane;  /* of the operands; of the result where there are none */
  uint8_t dtype; /* cast, round: wanted; load, store, spread: of the memory */
  int32_t out, in[3];
  int32_t view;           /* load, spread: which operand; store: which result */
  int32_t map;            /* load, index */
  int32_t table, n_table; /* spread: n starts, then n indices */
  double a, b;            /* affine: scale, shift; random: as its attributes */
  uint64_t bits;          /* fill: the lane; random: the stream */
} tn_pw_insn;

/* A register that is the memory of an operand or result. */
typedef struct tn_pw_binding {
  int32_t reg, view; /* operands first, then results */
  size_t size;       /* of an element */
} tn_pw_binding;

enum {
  TN_PW_CHUNK = 16384,     /* elements per chunk; a multiple of every tile */
  TN_PW_BUFFER = 32 << 10, /* bytes for registers, so that they stay in the first cache */
  TN_PW_LEAST_TILE = 64,
  TN_PW_REGISTERS = 256
};

/* One block of memory; the arrays lie behind the struct. */
typedef struct tn_pw_program {
  size_t bytes;        /* of the block */
  int64_t count, tile; /* elements of the iteration space and of a tile */
  int32_t n_prologue, n_insns, n_slots, n_bindings, n_inplace;
  int32_t storage_order; /* 1: only scalars are broadcast and no position matters, so any layout will do */
  tn_pw_insn *insns;     /* prologue first */
  tn_pw_map *maps;
  int64_t *tables;
  uint32_t *slots; /* where each register of the buffer begins, in bytes per element of a tile */
  tn_pw_binding *bindings;
  int32_t (*inplace)[2];
} tn_pw_program;

/* Compiles a match; the program is the caller's (tn_delete). TN_EUNSUPPORTED names what cannot be
 * done. (pointwise_compile.c) */
tn_status tn_pw_compile(const void *handle, const tn_match *match, tn_pw_program **program);

/* One tile of a program that is running. */
typedef struct tn_pw_tile {
  const tn_pw_program *program;
  const tn_launch *launch;
  void **reg;
  int64_t at, n; /* elements at .. at + n - 1 of the iteration space */
} tn_pw_tile;

/* Instructions between registers. (pointwise_ops.c) */
void tn_pw_compute(const tn_pw_insn *insn, void *out, void *const in[3], int64_t n);
/* Instructions from load on. (pointwise_access.c) */
void tn_pw_access(const tn_pw_insn *insn, const tn_pw_tile *tile);

#endif
