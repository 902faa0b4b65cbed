/* core/conformance/reference/reduce.c: reductions and pooling of the reference. */
#include <math.h>

#include "core/conformance/reference/reference.h"
#include "tenon/attributes.h"

/* Calls visit(c, from, to) for each element of x and its element of the result. */
static void reference_each_reduced(const tn_reference_call *c,
                                   void (*visit)(const tn_reference_call *c, int64_t from, int64_t to)) {
  const tn_reduce_attributes *a = c->attributes;
  const tn_type *x = c->in[0];
  int64_t index[TN_MAX_RANK];
  tn_type kept = *x;
  for (int32_t d = 0; d < x->rank; d++)
    if (a->axes.n == 0) kept.dims[d] = 1;
  for (int64_t k = 0; k < a->axes.n; k++) kept.dims[tn_reference_axis(a->axes.v[k], x)] = 1;
  for (int64_t i = 0; i < tn_type_count(x); i++) {
    tn_reference_unflatten(x, i, index);
    visit(c, i, tn_reference_broadcast(&kept, index, x->rank));
  }
}

static void reference_reduce_add(const tn_reference_call *c, int64_t from, int64_t to) {
  c->y[0][to] += c->x[0][from];
}
static void reference_raise(const tn_reference_call *c, int64_t from, int64_t to) {
  double x = c->x[0][from], y = c->y[0][to];
  if (x != x || x > y) c->y[0][to] = x;
}
static void reference_lower(const tn_reference_call *c, int64_t from, int64_t to) {
  double x = c->x[0][from], y = c->y[0][to];
  if (x != x || x < y) c->y[0][to] = x;
}

static void reference_start(const tn_reference_call *c, double value) {
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) c->y[0][i] = value;
}

static void reference_reduce_sum(const tn_reference_call *c) {
  reference_each_reduced(c, reference_reduce_add);
}
static void reference_reduce_max(const tn_reference_call *c) {
  reference_start(c, -INFINITY);
  reference_each_reduced(c, reference_raise);
}
static void reference_reduce_min(const tn_reference_call *c) {
  reference_start(c, INFINITY);
  reference_each_reduced(c, reference_lower);
}

static void reference_argmax(const tn_reference_call *c) {
  const tn_axis_attributes *a = c->attributes;
  const tn_type *x = c->in[0];
  int64_t axis = tn_reference_axis(a->axis, x), inner = tn_reference_stride(x, axis), n = x->dims[axis];
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {
    const double *row = c->x[0] + i / inner * n * inner + i % inner;
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++) {
      double v = row[k * inner], top = row[best * inner];
      if (top == top && (v != v || v > top)) best = k;
    }
    c->y[0][i] = (double)best;
  }
}

/* ---- pooling ---- */

/* The intersection of a window with the input, and with the padded input. */
typedef struct pool_window {
  int64_t start[2], stop[2], padded_stop[2];
} pool_window;

static pool_window reference_window_at(const tn_pool2d_attributes *a, const tn_type *x, int64_t row,
                                       int64_t column) {
  pool_window w;
  int64_t at[2] = {row, column};
  for (int32_t d = 0; d < 2; d++) {
    int64_t stride = a->stride.n > 0 ? a->stride.v[d] : a->kernel.v[d], size = x->dims[2 + d];
    int64_t first = at[d] * stride - a->padding.v[d], last = first + a->kernel.v[d];
    w.start[d] = first < 0 ? 0 : first;
    w.stop[d] = last > size ? size : last;
    w.padded_stop[d] = last > size + a->padding.v[d] ? size + a->padding.v[d] : last;
    if (w.start[d] > w.stop[d]) w.start[d] = w.stop[d];
  }
  return w;
}

static void reference_max_pool2d(const tn_reference_call *c) {
  const tn_type *x = c->in[0], *y = c->out[0];
  int64_t index[4];
  for (int64_t i = 0; i < tn_type_count(y); i++) {
    tn_reference_unflatten(y, i, index);
    pool_window w = reference_window_at(c->attributes, x, index[2], index[3]);
    const double *plane = c->x[0] + (index[0] * x->dims[1] + index[1]) * x->dims[2] * x->dims[3];
    int64_t best = w.start[0] * x->dims[3] + w.start[1];
    for (int64_t h = w.start[0]; h < w.stop[0]; h++)
      for (int64_t v = w.start[1]; v < w.stop[1]; v++) {
        int64_t at = h * x->dims[3] + v;
        if (plane[best] == plane[best] && (plane[at] != plane[at] || plane[at] > plane[best])) best = at;
      }
    c->y[0][i] = plane[best];
    c->y[1][i] = (double)best;
  }
}

static void reference_max_pool2d_grad(const tn_reference_call *c) {
  const tn_type *dy = c->in[0], *dx = c->out[0];
  int64_t plane = dx->dims[2] * dx->dims[3], per_plane = dy->dims[2] * dy->dims[3];
  for (int64_t i = 0; i < tn_type_count(dy); i++)
    c->y[0][i / per_plane * plane + (int64_t)c->x[1][i]] += c->x[0][i];
}

/* The divisor counts elements of the padded input, or of the input alone. */
static double reference_pool_divisor(const tn_pool2d_attributes *a, const pool_window *w, const int64_t *at) {
  double n = 1;
  for (int32_t d = 0; d < 2; d++) {
    int64_t stride = a->stride.n > 0 ? a->stride.v[d] : a->kernel.v[d];
    int64_t first = at[d] * stride - a->padding.v[d];
    n *= (double)(a->include_pad ? w->padded_stop[d] - first : w->stop[d] - w->start[d]);
  }
  return n;
}

/* Visits the windows of y over x. Forward computes means of x; backward distributes y over x. */
static void reference_pool_average(const tn_reference_call *c, const tn_type *x, const tn_type *y,
                                   bool forward) {
  int64_t index[4];
  for (int64_t i = 0; i < tn_type_count(y); i++) {
    tn_reference_unflatten(y, i, index);
    pool_window w = reference_window_at(c->attributes, x, index[2], index[3]);
    double n = reference_pool_divisor(c->attributes, &w, index + 2);
    int64_t plane = (index[0] * x->dims[1] + index[1]) * x->dims[2] * x->dims[3];
    for (int64_t h = w.start[0]; h < w.stop[0]; h++)
      for (int64_t v = w.start[1]; v < w.stop[1]; v++) {
        int64_t at = plane + h * x->dims[3] + v;
        if (forward)
          c->y[0][i] += c->x[0][at] / n;
        else
          c->y[0][at] += c->x[0][i] / n;
      }
  }
}
static void reference_avg_pool2d(const tn_reference_call *c) {
  reference_pool_average(c, c->in[0], c->out[0], true);
}
static void reference_avg_pool2d_grad(const tn_reference_call *c) {
  reference_pool_average(c, c->out[0], c->in[0], false);
}

const tn_reference_op tn_reference_reduce_ops[] = {
    TN_REFERENCE_OP(reduce_sum), TN_REFERENCE_OP(reduce_max),      TN_REFERENCE_OP(reduce_min),
    TN_REFERENCE_OP(argmax),     TN_REFERENCE_OP(max_pool2d),      TN_REFERENCE_OP(max_pool2d_grad),
    TN_REFERENCE_OP(avg_pool2d), TN_REFERENCE_OP(avg_pool2d_grad), {NULL, NULL}};
