/* core/conformance/cases/product.c: cases of matmul, convolution, attention, rotary and embedding. */
#include <string.h>

#include "core/conformance/cases/cases.h"

/* ---- matmul ---- */

static tn_type draw_matmul_type(const tn_type *batch, int64_t rows, int64_t columns, bool transposed) {
  tn_type t = *batch;
  t.dims[t.rank++] = transposed ? columns : rows;
  t.dims[t.rank++] = transposed ? rows : columns;
  return t;
}

static tn_val product_case_matmul(tn_draw *d, const tn_case *c) {
  tn_type wide = tn_draw_type(d, d->dtype, 0, d->large ? 1 : 3, true), narrow = tn_draw_narrower(d, &wide);
  bool swap = tn_draw_flag(d), ta = tn_draw_flag(d), tb = tn_draw_flag(d);
  int64_t m = tn_draw_size(d, 0, 5), n = tn_draw_size(d, 1, 5), k = tn_draw_size(d, 0, 6);
  tn_type x = draw_matmul_type(swap ? &narrow : &wide, m, k, ta),
          y = draw_matmul_type(swap ? &wide : &narrow, k, n, tb);
  tn_val a = tn_draw_tensor(d, x, c->fill), b = tn_draw_tensor(d, y, c->fill);
  tn_val bias = tn_draw_flag(d) ? tn_draw_tensor(d, tn_draw_type_of(d->dtype, 1, &n), c->fill) : 0;
  return tn_matmul(d->b, a, b, bias, ta, tb, TN_MATH_FULL);
}

/* ---- convolution ---- */

typedef struct conv_case {
  int32_t rank;
  int64_t stride[3], padding[6], dilation[3], output_padding[3], groups;
  bool uneven; /* the padding has entries for both sides */
  tn_type x, w, y;
} conv_case;

/* A 3x3 kernel with stride, padding and dilation 1, to which Winograd's algorithm applies. */
static void set_winograd(conv_case *v, int32_t i) { v->stride[i] = v->padding[i] = v->dilation[i] = 1; }

/* Spatial dimension i. The rest of x behind the last window is what a transposed convolution adds to it. */
static void draw_conv_axis(tn_draw *d, conv_case *v, int32_t i, bool common) {
  int64_t kernel = common ? 3 : tn_draw_between(d, 1, 3);
  v->stride[i] = tn_draw_between(d, 1, 3);
  v->padding[i] = tn_draw_between(d, 0, 3);
  v->dilation[i] = tn_draw_between(d, 1, 3);
  if (common) set_winograd(v, i);
  int64_t behind = v->padding[v->rank + i] = v->uneven ? tn_draw_between(d, 0, 3) : v->padding[i];
  int64_t reach = (kernel - 1) * v->dilation[i] + 1, least = reach - v->padding[i] - behind;
  int64_t most = v->rank == 3 ? 6 : d->large ? 20 : 8;
  v->x.dims[2 + i] = tn_draw_between(d, least < 1 ? 1 : least, most < least ? least : most);
  v->w.dims[2 + i] = kernel;
  int64_t room = v->x.dims[2 + i] + v->padding[i] + behind - reach;
  v->y.dims[2 + i] = room / v->stride[i] + 1;
  v->output_padding[i] = room % v->stride[i];
}

static conv_case draw_conv(tn_draw *d, const char *op) {
  int64_t in = tn_draw_channels(d, 1, 2), out = tn_draw_channels(d, 1, 2), batch = tn_draw_between(d, 0, 2);
  bool common = d->large && tn_draw_flag(d);
  conv_case v = {.groups = in * out > 256 ? 1 : tn_draw_between(d, 1, 3),
                 .rank = tn_case_spatial(op),
                 .uneven = tn_draw_between(d, 0, 3) == 0};
  v.x = tn_draw_type_of(d->dtype, 2 + v.rank, (int64_t[5]){batch, in * v.groups});
  v.w = tn_draw_type_of(d->dtype, 2 + v.rank, (int64_t[5]){out * v.groups, in});
  v.y = tn_draw_type_of(d->dtype, 2 + v.rank, (int64_t[5]){batch, out * v.groups});
  for (int32_t i = 0; i < v.rank; i++) draw_conv_axis(d, &v, i, common);
  return v;
}

