/* core/conformance/cases/recurrence.c: cases of recurrence and its gradient. */
#include <string.h>

#include "core/conformance/cases/cases.h"

typedef struct recurrence_draw {
  int64_t batch, steps, units;
  int32_t cell;
} recurrence_draw;

static const char *const recurrence_cells[] = {"lstm", "gru", "tanh", "relu"};
static const int64_t recurrence_gates[] = {4, 3, 1, 1}, recurrence_stored[] = {5, 4, 0, 0};

static tn_val recurrence_tensor(tn_draw *d, const tn_case *c, int32_t rank, int64_t d0, int64_t d1,
                                int64_t d2) {
  return tn_draw_tensor(d, tn_draw_type_of(d->dtype, rank, (int64_t[]){d0, d1, d2}), c->fill);
}

static recurrence_draw recurrence_draw_sizes(tn_draw *d) {
  return (recurrence_draw){tn_draw_size(d, 0, 3), tn_draw_size(d, 0, 4), tn_draw_size(d, 1, 5),
                           (int32_t)tn_draw_between(d, 0, 3)};
}

/* Small enough that a step does not enlarge the rounding of the steps before it. */
static tn_val recurrence_weight(tn_draw *d, const recurrence_draw *r) {
  static const tn_range small = {-0.3, 0.3, false, false};
  int64_t dims[] = {recurrence_gates[r->cell] * r->units, r->units};
  return tn_draw_domain(d, tn_draw_type_of(d->dtype, 2, dims), small);
}

/* y or stored, as a step makes them: larger ones would enlarge the gradient, and its rounding, in every step.
 */
static tn_val recurrence_made(tn_draw *d, const recurrence_draw *r, int64_t numbers) {
  static const tn_range gate = {-1, 1, false, false};
  int64_t dims[] = {r->batch, r->steps, numbers * r->units};
  return tn_draw_domain(d, tn_draw_type_of(d->dtype, 3, dims), gate);
}

/* h, c and length, each there or not. */
static void recurrence_draw_state(tn_draw *d, const tn_case *c, const recurrence_draw *r, tn_val state[3]) {
  bool length = tn_draw_flag(d), lstm = r->cell == 0;
  state[0] = tn_draw_flag(d) ? recurrence_tensor(d, c, 2, r->batch, r->units, 0) : 0;
  state[1] = lstm && tn_draw_flag(d) ? recurrence_tensor(d, c, 2, r->batch, r->units, 0) : 0;
  state[2] = length ? tn_draw_integers(d, tn_draw_type_of(TN_I32, 1, &r->batch), 0, r->steps + 1) : 0;
}

static tn_val recurrence_emit(tn_draw *d, const tn_case *c, const recurrence_draw *r, const tn_val *in,
                              int32_t n) {
  tn_draw_begin(d, c->op, n, in);
  tn_op_set_text(d->b, "cell", recurrence_cells[r->cell]);
  tn_op_set_int(d->b, "reverse", tn_draw_flag(d));
  return tn_op_end(d->b);
}

static tn_val recurrence_case(tn_draw *d, const tn_case *c) {
  recurrence_draw r = recurrence_draw_sizes(d);
  tn_val in[6];
  in[0] = recurrence_tensor(d, c, 3, r.batch, r.steps, recurrence_gates[r.cell] * r.units);
  in[1] = recurrence_weight(d, &r);
  in[2] = tn_draw_flag(d) ? recurrence_tensor(d, c, 1, recurrence_gates[r.cell] * r.units, 0, 0) : 0;
  recurrence_draw_state(d, c, &r, in + 3);
  return recurrence_emit(d, c, &r, in, 6);
}

static tn_val recurrence_case_grad(tn_draw *d, const tn_case *c) {
  recurrence_draw r = recurrence_draw_sizes(d);
  tn_val in[9];
  in[0] = recurrence_weight(d, &r);
  recurrence_draw_state(d, c, &r, in + 1);
  in[4] = recurrence_made(d, &r, 1);
  in[5] = recurrence_made(d, &r, recurrence_stored[r.cell]);
  in[6] = tn_draw_flag(d) ? recurrence_tensor(d, c, 3, r.batch, r.steps, r.units) : 0;
  in[7] = tn_draw_flag(d) ? recurrence_tensor(d, c, 2, r.batch, r.units, 0) : 0;
  in[8] = tn_draw_flag(d) ? recurrence_tensor(d, c, 2, r.batch, r.cell == 0 ? r.units : 0, 0) : 0;
  return recurrence_emit(d, c, &r, in, 9);
}

const tn_case tn_recurrence_cases[] = {
    {"recurrence", recurrence_case, TN_FILL_ANY, TN_CASE_FLOATS, .wide_gradient = true},
    {"recurrence_grad", recurrence_case_grad, TN_FILL_ANY, TN_CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
