/* core/conformance/cases/cases.h: for every op, a function that draws a use of it, with shapes, attributes
 * and values from a seed. The draws serve gradient checks by finite differences (in f64, on the reference)
 * and comparisons of kernels with the reference (in every dtype). */
#pragma once

#include <string.h>
#include <math.h>

#include "core/config/options/range.h"
#include "core/graph/graph.h"
#include "tenon/ops.h"
#include "tenon/random.h"

/* How the elements of an operand are drawn. */
enum {
  TN_FILL_ANY,      /* -2 .. 2 */
  TN_FILL_FAR,      /* with a mean of more than 1,000 standard deviations (bf16: 80) */
  TN_FILL_POSITIVE, /* 0.5 .. 2 */
  TN_FILL_AWAY,     /* 0.1 .. 2 with either sign: away from a kink at 0 */
  TN_FILL_DISTINCT, /* at least 0.05 apart: away from ties */
  TN_FILL_INTEGER,  /* integers from low to high - 1 */
  TN_FILL_BOOL,
  TN_FILL_DOMAIN /* numbers of `domain`, by the style of the draw */
};

/* Which numbers of a domain are drawn. */
enum {
  TN_STYLE_ORDINARY, /* of both signs, up to 4 */
  TN_STYLE_WIDE,     /* zeros, the bounds of the domain, tiny numbers, numbers up to 8 */
  TN_STYLE_SPECIAL   /* also denormal and large ones, infinities and NaN */
};

typedef struct tn_case_input {
  char name[16];
  tn_type type;
  int32_t fill;
  int64_t low, high; /* TN_FILL_INTEGER */
  tn_range domain;   /* TN_FILL_DOMAIN */
  int32_t style;     /* TN_FILL_DOMAIN */
  double margin;     /* TN_FILL_DOMAIN: distance from the bounds of the domain */
} tn_case_input;

enum { TN_CASE_INPUTS = 32, TN_CASE_INNER = 8, TN_CASE_RESULTS = 8 };

/* The random streams of a draw: of its shapes and options, and of the values of its operands. */
enum { TN_DRAW_SHAPES = 1, TN_DRAW_VALUES = 2 };

typedef struct tn_draw {
  tn_graph *graph;
  tn_build *b;
  tn_rng rng;
  int32_t dtype; /* of the op's T */
  bool dying;    /* operands are copies without another reader, so results may be computed in place */
  bool large;    /* shapes beyond the tiles and vectors of kernels, too large for finite differences */
  int64_t draw;
  int32_t style;                   /* TN_STYLE_... of operands that are drawn from domains */
  const char *settings;            /* of the site */
  bool exact;                      /* for finite differences: nothing is rounded */
  tn_val results[TN_CASE_RESULTS]; /* of a use that is not one node; 0 results: those of the node */
  int32_t n_results;
  tn_case_input inputs[TN_CASE_INPUTS];
  int32_t n_inputs;
  tn_val (*front)(struct tn_draw *d, tn_val x); /* makes the first operand from the tensor drawn for it */
  tn_val inner[TN_CASE_INNER];                  /* results of inner nodes that are outputs, too */
  int32_t n_inner;
} tn_draw;

/* The dtypes of an op's T; gradient rules are checked in f64. */
enum { TN_CASE_FLOATS = 0, TN_CASE_NUMBERS = 1 /* integers too */ };

typedef struct tn_case {
  const char *op;
  tn_val (*emit)(tn_draw *d, const struct tn_case *c); /* the node's first result */
  int32_t fill;                                        /* read by emitters that several ops share */
  int32_t dtypes;                                      /* TN_CASE_... */
  bool forward_only;                                   /* the gradient is not compared */
  bool straight_through; /* the gradient is no derivative, so there are no finite differences of it */
  /* The gradient is compared in f32 and f64 only: in narrower types its differences cancel to noise. */
  bool wide_gradient;
  int32_t variance; /* the number of the result that is the variance of result 0; 0 where the op has none */
  int64_t draws;    /* at most; 0 stands for those of the suite */
  /* Of tn_schema_emit: the domain of the operands, in place of the op's, on which results or gradients are
   * too large or too steep for a close comparison. Special numbers are drawn from the op's domain. NULL: all
   * draws use the op's domain. */
  const char *domain;
  /* Each result is made of the one before it, as a parameter is in several updates, and the first of the
   * operands. A small result that is the difference of large ones has their rounding. */
  bool successive;
  bool masked; /* the reference multiplies some elements by 0, and kernels may leave them out */
} tn_case;