static tn_val emit_conv(tn_draw *d, const char *op, tn_val x, tn_val y, tn_val bias, const conv_case *v,
                        const tn_type *dims) {
  tn_draw_begin(d, op, 2, (tn_val[]){x, y});
  if (bias != 0) tn_op_arg(d->b, bias);
  tn_op_set_ints(d->b, "stride", v->rank, v->stride);
  tn_op_set_ints(d->b, "padding", v->uneven ? 2 * v->rank : v->rank, v->padding);
  tn_op_set_ints(d->b, "dilation", v->rank, v->dilation);
  tn_op_set_int(d->b, "groups", v->groups);
  if (dims != NULL) tn_op_set_ints(d->b, "dims", dims->rank, dims->dims);
  if (strstr(op, "transpose") != NULL) tn_op_set_ints(d->b, "output_padding", v->rank, v->output_padding);
  return tn_op_end(d->b);
}

static tn_val draw_conv_bias(tn_draw *d, int64_t channels, int32_t fill) {
  return tn_draw_flag(d) ? tn_draw_tensor(d, tn_draw_type_of(d->dtype, 1, &channels), fill) : 0;
}

static tn_val product_case_conv(tn_draw *d, const tn_case *c) {
  conv_case v = draw_conv(d, c->op);
  tn_val x = tn_draw_tensor(d, v.x, c->fill), w = tn_draw_tensor(d, v.w, c->fill);
  return emit_conv(d, c->op, x, w, draw_conv_bias(d, v.w.dims[0], c->fill), &v, NULL);
}

static tn_val product_case_conv_transpose(tn_draw *d, const tn_case *c) {
  conv_case v = draw_conv(d, c->op);
  tn_val x = tn_draw_tensor(d, v.y, c->fill), w = tn_draw_tensor(d, v.w, c->fill);
  return emit_conv(d, c->op, x, w, draw_conv_bias(d, v.x.dims[1], c->fill), &v, NULL);
}

static tn_val product_case_conv_grad_input(tn_draw *d, const tn_case *c) {
  conv_case v = draw_conv(d, c->op);
  tn_val dy = tn_draw_tensor(d, v.y, c->fill), w = tn_draw_tensor(d, v.w, c->fill);
  return emit_conv(d, c->op, dy, w, 0, &v, &v.x);
}

static tn_val product_case_conv_grad_weight(tn_draw *d, const tn_case *c) {
  conv_case v = draw_conv(d, c->op);
  tn_val x = tn_draw_tensor(d, v.x, c->fill), dy = tn_draw_tensor(d, v.y, c->fill);
  return emit_conv(d, c->op, x, dy, 0, &v, &v.w);
}

/* ---- attention ---- */

typedef struct attention_case {
  tn_val q, k, v;
  int64_t heads; /* of [batch, tokens, heads * width]; 0: [batch, heads, tokens, width] */
  bool causal;
  double scale; /* 0: the default of the op */
} attention_case;

static tn_val draw_attention_operand(tn_draw *d, bool side_by_side, int64_t batch, int64_t heads,
                                     int64_t tokens, int64_t width, int32_t fill) {
  const int64_t apart[] = {batch, heads, tokens, width}, together[] = {batch, tokens, heads * width};
  return tn_draw_tensor(d, tn_draw_type_of(d->dtype, side_by_side ? 3 : 4, side_by_side ? together : apart),
                        fill);
}

static attention_case draw_attention(tn_draw *d, int32_t fill) {
  int64_t batch = tn_draw_between(d, 0, 2), heads = tn_draw_between(d, 1, 3), queries = tn_draw_size(d, 0, 5);
  int64_t keys = queries + tn_draw_size(d, queries < 1, 4), width = tn_draw_size(d, 1, 4);
  attention_case t = {.causal = tn_draw_flag(d)};
  bool side_by_side = tn_draw_flag(d);
  if (side_by_side) t.heads = heads;
  if (!t.causal) keys = tn_draw_size(d, 1, 7);
  t.q = draw_attention_operand(d, side_by_side, batch, heads, queries, width, fill);
  t.k = draw_attention_operand(d, side_by_side, batch, heads, keys, width, fill);
  t.v = draw_attention_operand(d, side_by_side, batch, heads, keys, tn_draw_size(d, 1, 4), fill);
  if (tn_draw_flag(d)) t.scale = tn_rng_between(&d->rng, 0.1, 1.5);
  return t;
}

