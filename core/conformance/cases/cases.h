/* core/conformance/cases/cases.h: for every op, a function that draws a use of it: shapes, attributes and
 * values from a seed. The same draws serve gradient checks by finite differences (in f64, on the
 * reference) and comparisons of a backend's kernels with the reference (in every dtype). */
#ifndef TN_CORE_CONFORMANCE_CASES_CASES_H
#define TN_CORE_CONFORMANCE_CASES_CASES_H

#include "core/graph/graph.h"
#include "tenon/ops.h"
#include "tenon/random.h"

/* How the elements of an operand are drawn. */
enum {
  TN_FILL_ANY,      /* -2 .. 2 */
  TN_FILL_POSITIVE, /* 0.5 .. 2 */
  TN_FILL_AWAY,     /* 0.1 .. 2 with either sign: away from a kink at 0 */
  TN_FILL_DISTINCT, /* no two within 0.05: away from ties */
  TN_FILL_WHOLE,    /* whole numbers from low to high - 1 */
  TN_FILL_BOOL
};

typedef struct tn_case_input {
  char name[16];
  tn_type type;
  int32_t fill;
  int64_t low, high; /* TN_FILL_WHOLE */
} tn_case_input;

enum { TN_CASE_INPUTS = 16, TN_CASE_LEAVING = 8 };

typedef struct tn_draw {
  tn_graph *graph;
  tn_build *b;
  tn_rng rng;
  int32_t dtype; /* of the op's T */
  bool dying;    /* operands are copies that nobody else reads, so that results may lie in them */
  bool large;    /* shapes beyond the blocks and vectors of kernels, too large for differences */
  tn_case_input inputs[TN_CASE_INPUTS];
  int32_t n_inputs;
  tn_val leaving[TN_CASE_LEAVING]; /* results of inner nodes that are outputs, too */
  int32_t n_leaving;
} tn_draw;

/* Over which types an op's T is tried; gradients are checked in f64. */
enum { TN_CASE_FLOATS = 0, TN_CASE_NUMBERS = 1 /* whole numbers too */ };

typedef struct tn_case {
  const char *op;
  tn_val (*emit)(tn_draw *d, const struct tn_case *c); /* the node's first result */
  int32_t fill;                                        /* for emitters that several ops share */
  int32_t dtypes;                                      /* CASE_... */
  bool forward_only;                                   /* its gradient is not this case's business */
  bool
      wide_gradient; /* its gradient is checked in f32 and f64: in narrow types differences cancel to noise */
} tn_case;

/* Ended by a NULL op. */
extern const tn_case tn_pointwise_cases[], tn_fill_cases[], tn_reduce_cases[], tn_product_cases[],
    tn_norm_cases[], tn_loss_cases[], tn_movement_cases[], tn_update_cases[];

/* ---- drawing ---- */

static inline int64_t tn_draw_between(tn_draw *d, int64_t low, int64_t high) {
  return low + tn_rng_below(&d->rng, high - low + 1);
}
static inline bool tn_draw_flag(tn_draw *d) { return tn_draw_between(d, 0, 1) == 1; }

/* A size of its own: six times as much where shapes are large. */
static inline int64_t tn_draw_size(tn_draw *d, int64_t low, int64_t high) {
  return tn_draw_between(d, low, d->large ? 6 * high : high);
}

/* A number of channels: where shapes are large, every other time 16, 32 or 48, which kernels on blocked
 * layouts take. */
static inline int64_t tn_draw_channels(tn_draw *d, int64_t low, int64_t high) {
  return d->large && tn_draw_flag(d) ? 16 * tn_draw_between(d, 1, 3) : tn_draw_size(d, low, high);
}

/* Dims 1 .. 4, at times 1, and seldom 0 where empty tensors make sense. */
tn_type tn_draw_type(tn_draw *d, int32_t dtype, int32_t least_rank, int32_t most_rank, bool empty);
/* Dims that broadcast against `wide`: some 1, some leading ones gone. */
tn_type tn_draw_narrower(tn_draw *d, const tn_type *wide);
/* A type from its parts. */
tn_type tn_draw_type_of(int32_t dtype, int32_t rank, const int64_t *dims);

/* A new operand. */
tn_val tn_draw_tensor(tn_draw *d, tn_type type, int32_t fill);
tn_val tn_draw_whole(tn_draw *d, tn_type type, int64_t low, int64_t high);
/* An i64 scalar, as iteration and updates are. */
tn_val tn_draw_counter(tn_draw *d, int64_t least);

/* Values of an input, rounded to its dtype. */
void tn_draw_values(tn_rng *rng, const tn_case_input *input, double *values);

#endif