/* Each ends with a NULL op. */
extern const tn_case tn_pointwise_cases[], tn_fill_cases[], tn_reduce_cases[], tn_product_cases[],
    tn_norm_cases[], tn_loss_cases[], tn_movement_cases[], tn_index_cases[], tn_mixed_cases[],
    tn_recurrence_cases[];
/* The number of spatial dimensions, which the op's name has: 2 for "conv2d_grad_input". */
static inline int32_t tn_case_spatial(const char *op) { return strpbrk(op, "123")[0] - '0'; }
/* All tables; ends with NULL. */
extern const tn_case *const tn_case_tables[];
/* The case of an op of the core, or NULL. */
const tn_case *tn_case_find(const char *op);

/* ---- drawing ---- */

static inline int64_t tn_draw_between(tn_draw *d, int64_t low, int64_t high) {
  return low + tn_rng_below(&d->rng, high - low + 1);
}
static inline bool tn_draw_flag(tn_draw *d) { return tn_draw_between(d, 0, 1) == 1; }

/* A size; up to six times as large for large shapes. */
static inline int64_t tn_draw_size(tn_draw *d, int64_t low, int64_t high) {
  return tn_draw_between(d, low, d->large ? 6 * high : high);
}

/* A number of channels; for large shapes half of them 16, 32 or 48, for kernels on blocked layouts. */
static inline int64_t tn_draw_channels(tn_draw *d, int64_t low, int64_t high) {
  return d->large && tn_draw_flag(d) ? 16 * tn_draw_between(d, 1, 3) : tn_draw_size(d, low, high);
}

/* Dims 1 .. 4, often 1; empty: seldom 0. */
tn_type tn_draw_type(tn_draw *d, int32_t dtype, int32_t least_rank, int32_t most_rank, bool empty);
/* Dims that broadcast to `wide`: some are 1, some leading ones are dropped. */
tn_type tn_draw_narrower(tn_draw *d, const tn_type *wide);
/* A type from its parts. */
tn_type tn_draw_type_of(int32_t dtype, int32_t rank, const int64_t *dims);

/* A new operand. */
tn_val tn_draw_tensor(tn_draw *d, tn_type type, int32_t fill);
tn_val tn_draw_integers(tn_draw *d, tn_type type, int64_t low, int64_t high);
/* An operand with values of a domain. */
tn_val tn_draw_domain(tn_draw *d, tn_type type, tn_range domain);
static inline tn_range tn_domain_any(void) { return (tn_range){-INFINITY, INFINITY, false, false}; }
/* An i64 scalar such as the iteration or the number of updates. */
tn_val tn_draw_counter(tn_draw *d, int64_t least);

/* Begins an op, and gives it its first n operands. */
void tn_draw_begin(tn_draw *d, const char *op, int32_t n, const tn_val *operands);

/* Values of an input, rounded to its dtype. */
void tn_draw_values(tn_rng *rng, const tn_case_input *input, double *values);
/* The results of a drawn use whose first result is `first`: at most TN_REFERENCE_RESULTS. */
int32_t tn_draw_results(const tn_draw *d, tn_val first, tn_val *results);
/* Whether gradients of the use are defined. */
bool tn_draw_is_differentiable(const tn_draw *d, tn_val first);

/* ---- domain.c ---- */

/* One number of the domain of an input. */
double tn_draw_from_domain(tn_rng *rng, const tn_case_input *input);
/* The smallest normal number of a float dtype. */
double tn_domain_smallest_normal(int32_t dtype);