static tn_val emit_attention(tn_draw *d, const char *op, const attention_case *t, const tn_val *more,
                             int32_t n_more) {
  tn_draw_begin(d, op, 3, (tn_val[]){t->q, t->k, t->v});
  for (int32_t i = 0; i < n_more; i++) tn_op_arg(d->b, more[i]);
  tn_op_set_int(d->b, "causal", t->causal);
  tn_op_set_int(d->b, "heads", t->heads);
  if (t->scale != 0) tn_op_set_float(d->b, "scale", t->scale);
  return tn_op_end(d->b);
}

static tn_val product_case_attention(tn_draw *d, const tn_case *c) {
  attention_case t = draw_attention(d, c->fill);
  return emit_attention(d, c->op, &t, NULL, 0);
}

/* On the results of attention: other values would not be probabilities. */
static tn_val product_case_attention_grad(tn_draw *d, const tn_case *c) {
  attention_case t = draw_attention(d, c->fill);
  tn_val y = emit_attention(d, "attention", &t, NULL, 0), lse = tn_op_result(d->b, y, 1);
  tn_val dy = tn_draw_tensor(d, *tn_val_type(d->b, y), c->fill);
  return emit_attention(d, c->op, &t, (tn_val[]){y, lse, dy}, 3);
}

/* Operands q, k, v, keys and values: the caches have room for the tokens and those before them. */
static tn_val product_case_cached_attention(tn_draw *d, const tn_case *c) {
  int64_t batch = tn_draw_between(d, 0, 2), heads = tn_draw_between(d, 1, 3), tokens = tn_draw_size(d, 0, 4);
  int64_t before = tn_draw_size(d, tokens < 1, 5), room = before + tokens + tn_draw_size(d, 0, 3);
  int64_t width = tn_draw_channels(d, 1, 4), values = tn_draw_channels(d, 1, 4);
  bool side_by_side = tn_draw_flag(d);
  tn_val operands[5];
  for (int32_t i = 0; i < 5; i++)
    operands[i] = draw_attention_operand(d, side_by_side, batch, heads, i < 3 ? tokens : room,
                                         i == 2 || i == 4 ? values : width, c->fill);
  tn_val position = tn_draw_integers(d, tn_draw_type_of(TN_I64, 0, NULL), 0, before + 1);
  double scale = tn_draw_flag(d) ? tn_rng_between(&d->rng, 0.1, 1.5) : 0;
  return tn_cached_attention(d->b, operands[0], operands[1], operands[2], operands[3], operands[4], position,
                             scale, TN_MATH_FULL, side_by_side ? heads : 0);
}

/* The types of masks: bool, or floats that are added; some dimensions are 1. */
static tn_val draw_attention_mask(tn_draw *d, int64_t batch, int64_t heads, int64_t queries, int64_t keys) {
  tn_type t =
      tn_draw_type_of(tn_draw_flag(d) ? TN_BOOL : d->dtype, 4, (int64_t[]){batch, heads, queries, keys});
  for (int32_t i = 0; i < 3; i++)
    if (tn_draw_flag(d)) t.dims[i] = 1;
  return tn_draw_tensor(d, t, t.dtype == TN_BOOL ? TN_FILL_BOOL : TN_FILL_ANY);
}

static tn_val product_case_general_attention(tn_draw *d, const tn_case *c) {
  int64_t batch = tn_draw_between(d, 1, 2), heads = tn_draw_between(d, 1, 3), queries = tn_draw_size(d, 1, 5);
  int64_t keys = queries + tn_draw_size(d, 0, 4), width = tn_draw_size(d, 1, 4);
  bool side_by_side = tn_draw_flag(d);
  tn_val operands[4] = {0};
  for (int32_t i = 0; i < 3; i++)
    operands[i] =
        draw_attention_operand(d, side_by_side, batch, heads, i == 0 ? queries : keys, width, c->fill);
  if (tn_draw_flag(d)) operands[3] = draw_attention_mask(d, batch, heads, queries, keys);
  tn_draw_begin(d, c->op, 4, operands);
  tn_op_set_int(d->b, "causal", tn_draw_flag(d));
  tn_op_set_int(d->b, "heads", side_by_side ? heads : 0);
  tn_op_set_int(d->b, "window", tn_draw_flag(d) ? tn_draw_between(d, 1, 4) : 0);
  tn_op_set_float(d->b, "softcap", tn_draw_flag(d) ? tn_rng_between(&d->rng, 0.5, 3) : 0);
  tn_op_set_int(d->b, "alibi", tn_draw_flag(d));
  return tn_op_end(d->b);
}

