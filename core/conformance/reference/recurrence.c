/* core/conformance/reference/recurrence.c: recurrence and its gradient, step by step and sequence by
 * sequence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/conformance/reference/reference.h"
#include "tenon/attributes.h"

typedef struct steps {
  const tn_recurrence_attributes *a;
  int64_t batch, steps, units, gates, stored;
  const double *w, *bias, *h, *c, *length; /* all but w may be NULL */
} steps;

/* The sizes are those of y, w and stored. */
static steps steps_of(const tn_recurrence_attributes *a, const tn_type *y, const tn_type *w,
                      const tn_type *stored) {
  int64_t units = y->dims[2] > 0 ? y->dims[2] : 1;
  return (steps){.a = a,
                 .batch = y->dims[0],
                 .steps = y->dims[1],
                 .units = y->dims[2],
                 .gates = w->dims[0] / units,
                 .stored = stored->dims[2] / units};
}

static const double *steps_operand(const tn_reference_call *c, int32_t i) {
  return i < c->n_in && c->in[i] != NULL ? c->x[i] : NULL;
}

static int64_t steps_length(const steps *s, int64_t row) {
  return s->length != NULL ? (int64_t)s->length[row] : s->steps;
}

/* The time of step k of `length` steps. */
static int64_t steps_time(const steps *s, int64_t k, int64_t length) {
  return s->a->reverse ? length - 1 - k : k;
}

static double steps_sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* (w h + bias) of one gate of a unit. */
static double steps_product(const steps *s, const double *h, int64_t gate, int64_t unit) {
  int64_t row = gate * s->units + unit;
  double sum = s->bias != NULL ? s->bias[row] : 0;
  for (int64_t k = 0; k < s->units; k++) sum += s->w[row * s->units + k] * h[k];
  return sum;
}

/* One step of one unit: the new state, and the numbers to store. */
static double steps_cell(const steps *s, const double *x, const double *h, double *c, int64_t u,
                         double *stored) {
  double p[4];
  for (int64_t g = 0; g < s->gates; g++) p[g] = steps_product(s, h, g, u);
  switch (s->a->cell) {
  case TN_CELL_LSTM: {
    double i = steps_sigmoid(x[u] + p[0]), f = steps_sigmoid(x[s->units + u] + p[1]);
    double g = tanh(x[2 * s->units + u] + p[2]), o = steps_sigmoid(x[3 * s->units + u] + p[3]);
    c[u] = f * c[u] + i * g;
    const double all[] = {i, f, g, o, c[u]};
    for (int64_t k = 0; k < 5; k++) stored[k * s->units + u] = all[k];
    return o * tanh(c[u]);
  }
  case TN_CELL_GRU: {
    double r = steps_sigmoid(x[u] + p[0]), z = steps_sigmoid(x[s->units + u] + p[1]);
    double n = tanh(x[2 * s->units + u] + r * p[2]);
    const double all[] = {r, z, n, p[2]};
    for (int64_t k = 0; k < 4; k++) stored[k * s->units + u] = all[k];
    return (1 - z) * n + z * h[u];
  }
  case TN_CELL_TANH: return tanh(x[u] + p[0]);
  default: return fmax(x[u] + p[0], 0);
  }
}

static void steps_start(const double *given, int64_t row, int64_t units, double *state) {
  for (int64_t u = 0; u < units; u++) state[u] = given != NULL ? given[row * units + u] : 0;
}

static void reference_recurrence(const tn_reference_call *call) {
  steps s = steps_of(call->attributes, call->out[0], call->in[1], call->out[3]);
  s.w = call->x[1];
  s.bias = steps_operand(call, 2);
  s.h = steps_operand(call, 3);
  s.c = steps_operand(call, 4);
  s.length = steps_operand(call, 5);
  double *h = calloc((size_t)(3 * s.units + 1), sizeof *h), *next = h + s.units, *c = next + s.units;
  for (int64_t row = 0; h != NULL && row < s.batch; row++) {
    int64_t length = steps_length(&s, row);
    steps_start(s.h, row, s.units, h);
    steps_start(s.c, row, s.units, c);
    for (int64_t k = 0; k < length; k++) {
      int64_t at = row * s.steps + steps_time(&s, k, length);
      for (int64_t u = 0; u < s.units; u++)
        next[u] = steps_cell(&s, call->x[0] + at * s.gates * s.units, h, c, u,
                             call->y[3] + at * s.stored * s.units);
      memcpy(h, next, (size_t)s.units * sizeof *h);
      memcpy(call->y[0] + at * s.units, h, (size_t)s.units * sizeof *h);
    }
    memcpy(call->y[1] + row * s.units, h, (size_t)s.units * sizeof *h);
    if (s.a->cell == TN_CELL_LSTM) memcpy(call->y[2] + row * s.units, c, (size_t)s.units * sizeof *c);
  }
  free(h);
}

/* ---- gradient ---- */

/* The gradients of one unit in one step, of the gates and of the state before the step. */
typedef struct step_grad {
  double x[4], product[4]; /* of the gates: their part of x, and that of w h + bias */
  double h, c;             /* dh: without the part through w */
} step_grad;

