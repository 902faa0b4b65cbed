/* core/conformance/reference/reference.h: evaluates graphs with the simplest code: every tensor is a
 * row-major array of doubles, every op a loop over indices. Composite ops are decomposed into primitives, so
 * the reference checks decompositions, gradients and kernels and shares no code with them.
 *
 * Arithmetic is in f64 for all dtypes; casts and constants round to their dtype. Integers are exact up to
 * 2^53. */
#pragma once

#include "core/graph/graph.h"

typedef struct tn_reference tn_reference;

/* The graph is borrowed for the call. Inputs and outputs are identified by name. */
tn_status tn_reference_create(const tn_graph *graph, tn_reference **made);
void tn_reference_destroy(tn_reference *r);

/* The array of an input, written before a run. NULL: the graph does not read it. */
double *tn_reference_input(tn_reference *r, const char *name);
tn_status tn_reference_run(tn_reference *r);
/* From the next run on: whether the results of every primitive are rounded to their dtype, as in a program
 * that stores each of them. */
void tn_reference_round_results(tn_reference *r, bool on);
/* From the next run on: results of primitives whose dtype is a float narrower than `dtype` are changed by up
 * to one rounding, drawn from the seed; 0: no more. */
void tn_reference_disturb(tn_reference *r, int32_t dtype, uint64_t seed);
/* Whether the graph has such results. */
bool tn_reference_is_narrow(const tn_reference *r, int32_t dtype);
/* The elements of an output after a run, and its type. */
const double *tn_reference_output(const tn_reference *r, const char *name, tn_type *type);

/* The element of the dtype nearest to v. */
double tn_reference_round(int32_t dtype, double v);

/* ---- between reference.c and the tables of ops ---- */

enum { TN_REFERENCE_OPERANDS = 32, TN_REFERENCE_RESULTS = 8 };

typedef struct tn_reference_call {
  const void *attributes;
  int32_t n_in, n_out;
  const tn_type *in[TN_REFERENCE_OPERANDS], *out[TN_REFERENCE_RESULTS]; /* in: NULL for an absent operand */
  const double *x[TN_REFERENCE_OPERANDS];
  double *y[TN_REFERENCE_RESULTS]; /* zero when the call begins */
} tn_reference_call;

typedef struct tn_reference_op {
  const char *name;
  void (*run)(const tn_reference_call *c);
} tn_reference_op;

/* The table entry of an op whose function is reference_NAME. */
#define TN_REFERENCE_OP(name)                                                                                \
  { #name, reference_##name }

/* Ended by a NULL name. */
extern const tn_reference_op tn_reference_pointwise_ops[], tn_reference_reduce_ops[],
    tn_reference_product_ops[], tn_reference_movement_ops[], tn_reference_index_ops[],
    tn_reference_recurrence_ops[], tn_reference_alignment_ops[];

/* The multi-index of element i, and the inverse. */
static inline void tn_reference_unflatten(const tn_type *t, int64_t i, int64_t *index) {
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    index[d] = i % t->dims[d];
    i /= t->dims[d];
  }
}
static inline int64_t tn_reference_flatten(const tn_type *t, const int64_t *index) {
  int64_t i = 0;
  for (int32_t d = 0; d < t->rank; d++) i = i * t->dims[d] + index[d];
  return i;
}
/* An axis counted from the first dimension, of one that may be negative. */
static inline int64_t tn_reference_axis(int64_t axis, const tn_type *t) {
  return axis < 0 ? axis + t->rank : axis;
}
/* The distance of neighbours along an axis, in elements. */
static inline int64_t tn_reference_stride(const tn_type *t, int64_t axis) {
  int64_t stride = 1;
  for (int64_t d = axis + 1; d < t->rank; d++) stride *= t->dims[d];
  return stride;
}
/* The element of t at `index` of a tensor of rank `rank` to which t is broadcast. */
static inline int64_t tn_reference_broadcast(const tn_type *t, const int64_t *index, int32_t rank) {
  int64_t i = 0;
  for (int32_t d = 0; d < t->rank; d++)
    i = i * t->dims[d] + (t->dims[d] == 1 ? 0 : index[rank - t->rank + d]);
  return i;
}