static tn_val product_case_rotary(tn_draw *d, const tn_case *c) {
  int64_t heads = tn_draw_between(d, 1, 3), pairs = tn_draw_size(d, 1, 4);
  const int64_t dims[] = {tn_draw_between(d, 0, 2), tn_draw_size(d, 0, 5), 2 * pairs * heads};
  tn_val x = tn_draw_tensor(d, tn_draw_type_of(d->dtype, 3, dims), c->fill);
  tn_val start = tn_draw_flag(d) ? tn_draw_integers(d, tn_draw_type_of(TN_I64, 0, NULL), 0, 9) : 0;
  double base = tn_rng_between(&d->rng, 2, 20000);
  return tn_rotary(d->b, x, start, heads, base, tn_draw_flag(d), tn_draw_flag(d));
}

/* ---- embedding ---- */

static tn_val product_case_embedding(tn_draw *d, const tn_case *c) {
  bool backward = strcmp(c->op, "embedding_grad") == 0;
  int64_t rows = tn_draw_size(d, 1, 6), width = tn_draw_size(d, 1, 4);
  tn_type ids = tn_draw_type(d, tn_draw_flag(d) ? TN_I64 : TN_I32, 0, 3, true), dy = ids;
  dy.dtype = d->dtype;
  dy.dims[dy.rank++] = width;
  tn_val i = tn_draw_integers(d, ids, 0, rows);
  tn_val v =
      tn_draw_tensor(d, backward ? dy : tn_draw_type_of(d->dtype, 2, (int64_t[]){rows, width}), c->fill);
  tn_draw_begin(d, c->op, 2, (tn_val[]){i, v});
  if (backward) tn_op_set_int(d->b, "rows", rows);
  return tn_op_end(d->b);
}

const tn_case tn_product_cases[] = {
    {"matmul", product_case_matmul, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"conv1d", product_case_conv, TN_FILL_ANY, TN_CASE_FLOATS},
    {"conv2d", product_case_conv, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"conv2d_grad_input", product_case_conv_grad_input, TN_FILL_ANY, TN_CASE_FLOATS},
    {"conv2d_grad_weight", product_case_conv_grad_weight, TN_FILL_ANY, TN_CASE_FLOATS},
    {"conv3d", product_case_conv, TN_FILL_ANY, TN_CASE_FLOATS},
    {"conv3d_grad_input", product_case_conv_grad_input, TN_FILL_ANY, TN_CASE_FLOATS},
    {"conv3d_grad_weight", product_case_conv_grad_weight, TN_FILL_ANY, TN_CASE_FLOATS},
    {"conv_transpose1d", product_case_conv_transpose, TN_FILL_ANY, TN_CASE_FLOATS},
    {"conv_transpose2d", product_case_conv_transpose, TN_FILL_ANY, TN_CASE_FLOATS},
    {"conv_transpose3d", product_case_conv_transpose, TN_FILL_ANY, TN_CASE_FLOATS},
    {"attention", product_case_attention, TN_FILL_ANY, TN_CASE_FLOATS, .masked = true},
    {"attention_grad", product_case_attention_grad, TN_FILL_ANY, TN_CASE_FLOATS, .wide_gradient = true,
     .masked = true},
    {"general_attention", product_case_general_attention, TN_FILL_ANY, TN_CASE_FLOATS, .wide_gradient = true,
     .masked = true},
    {"rotary", product_case_rotary, TN_FILL_ANY, TN_CASE_FLOATS},
    {"cached_attention", product_case_cached_attention, TN_FILL_ANY, TN_CASE_FLOATS, .wide_gradient = true,
     .masked = true},
    {"embedding", product_case_embedding, TN_FILL_ANY, TN_CASE_FLOATS},
    {"embedding_grad", product_case_embedding, TN_FILL_ANY, TN_CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
