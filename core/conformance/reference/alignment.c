/* core/conformance/reference/alignment.c: alignment and its gradient, path by path: for some steps and
 * states only, since the number of paths is exponential. */
#include <math.h>

#include "core/conformance/reference/reference.h"

typedef struct paths {
  const tn_reference_call *c;
  int64_t row, steps, states, score_steps, score_states;
  double total;
  double *share;  /* of each state and step; NULL: none is noted */
  int64_t at[64]; /* the states of the path */
} paths;

static int64_t paths_index(const paths *p, int64_t step, int64_t state) {
  return (p->row * p->score_steps + step) * p->score_states + state;
}

static double paths_log_add(double x, double y) {
  double most = fmax(x, y);
  if (x != x || y != y) return NAN;
  return isinf(most) ? most : most + log(exp(x - most) + exp(y - most));
}

/* A whole path with this sum of scores. */
static void paths_end(paths *p, double sum) {
  if (p->share == NULL) {
    p->total = paths_log_add(p->total, sum);
    return;
  }
  for (int64_t t = 0; t < p->steps; t++)
    p->share[paths_index(p, t, p->at[t])] += p->c->x[4][p->row] * exp(sum - p->total);
}

static void paths_go(paths *p, int64_t step, int64_t state, double sum) {
  if (state >= p->states) return;
  sum += p->c->x[0][paths_index(p, step, state)];
  p->at[step] = state;
  if (step + 1 == p->steps) {
    if (state + 2 >= p->states) paths_end(p, sum);
    return;
  }
  paths_go(p, step + 1, state, sum);
  paths_go(p, step + 1, state + 1, sum);
  if (state + 2 < p->states && p->c->x[1][p->row * p->score_states + state + 2] != 0)
    paths_go(p, step + 1, state + 2, sum);
}

static double paths_sum(const tn_reference_call *c, int64_t row, double *share, double total) {
  paths p = {.c = c,
             .row = row,
             .steps = (int64_t)c->x[2][row],
             .states = (int64_t)c->x[3][row],
             .score_steps = c->in[0]->dims[1],
             .score_states = c->in[0]->dims[2],
             .total = total,
             .share = share};
  for (int64_t first = 0; first < 2 && p.steps > 0; first++) paths_go(&p, 0, first, 0);
  return p.total;
}

static void reference_alignment(const tn_reference_call *c) {
  for (int64_t row = 0; row < c->in[0]->dims[0]; row++) c->y[0][row] = paths_sum(c, row, NULL, -INFINITY);
}

static void reference_alignment_grad(const tn_reference_call *c) {
  for (int64_t row = 0; row < c->in[0]->dims[0]; row++) {
    double total = paths_sum(c, row, NULL, -INFINITY);
    if (total != -INFINITY) paths_sum(c, row, c->y[0], total);
  }
}

const tn_reference_op tn_reference_alignment_ops[] = {
    TN_REFERENCE_OP(alignment), TN_REFERENCE_OP(alignment_grad), {NULL, NULL}};
