/* tests/conformance/cases.h: for every op, a function that draws a use of it: shapes, attributes and
 * values from a seed. The same draws serve gradient checks by finite differences (in f64, on the
 * reference) and comparisons of a backend's kernels with the reference (in every dtype). */
#ifndef TN_TESTS_CONFORMANCE_CASES_H
#define TN_TESTS_CONFORMANCE_CASES_H

#include "core/graph/graph.h"
#include "tenon/ops.h"
#include "tenon/random.h"

/* How the elements of an operand are drawn. */
enum {
  FILL_ANY,      /* -2 .. 2 */
  FILL_POSITIVE, /* 0.5 .. 2 */
  FILL_AWAY,     /* 0.1 .. 2 with either sign: away from a kink at 0 */
  FILL_DISTINCT, /* no two within 0.05: away from ties */
  FILL_WHOLE,    /* whole numbers from low to high - 1 */
  FILL_BOOL
};

typedef struct case_input {
  char name[16];
  tn_type type;
  int32_t fill;
  int64_t low, high; /* FILL_WHOLE */
} case_input;

enum { CASE_INPUTS = 16 };

typedef struct draw {
  tn_graph *graph;
  tn_build *b;
  tn_rng rng;
  int32_t dtype; /* of the op's T */
  bool large;    /* shapes beyond the blocks and vectors of kernels, too large for differences */
  case_input inputs[CASE_INPUTS];
  int32_t n_inputs;
} draw;

/* Over which types an op's T is tried; gradients are checked in f64. */
enum { CASE_FLOATS = 0, CASE_NUMBERS = 1 /* whole numbers too */ };

typedef struct conformance_case {
  const char *op;
  tn_val (*emit)(draw *d, const struct conformance_case *c); /* the node's first result */
  int32_t fill;                                              /* for emitters that several ops share */
  int32_t dtypes;                                            /* CASE_... */
} conformance_case;

/* Ended by a NULL op. */
extern const conformance_case pointwise_cases[], fill_cases[], reduce_cases[], product_cases[], norm_cases[],
    loss_cases[], movement_cases[], update_cases[];

/* ---- drawing ---- */

static inline int64_t draw_between(draw *d, int64_t low, int64_t high) {
  return low + tn_rng_below(&d->rng, high - low + 1);
}
static inline bool draw_flag(draw *d) { return draw_between(d, 0, 1) == 1; }

/* A size of its own: six times as much where shapes are large. */
static inline int64_t draw_size(draw *d, int64_t low, int64_t high) {
  return draw_between(d, low, d->large ? 6 * high : high);
}

/* Dims 1 .. 4, at times 1, and seldom 0 where empty tensors make sense. */
tn_type draw_type(draw *d, int32_t dtype, int32_t least_rank, int32_t most_rank, bool empty);
/* Dims that broadcast against `wide`: some 1, some leading ones gone. */
tn_type draw_narrower(draw *d, const tn_type *wide);
/* A type from its parts. */
tn_type type_of(int32_t dtype, int32_t rank, const int64_t *dims);

/* A new operand. */
tn_val draw_tensor(draw *d, tn_type type, int32_t fill);
tn_val draw_whole(draw *d, tn_type type, int64_t low, int64_t high);
/* An i64 scalar, as iteration and updates are. */
tn_val draw_counter(draw *d, int64_t least);

/* Values of an input, rounded to its dtype. */
void draw_values(tn_rng *rng, const case_input *input, double *values);

#endif
