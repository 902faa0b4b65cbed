/* tests/unit/backends/cpu/rig.h: a host for one kernel. It builds a match, queries the kernel, prepares and
 * launches it on a team of threads of its own. The kernel receives the same arguments as from the real host.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/attributes.h"
#include "tenon/plugin/kernel.h"
#include "tenon/random.h"

enum { RIG_VALUES = 400, RIG_NODES = 340, RIG_OPERANDS = 9, RIG_PAIRS = 64 };

/* A match under construction. Values are numbered as in tn_match_node. */
typedef struct rig_match {
  tn_match match;
  tn_type types[RIG_VALUES];
  const tn_type *in[RIG_VALUES], *out[RIG_VALUES];
  int32_t out_number[RIG_VALUES];
  uint8_t constant[RIG_VALUES]; /* none is, but those of rig_is_constant */
  tn_match_node nodes[RIG_NODES];
  tn_node described[RIG_NODES];
  const tn_type *node_in[RIG_NODES][RIG_OPERANDS];
  tn_type node_out[RIG_NODES][RIG_OPERANDS];
  int32_t node_operands[RIG_NODES][RIG_OPERANDS];
  const tn_node *constant_node[RIG_VALUES];
} rig_match;

void rig_start(rig_match *m);
/* All operands come before the first node. Type NULL: absent. */
int32_t rig_in(rig_match *m, const tn_type *type);
/* The operand is state that no launch changes. */
void rig_is_constant(rig_match *m, int32_t operand);
/* The graph says that every element of an operand is zero. */
void rig_is_zero(rig_match *m, int32_t operand);
/* Returns the number of the node's first result. Operand -1 is absent. */
int32_t rig_node(rig_match *m, const char *op, const void *attributes, const int32_t *in, int32_t n_in,
                 const tn_type *out, int32_t n_out);
void rig_out(rig_match *m, int32_t value);

/* The result of a query. */
typedef struct rig_answer {
  tn_status status;
  char text[512];
  int32_t wanted; /* the variant to describe, from 1; 0: the last */
  int32_t n_variants, id, n_inplace;
  int32_t inplace[RIG_PAIRS][2];
  tn_operand_layout in[RIG_VALUES], out[RIG_VALUES];
  int64_t workspace_bytes, prepared_bytes, folded_bytes;
  int32_t deterministic, capturable;
} rig_answer;

rig_answer rig_query(const tn_kernel *kernel, const rig_match *m);
/* The same for one of the variants, from 1; 0: the last. */
rig_answer rig_query_variant(const tn_kernel *kernel, const rig_match *m, int32_t variant);

/* The memory and layouts of operands and results; NULL layouts are row-major. */
typedef struct rig_memory {
  void *const *in, *const *out;
  const tn_layout *in_layout, *out_layout;
  int32_t threads;
  int32_t variant; /* from 1; 0: the last */
  void *backend;   /* the object of the kernel's backend, for prepare; NULL: none */
} rig_memory;

/* Query, prepare, fold, launch, release. On failure the message is in `text` (512 bytes), which may be NULL.
 */
tn_status rig_run(const tn_kernel *kernel, const rig_match *m, const rig_memory *memory, char *text);

/* The same on 1, 2 and 4 threads. Asserts success and equal bits. The results are in `out`. */
void rig_run_on_all(const tn_kernel *kernel, const rig_match *m, void *const *in, void *const *out);

/* Query and prepare with each allocation failing in turn. Asserts TN_ENOMEM and no leak. */
void rig_sweep_allocations(const tn_kernel *kernel, const rig_match *m);

/* ---- types and data ---- */

tn_type rig_type(int32_t dtype, int32_t rank, const int64_t *dims);
#define RIG_TYPE(dtype, ...)                                                                                 \
  rig_type(dtype, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                             \
           (const int64_t[]){__VA_ARGS__})

/* Zeroed memory for a tensor (at least one byte); free() it. */
void *rig_tensor(const tn_type *type);
/* The same with random contents: floats from [-4, 4) with a few zeros, integers from -9 .. 9. */
void *rig_drawn(const tn_type *type, tn_rng *rng);
double rig_get(const tn_type *type, const void *data, int64_t at);
void rig_put(const tn_type *type, void *data, int64_t at, double value);
/* The value rounded to this dtype. */
double rig_rounded(int32_t dtype, double value);
/* The unit in the last place of a value of this dtype. */
double rig_ulp(int32_t dtype, double value);

/* The coordinates of a row-major position, and the position of coordinates with broadcasting, aligned at the
 * last dimension. */
void rig_coordinates(const tn_type *type, int64_t at, int64_t *coordinates);
int64_t rig_broadcast_at(const tn_type *type, const tn_type *space, const int64_t *coordinates);