static step_grad steps_cell_grad(const steps *s, const double *t, double y, double h, double c, double dh,
                                 double dc, int64_t u) {
  step_grad d = {.c = 0};
  int64_t n = s->units;
  switch (s->a->cell) {
  case TN_CELL_LSTM: {
    double i = t[u], f = t[n + u], g = t[2 * n + u], o = t[3 * n + u], squashed = tanh(t[4 * n + u]);
    dc += dh * o * (1 - squashed * squashed);
    const double all[] = {dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g),
                          dh * squashed * o * (1 - o)};
    memcpy(d.x, all, sizeof all);
    memcpy(d.product, all, sizeof all);
    d.c = dc * f;
    break;
  }
  case TN_CELL_GRU: {
    double r = t[u], z = t[n + u], m = t[2 * n + u], q = t[3 * n + u];
    d.x[2] = dh * (1 - z) * (1 - m * m);
    d.x[1] = dh * (h - m) * z * (1 - z);
    d.x[0] = d.x[2] * q * r * (1 - r);
    memcpy(d.product, d.x, sizeof d.x);
    d.product[2] = d.x[2] * r;
    d.h = dh * z;
    break;
  }
  case TN_CELL_TANH: d.x[0] = d.product[0] = dh * (1 - y * y); break;
  default: d.x[0] = d.product[0] = y > 0 ? dh : 0;
  }
  return d;
}

typedef struct grad_call {
  const tn_reference_call *call;
  steps s;
  const double *y, *stored, *dy;
  double *dh, *dc, *before; /* of one sequence: running gradients, and those of the step before */
} grad_call;

/* The state before step k: y or c of the step before, or the first one. */
static double grad_state(const grad_call *g, const double *first, const double *of, int64_t stride,
                         int64_t row, int64_t k, int64_t length, int64_t u) {
  if (k == 0) return first != NULL ? first[row * g->s.units + u] : 0;
  return of[(row * g->s.steps + steps_time(&g->s, k - 1, length)) * stride + u];
}

static void grad_step(const grad_call *g, int64_t row, int64_t k, int64_t length) {
  const steps *s = &g->s;
  int64_t at = row * s->steps + steps_time(s, k, length), units = s->units;
  memset(g->before, 0, (size_t)units * sizeof *g->before);
  for (int64_t u = 0; u < units; u++) {
    double h = grad_state(g, s->h, g->y, units, row, k, length, u);
    double c = s->a->cell != TN_CELL_LSTM
                   ? 0
                   : grad_state(g, s->c, g->stored + 4 * units, 5 * units, row, k, length, u);
    double dh = g->dh[u] + (g->dy != NULL ? g->dy[at * units + u] : 0);
    step_grad d =
        steps_cell_grad(s, g->stored + at * s->stored * units, g->y[at * units + u], h, c, dh, g->dc[u], u);
    g->before[u] += d.h;
    g->dc[u] = d.c;
    for (int64_t gate = 0; gate < s->gates; gate++) {
      int64_t column = gate * units + u;
      g->call->y[0][at * s->gates * units + column] = d.x[gate];
      g->call->y[2][column] += d.product[gate];
      for (int64_t i = 0; i < units; i++) {
        g->before[i] += d.product[gate] * s->w[column * units + i];
        g->call->y[1][column * units + i] +=
            d.product[gate] * grad_state(g, s->h, g->y, units, row, k, length, i);
      }
    }
  }
  memcpy(g->dh, g->before, (size_t)units * sizeof *g->dh);
}

static void reference_recurrence_grad(const tn_reference_call *call) {
  grad_call g = {.call = call, .s = steps_of(call->attributes, call->in[4], call->in[0], call->in[5])};
  steps *s = &g.s;
  s->w = call->x[0];
  s->h = steps_operand(call, 1);
  s->c = steps_operand(call, 2);
  s->length = steps_operand(call, 3);
  g.y = call->x[4];
  g.stored = call->x[5];
  g.dy = steps_operand(call, 6);
  g.dh = calloc((size_t)(3 * s->units + 1), sizeof *g.dh);
  g.dc = g.dh + s->units;
  g.before = g.dc + s->units;
  for (int64_t row = 0; g.dh != NULL && row < s->batch; row++) {
    int64_t length = steps_length(s, row), units = s->units;
    steps_start(steps_operand(call, 7), row, units, g.dh);
    steps_start(s->a->cell == TN_CELL_LSTM ? steps_operand(call, 8) : NULL, row, units, g.dc);
    for (int64_t k = length - 1; k >= 0; k--) grad_step(&g, row, k, length);
    memcpy(call->y[3] + row * units, g.dh, (size_t)units * sizeof *g.dh);
    if (s->a->cell == TN_CELL_LSTM) memcpy(call->y[4] + row * units, g.dc, (size_t)units * sizeof *g.dc);
  }
  free(g.dh);
}

const tn_reference_op tn_reference_recurrence_ops[] = {
    TN_REFERENCE_OP(recurrence), TN_REFERENCE_OP(recurrence_grad), {NULL, NULL}};
