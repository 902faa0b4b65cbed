/* Cases of matmul, convolution, attention and embedding. */
#include <string.h>

#include "../cases.h"

/* ---- matmul ---- */

static tn_type matrix(const tn_type *batch, int64_t rows, int64_t columns, bool transposed) {
  tn_type t = *batch;
  t.dims[t.rank++] = transposed ? columns : rows;
  t.dims[t.rank++] = transposed ? rows : columns;
  return t;
}

static tn_val matmul(draw *d, const conformance_case *c) {
  tn_type wide = draw_type(d, d->dtype, 0, d->large ? 1 : 3, true), narrow = draw_narrower(d, &wide);
  bool swap = draw_flag(d), ta = draw_flag(d), tb = draw_flag(d);
  int64_t m = draw_size(d, 0, 5), n = draw_size(d, 1, 5), k = draw_size(d, 0, 6);
  tn_type x = matrix(swap ? &narrow : &wide, m, k, ta), y = matrix(swap ? &wide : &narrow, k, n, tb);
  tn_val a = draw_tensor(d, x, c->fill), b = draw_tensor(d, y, c->fill);
  tn_val bias = draw_flag(d) ? draw_tensor(d, type_of(d->dtype, 1, &n), c->fill) : 0;
  return tn_matmul(d->b, a, b, bias, ta, tb);
}

/* ---- convolution ---- */

typedef struct convolution {
  int64_t stride[2], padding[2], dilation[2], groups;
  tn_type x, w, y;
} convolution;

static convolution draw_convolution(draw *d) {
  convolution v = {.groups = draw_between(d, 1, 3)};
  int64_t in = draw_size(d, 1, 2), out = draw_size(d, 1, 2), batch = draw_between(d, 0, 2);
  v.x = type_of(d->dtype, 4, (int64_t[]){batch, in * v.groups, 0, 0});
  v.w = type_of(d->dtype, 4, (int64_t[]){out * v.groups, in, 0, 0});
  v.y = type_of(d->dtype, 4, (int64_t[]){batch, out * v.groups, 0, 0});
  for (int32_t i = 0; i < 2; i++) {
    int64_t kernel = draw_between(d, 1, 3);
    v.stride[i] = draw_between(d, 1, 3);
    v.padding[i] = draw_between(d, 0, 3);
    v.dilation[i] = draw_between(d, 1, 3);
    int64_t reach = (kernel - 1) * v.dilation[i] + 1, least = reach - 2 * v.padding[i];
    v.x.dims[2 + i] = draw_between(d, least < 1 ? 1 : least, d->large ? 20 : 8);
    v.w.dims[2 + i] = kernel;
    v.y.dims[2 + i] = (v.x.dims[2 + i] + 2 * v.padding[i] - reach) / v.stride[i] + 1;
  }
  return v;
}

static tn_val emit(draw *d, const char *op, tn_val x, tn_val y, tn_val bias, const convolution *v,
                   const tn_type *dims) {
  tn_begin(d->b, op);
  tn_arg(d->b, x);
  tn_arg(d->b, y);
  if (bias != 0) tn_arg(d->b, bias);
  tn_set_ints(d->b, "stride", 2, v->stride);
  tn_set_ints(d->b, "padding", 2, v->padding);
  tn_set_ints(d->b, "dilation", 2, v->dilation);
  tn_set_int(d->b, "groups", v->groups);
  if (dims != NULL) tn_set_ints(d->b, "dims", 4, dims->dims);
  return tn_end(d->b);
}

static tn_val conv2d(draw *d, const conformance_case *c) {
  convolution v = draw_convolution(d);
  tn_val x = draw_tensor(d, v.x, c->fill), w = draw_tensor(d, v.w, c->fill);
  tn_val bias = draw_flag(d) ? draw_tensor(d, type_of(d->dtype, 1, v.w.dims), c->fill) : 0;
  return emit(d, c->op, x, w, bias, &v, NULL);
}

static tn_val conv2d_grad_input(draw *d, const conformance_case *c) {
  convolution v = draw_convolution(d);
  tn_val dy = draw_tensor(d, v.y, c->fill), w = draw_tensor(d, v.w, c->fill);
  return emit(d, c->op, dy, w, 0, &v, &v.x);
}

static tn_val conv2d_grad_weight(draw *d, const conformance_case *c) {
  convolution v = draw_convolution(d);
  tn_val x = draw_tensor(d, v.x, c->fill), dy = draw_tensor(d, v.y, c->fill);
  return emit(d, c->op, x, dy, 0, &v, &v.w);
}

/* ---- attention ---- */

static tn_val attention(draw *d, const conformance_case *c) {
  int64_t batch = draw_between(d, 0, 2), heads = draw_between(d, 1, 3), queries = draw_size(d, 0, 5);
  int64_t keys = queries + draw_size(d, queries < 1, 4), width = draw_size(d, 1, 4);
  bool causal = draw_flag(d);
  if (!causal) keys = draw_size(d, 1, 7);
  tn_val q = draw_tensor(d, type_of(d->dtype, 4, (int64_t[]){batch, heads, queries, width}), c->fill);
  tn_val k = draw_tensor(d, type_of(d->dtype, 4, (int64_t[]){batch, heads, keys, width}), c->fill);
  tn_val v =
      draw_tensor(d, type_of(d->dtype, 4, (int64_t[]){batch, heads, keys, draw_size(d, 1, 4)}), c->fill);
  tn_begin(d->b, c->op);
  tn_arg(d->b, q);
  tn_arg(d->b, k);
  tn_arg(d->b, v);
  tn_set_int(d->b, "causal", causal);
  if (draw_flag(d)) tn_set_float(d->b, "scale", tn_rng_between(&d->rng, 0.1, 1.5));
  return tn_end(d->b);
}

/* ---- embedding ---- */

static tn_val embedding(draw *d, const conformance_case *c) {
  bool backward = strcmp(c->op, "embedding_grad") == 0;
  int64_t rows = draw_size(d, 1, 6), width = draw_size(d, 1, 4);
  tn_type ids = draw_type(d, draw_flag(d) ? TN_I64 : TN_I32, 0, 3, true), dy = ids;
  dy.dtype = d->dtype;
  dy.dims[dy.rank++] = width;
  tn_val i = draw_whole(d, ids, 0, rows);
  tn_val v = draw_tensor(d, backward ? dy : type_of(d->dtype, 2, (int64_t[]){rows, width}), c->fill);
  tn_begin(d->b, c->op);
  tn_arg(d->b, i);
  tn_arg(d->b, v);
  if (backward) tn_set_int(d->b, "rows", rows);
  return tn_end(d->b);
}

const conformance_case product_cases[] = {
    {"matmul", matmul, FILL_ANY, CASE_FLOATS},
    {"conv2d", conv2d, FILL_ANY, CASE_FLOATS},
    {"conv2d_grad_input", conv2d_grad_input, FILL_ANY, CASE_FLOATS},
    {"conv2d_grad_weight", conv2d_grad_weight, FILL_ANY, CASE_FLOATS},
    {"attention", attention, FILL_ANY, CASE_FLOATS},
    {"embedding", embedding, FILL_ANY, CASE_FLOATS},
    {"embedding_grad", embedding, FILL_ANY, CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
