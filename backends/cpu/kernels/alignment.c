/* backends/cpu/kernels/alignment.c: alignment and its gradient by the forward-backward algorithm (Rabiner,
 * Proc. IEEE 1989): alpha(t, s) is the logarithm of the sum over the paths to state s at step t, beta(t, s)
 * that over the paths from there on, without the score of t. A task is a sequence; logarithms are f64. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/common/lane.h"

#include <math.h>
#include <stdbool.h>

typedef struct alignment {
  const tn_launch *l;
  int64_t row, steps, states, most_steps, most_states;
  double *alpha, *beta[2]; /* in the workspace */
} alignment;

static int64_t alignment_room(const tn_type *score) { return (score->dims[1] + 2) * score->dims[2]; }

static alignment alignment_of_row(const tn_launch *l, int64_t row) {
  const tn_type *score = &l->in[0].type;
  alignment a = {.l = l,
                 .row = row,
                 .steps = ((const int32_t *)l->in[2].data)[row],
                 .states = ((const int32_t *)l->in[3].data)[row],
                 .most_steps = score->dims[1],
                 .most_states = score->dims[2],
                 .alpha = (double *)l->workspace + row * alignment_room(score)};
  a.beta[0] = a.alpha + a.most_steps * a.most_states;
  a.beta[1] = a.beta[0] + a.most_states;
  return a;
}

static int64_t alignment_index(const alignment *a, int64_t step, int64_t state) {
  return (a->row * a->most_steps + step) * a->most_states + state;
}

static double alignment_score(const alignment *a, int64_t step, int64_t state) {
  const tn_view *score = &a->l->in[0];
  return tn_cpu_get(score->type.dtype, score->data, alignment_index(a, step, state));
}

/* Whether a path may go from state - 2 to this one. */
static bool alignment_skips(const alignment *a, int64_t state) {
  return state >= 2 && state < a->states &&
         ((const uint8_t *)a->l->in[1].data)[a->row * a->most_states + state] != 0;
}

static double alignment_log_sum(double x, double y, double z) {
  double most = fmax(x, fmax(y, z)); /* fmax leaves out NaN */
  if (x != x || y != y || z != z) return NAN;
  return isinf(most) ? most : most + log(exp(x - most) + exp(y - most) + exp(z - most));
}

/* Fills alpha, and returns the total. */
static double alignment_forward(const alignment *a) {
  int64_t n = a->most_states, last = a->states - 1;
  if (a->steps == 0 || a->states == 0) return -INFINITY;
  for (int64_t s = 0; s < a->states; s++) a->alpha[s] = s < 2 ? alignment_score(a, 0, s) : -INFINITY;
  for (int64_t t = 1; t < a->steps; t++) {
    const double *from = a->alpha + (t - 1) * n;
    for (int64_t s = 0; s < a->states; s++) {
      double before = alignment_log_sum(from[s], s > 0 ? from[s - 1] : -INFINITY,
                                        alignment_skips(a, s) ? from[s - 2] : -INFINITY);
      a->alpha[t * n + s] = before == -INFINITY ? before : before + alignment_score(a, t, s);
    }
  }
  const double *end = a->alpha + (a->steps - 1) * n;
  return alignment_log_sum(end[last], last > 0 ? end[last - 1] : -INFINITY, -INFINITY);
}

/* beta of a step from `next`, which is beta + score of the step behind it. */
static double alignment_beta(const alignment *a, const double *next, int64_t s) {
  return alignment_log_sum(next[s], s + 1 < a->states ? next[s + 1] : -INFINITY,
                           alignment_skips(a, s + 2) ? next[s + 2] : -INFINITY);
}

static void alignment_go_back(const alignment *a, double total) {
  const tn_view *dscore = &a->l->out[0];
  double dtotal = tn_cpu_get(dscore->type.dtype, a->l->in[4].data, a->row);
  for (int64_t t = a->steps - 1; t >= 0; t--) {
    double *own = a->beta[t % 2];
    const double *next = a->beta[(t + 1) % 2];
    for (int64_t s = 0; s < a->states; s++) {
      bool ends = s + 2 >= a->states;
      double beta = t + 1 < a->steps ? alignment_beta(a, next, s) : ends ? 0 : -INFINITY;
      double share = exp(a->alpha[t * a->most_states + s] + beta - total);
      own[s] = beta + alignment_score(a, t, s);
      tn_cpu_put(dscore->type.dtype, dscore->data, alignment_index(a, t, s), dtotal * share);
    }
  }
}

static void alignment_task(void *l, int64_t row) {
  alignment a = alignment_of_row(l, row);
  const tn_view *total = &a.l->out[0];
  tn_cpu_put(total->type.dtype, total->data, row, alignment_forward(&a));
}

static void alignment_grad_task(void *l, int64_t row) {
  alignment a = alignment_of_row(l, row);
  const tn_view *dscore = &a.l->out[0];
  int64_t first = alignment_index(&a, 0, 0), n = a.most_steps * a.most_states;
  for (int64_t i = 0; i < n; i++) tn_cpu_put(dscore->type.dtype, dscore->data, first + i, 0);
  double total = alignment_forward(&a);
  if (total != -INFINITY) alignment_go_back(&a, total);
}

static tn_status alignment_check_counts(tn_launch *l) {
  static const char *const names[] = {"steps", "states"};
  const tn_type *score = &l->in[0].type;
  for (int32_t i = 0; i < 2; i++)
    for (int64_t row = 0; row < score->dims[0]; row++) {
      int32_t n = ((const int32_t *)l->in[2 + i].data)[row];
      if (n < 0 || n > score->dims[1 + i])
        return tn_fail(l, TN_EINVAL, NULL, "alignment: sequence %lld has %d %s, expected 0 .. %lld",
                       (long long)row, (int)n, names[i], (long long)score->dims[1 + i]);
    }
  return TN_OK;
}

static tn_status alignment_run(tn_launch *l, void (*task)(void *, int64_t)) {
  TN_TRY(alignment_check_counts(l));
  tn_parallel(l, l->in[0].type.dims[0], task, l);
  return TN_OK;
}

static tn_status alignment_launch(tn_launch *l) { return alignment_run(l, alignment_task); }
static tn_status alignment_grad_launch(tn_launch *l) { return alignment_run(l, alignment_grad_task); }

static tn_status alignment_query(tn_query *q) {
  const tn_type *score = q->match->in[0];
  int64_t bytes = score->dims[0] * alignment_room(score) * (int64_t)sizeof(double);
  return tn_offer(q, (tn_variant){.name = "forward-backward", .workspace_bytes = bytes});
}

TN_DEFINE_KERNEL(cpu, alignment, "alignment", "total = alignment(score, skip, steps, states)",
                 "a sequence in each task", .query = alignment_query, .launch = alignment_launch);
TN_DEFINE_KERNEL(cpu, alignment_grad, "alignment_grad",
                 "dscore = alignment_grad(score, skip, steps, states, dtotal)", "a sequence in each task",
                 .query = alignment_query, .launch = alignment_grad_launch);
