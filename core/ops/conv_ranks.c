/* core/ops/conv_ranks.c: convolutions over one and three dimensions in terms of two. One dimension is a row
 * of height 1, which is a view. Three dimensions: the taps along the depth become channels, as the patches of
 * im2col do along all dimensions, and the positions along the depth become entries of the batch:
 *
 *     x (N, C, D, H, W) -> (N D', C d, H, W),    w (O, C / groups, d, h, w) -> (O, C / groups d, h, w)  */
#include "core/ops/conv.h"

/* Attributes of two dimensions, with room for their lists. */
typedef struct conv_plane {
  int64_t stride[2], padding[4], dilation[2];
  tn_conv2d_attributes a;
} conv_plane;

/* The last dimensions of `a`; height 1 in front of a single one. */
static const tn_conv2d_attributes *conv_plane_of(const tn_conv2d_attributes *a, conv_plane *p) {
  for (int32_t i = 0; i < 2; i++) {
    int32_t from = (int32_t)a->stride.n - 2 + i;
    p->stride[i] = from < 0 ? 1 : a->stride.v[from];
    p->dilation[i] = from < 0 ? 1 : a->dilation.v[from];
    p->padding[i] = from < 0 ? 0 : a->padding.v[from];
    p->padding[2 + i] = from < 0 ? 0 : tn_conv_behind(a, from);
  }
  p->a = (tn_conv2d_attributes){.stride = {2, p->stride},
                                .padding = {4, p->padding},
                                .dilation = {2, p->dilation},
                                .groups = a->groups,
                                .math = a->math};
  return &p->a;
}

/* ---- one dimension ---- */

static tn_val conv_row_to_plane(tn_build *b, tn_val v) {
  tn_type t = tn_ops_type(b, v);
  return tn_reshape(b, v, 4, (int64_t[]){t.dims[0], t.dims[1], 1, t.dims[2]});
}
static tn_val conv_plane_to_row(tn_build *b, tn_val v) {
  tn_type t = tn_ops_type(b, v);
  return tn_reshape(b, v, 3, (int64_t[]){t.dims[0], t.dims[1], t.dims[3]});
}

tn_status tn_conv1d_decompose(tn_build *b, const void *attributes) {
  conv_plane plane;
  const tn_conv2d_attributes *a = conv_plane_of(attributes, &plane);
  tn_val x = conv_row_to_plane(b, tn_build_in(b, 0)), w = conv_row_to_plane(b, tn_build_in(b, 1));
  tn_build_yield(b, 0, conv_plane_to_row(b, tn_conv_emit(b, "", x, w, tn_build_in(b, 2), a, NULL)));
  return TN_OK;
}

/* ---- three dimensions ---- */

/* The window over the planes, and the extents along the depth. */
typedef struct conv_depth {
  const tn_conv2d_attributes *whole, *a;
  conv_plane plane;
  int64_t taps, in, out; /* of the kernel, x and y */
} conv_depth;

static void conv_depth_of(const void *attributes, int64_t taps, int64_t in, int64_t out, conv_depth *d) {
  d->whole = attributes;
  d->a = conv_plane_of(attributes, &d->plane);
  d->taps = taps;
  d->in = in;
  d->out = out;
}

static int64_t conv_depth_low(const conv_depth *d) { return d->whole->padding.v[0]; }
static int64_t conv_depth_padded(const conv_depth *d) {
  return d->in + d->whole->padding.v[0] + tn_conv_behind(d->whole, 0);
}

/* Swaps channels and depth: (N, C, D, H, W) and (N, D, C, H, W). */
static tn_val conv_swap_depth(tn_build *b, tn_val v) {
  return tn_transpose(b, v, 5, (int64_t[]){0, 2, 1, 3, 4});
}

static tn_val conv_pad_depth(tn_build *b, tn_val v, int64_t low, int64_t high, int64_t inner) {
  int64_t lows[5] = {0, low}, highs[5] = {0, high}, inners[5] = {0, inner};
  if (low == 0 && high == 0 && inner == 0) return v;
  return tn_pad(b, v, 5, lows, 5, highs, 5, inners);
}

/* Every stride-th position of x (N, D, C, H, W) that tap k of the kernel meets. */
static tn_val conv_tap_of_depth(tn_build *b, const conv_depth *d, tn_val x, int64_t k) {
  int64_t step = d->whole->stride.v[0], at = k * d->whole->dilation.v[0];
  tn_type t = tn_ops_type(b, x);
  int64_t starts[5] = {0, at}, stops[5], steps[5] = {1, step, 1, 1, 1};
  memcpy(stops, t.dims, sizeof stops);
  stops[1] = at + (d->out - 1) * step + 1;
  return tn_slice(b, x, 5, starts, 5, stops, step > 1 ? 5 : 0, steps);
}

enum { CONV_JOINED = 16 /* operands of one concat */ };

/* x (N, C, D, H, W) as (N D', C d, H, W). */
static tn_val conv_stack_depth(tn_build *b, const conv_depth *d, tn_val x) {
  tn_type t = tn_ops_type(b, x);
  const int64_t tap[] = {t.dims[0], d->out, t.dims[1], 1, t.dims[3], t.dims[4]};
  const int64_t stacked[] = {t.dims[0] * d->out, t.dims[1] * d->taps, t.dims[3], t.dims[4]};
  int64_t low = conv_depth_low(d), high = tn_conv_behind(d->whole, 0);
  tn_val padded = conv_pad_depth(b, conv_swap_depth(b, x), low, high, 0), taps[CONV_JOINED];
  int32_t n = 0;
  for (int64_t k = 0; k < d->taps; k++) {
    if (n == CONV_JOINED) {
      taps[0] = tn_concat(b, n, taps, 3);
      n = 1;
    }
    taps[n++] = tn_reshape(b, conv_tap_of_depth(b, d, padded, k), 6, tap);
  }
  return tn_reshape(b, n == 1 ? taps[0] : tn_concat(b, n, taps, 3), 4, stacked);
}

/* The transpose of conv_stack_depth: sums what the taps have, in f32 at least. */
static tn_val conv_unstack_depth(tn_build *b, const conv_depth *d, tn_val stacked, const tn_type *x) {
  const int64_t taps[] = {x->dims[0], d->out, x->dims[1], d->taps, x->dims[3], x->dims[4]};
  const int64_t tap[] = {x->dims[0], d->out, x->dims[1], x->dims[3], x->dims[4]};
  int64_t step = d->whole->stride.v[0], reach = (d->out - 1) * step + 1, low = conv_depth_low(d);
  tn_val sum = 0, wide = tn_ops_wide(b, tn_reshape(b, stacked, 6, taps));
  for (int64_t k = 0; k < d->taps; k++) {
    int64_t at = k * d->whole->dilation.v[0];
    tn_val one = tn_reshape(b, tn_slice_axis(b, wide, 3, k, k + 1), 5, tap);
    sum = tn_ops_sum(b, sum, conv_pad_depth(b, one, at, conv_depth_padded(d) - at - reach, step - 1));
  }
  tn_val inside = tn_slice_axis(b, sum, 1, low, low + d->in);
  return tn_to_dtype(b, conv_swap_depth(b, inside), x->dtype);
}

/* y (N, O, D', H', W') as (N D', O, H', W'), and back. */
static tn_val conv_fold_depth(tn_build *b, tn_val y) {
  tn_type t = tn_ops_type(b, y);
  const int64_t dims[] = {t.dims[0] * t.dims[2], t.dims[1], t.dims[3], t.dims[4]};
  return tn_reshape(b, conv_swap_depth(b, y), 4, dims);
}
static tn_val conv_unfold_depth(tn_build *b, tn_val y, int64_t batch, int64_t depth) {
  tn_type t = tn_ops_type(b, y);
  const int64_t dims[] = {batch, depth, t.dims[1], t.dims[2], t.dims[3]};
  return conv_swap_depth(b, tn_reshape(b, y, 5, dims));
}

static tn_val conv_fold_weight(tn_build *b, tn_val w) {
  tn_type t = tn_ops_type(b, w);
  const int64_t dims[] = {t.dims[0], t.dims[1] * t.dims[2], t.dims[3], t.dims[4]};
  return tn_reshape(b, w, 4, dims);
}

tn_status tn_conv3d_decompose(tn_build *b, const void *attributes) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0)), w = tn_ops_type(b, tn_build_in(b, 1));
  const tn_conv2d_attributes *a = attributes;
  conv_depth d;
  conv_depth_of(a, w.dims[2], x.dims[2], 0, &d);
  d.out = (conv_depth_padded(&d) - (d.taps - 1) * a->dilation.v[0] - 1) / a->stride.v[0] + 1;
  tn_val planes = conv_stack_depth(b, &d, tn_build_in(b, 0));
  tn_val y =
      tn_conv_emit(b, "", planes, conv_fold_weight(b, tn_build_in(b, 1)), tn_build_in(b, 2), d.a, NULL);
  tn_build_yield(b, 0, conv_unfold_depth(b, y, x.dims[0], d.out));
  return TN_OK;
}

tn_status tn_conv3d_grad_input_decompose(tn_build *b, const void *attributes) {
  const tn_conv2d_attributes *a = attributes;
  tn_type dy = tn_ops_type(b, tn_build_in(b, 0)), w = tn_ops_type(b, tn_build_in(b, 1)),
          dx = {dy.dtype, 5, {0}};
  conv_depth d;
  memcpy(dx.dims, a->dims.v, 5 * sizeof *dx.dims);
  conv_depth_of(a, w.dims[2], dx.dims[2], dy.dims[2], &d);
  const tn_type planes = {dy.dtype, 4, {dx.dims[0] * d.out, dx.dims[1] * d.taps, dx.dims[3], dx.dims[4]}};
  tn_val folded = conv_fold_depth(b, tn_build_in(b, 0)), kernel = conv_fold_weight(b, tn_build_in(b, 1));
  tn_val stacked = tn_conv_emit(b, "_grad_input", folded, kernel, 0, d.a, &planes);
  tn_build_yield(b, 0, conv_unstack_depth(b, &d, stacked, &dx));
  return TN_OK;
}

tn_status tn_conv3d_grad_weight_decompose(tn_build *b, const void *attributes) {
  const tn_conv2d_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0)), dy = tn_ops_type(b, tn_build_in(b, 1));
  const int64_t *dw = a->dims.v;
  const tn_type kernel = {x.dtype, 4, {dw[0], dw[1] * dw[2], dw[3], dw[4]}};
  conv_depth d;
  conv_depth_of(a, dw[2], x.dims[2], dy.dims[2], &d);
  tn_val planes = conv_stack_depth(b, &d, tn_build_in(b, 0)), folded = conv_fold_depth(b, tn_build_in(b, 1));
  tn_val y = tn_conv_emit(b, "_grad_weight", planes, folded, 0, d.a, &kernel);
  tn_build_yield(b, 0, tn_reshape(b, y, 5, dw));
  return TN_OK;
}

/* ---- transposed convolution: the gradient of a convolution by its input ---- */

typedef struct conv_transpose_attributes {
  tn_conv2d_attributes conv;
  tn_ints output_padding;
} conv_transpose_attributes;

/* The size of y for which the convolution has `size` positions. */
static tn_status conv_transposed_size(tn_infer *n, const conv_transpose_attributes *t, int32_t i,
                                      int64_t size, int64_t kernel, int64_t *found) {
  const tn_conv2d_attributes *a = &t->conv;
  int64_t more = t->output_padding.v[i], steps, reach, low = a->padding.v[i], high = tn_conv_behind(a, i);
  if (more >= a->stride.v[i])
    return tn_fail(n, TN_EINVAL, "output_padding",
                   "entry %d of output_padding is %lld, expected less than the stride %lld", (int)i,
                   (long long)more, (long long)a->stride.v[i]);
  if (size < 1 || kernel < 1 || __builtin_mul_overflow(size - 1, a->stride.v[i], &steps) ||
      __builtin_mul_overflow(kernel - 1, a->dilation.v[i], &reach) ||
      __builtin_add_overflow(steps, reach, &steps) || __builtin_add_overflow(steps, more + 1, &steps) ||
      low >= steps || high >= steps - low)
    return tn_fail(
        n, TN_EINVAL, NULL,
        "spatial dimension %d of the result has no size that can be counted: x has %lld, the kernel "
        "%lld, the padding %lld and %lld",
        (int)i, (long long)size, (long long)kernel, (long long)low, (long long)high);
  *found = steps - low - high;
  return TN_OK;
}

/* Sliding w over y, as the convolution does of which this is the gradient, checks the channels. */
static tn_status conv_transpose_infer(tn_infer *n) {
  const conv_transpose_attributes *t = n->node.attributes;
  const tn_conv2d_attributes *a = &t->conv;
  const tn_type *x = n->node.in[0], *w = n->node.in[1];
  int32_t rank = tn_ops_spatial(n);
  tn_type back, *y = &n->node.out[0];
  TN_TRY(tn_conv_check_window(n, a, rank));
  TN_TRY(tn_ops_check_list(n, "output_padding", &t->output_padding, rank, 0));
  TN_TRY(tn_ops_check_rank(n, "x", x, 2 + rank, tn_ops_image_dims(rank)));
  TN_TRY(tn_ops_check_rank(n, "w", w, 2 + rank, "input channels, output channels / groups, then the kernel"));
  *y = *x;
  if (__builtin_mul_overflow(w->dims[1], a->groups, &y->dims[1]))
    return tn_fail(n, TN_EINVAL, "groups", "the result has more channels than can be counted");
  for (int32_t i = 0; i < rank; i++)
    TN_TRY(conv_transposed_size(n, t, i, x->dims[2 + i], w->dims[2 + i], &y->dims[2 + i]));
  TN_TRY(tn_conv_slide(n, a, rank, y, w, &back));
  TN_TRY(tn_ops_check_dims_of(n, "x", x, &back));
  return tn_conv_check_bias(n, n->node.in[2], y->dims[1]);
}

static tn_type conv_transposed_type(tn_build *b, const conv_transpose_attributes *t, tn_val x, tn_val w) {
  const tn_conv2d_attributes *a = &t->conv;
  tn_type y = tn_ops_type(b, x), kernel = tn_ops_type(b, w);
  y.dims[1] = kernel.dims[1] * a->groups;
  for (int32_t i = 0; i < a->stride.n; i++)
    y.dims[2 + i] = (y.dims[2 + i] - 1) * a->stride.v[i] - a->padding.v[i] - tn_conv_behind(a, i) +
                    (kernel.dims[2 + i] - 1) * a->dilation.v[i] + t->output_padding.v[i] + 1;
  return y;
}

static tn_status conv_transpose_decompose(tn_build *b, const void *attributes) {
  const conv_transpose_attributes *t = attributes;
  const tn_conv2d_attributes *a = &t->conv;
  conv_plane plane;
  tn_val x = tn_build_in(b, 0), w = tn_build_in(b, 1), bias = tn_build_in(b, 2);
  bool row = a->stride.n == 1;
  tn_type y = conv_transposed_type(b, t, x, w);
  if (row) {
    a = conv_plane_of(a, &plane);
    x = conv_row_to_plane(b, x);
    w = conv_row_to_plane(b, w);
    y = (tn_type){y.dtype, 4, {y.dims[0], y.dims[1], 1, y.dims[2]}};
  }
  tn_val to = tn_conv_emit(b, "_grad_input", x, w, 0, a, &y);
  if (bias != 0) to = tn_add(b, to, tn_ops_channels(b, bias, y.rank));
  tn_build_yield(b, 0, row ? conv_plane_to_row(b, to) : to);
  return TN_OK;
}

static void conv_transpose_cost(const tn_node *n, tn_cost *cost) {
  double bias = n->in[2] != NULL ? tn_ops_count(&n->out[0]) : 0;
  tn_ops_cost(n, cost, tn_conv_flops(n->in[0], n->in[1]) + bias);
}

#define CONV_TRANSPOSE_OPTIONS(axes, ones, zeros)                                                            \
  {                                                                                                          \
    TN_CONV_OPTIONS(axes, ones, zeros),                                                                      \
        TN_OPT(conv_transpose_attributes, output_padding, TN_OPT_INTS, zeros, NULL,                          \
               "added to the size of the result, less than stride: " axes),                                  \
        TN_OPT_END                                                                                           \
  }
static const tn_option conv_transpose1d_options[] = TN_CONV_OF_1(CONV_TRANSPOSE_OPTIONS);
static const tn_option conv_transpose2d_options[] = TN_CONV_OF_2(CONV_TRANSPOSE_OPTIONS);
static const tn_option conv_transpose3d_options[] = TN_CONV_OF_3(CONV_TRANSPOSE_OPTIONS);

#define CONV_TRANSPOSE(name, help)                                                                           \
  const tn_op tn_op_##name = {                                                                               \
      .item = TN_ITEM(tn_op, TN_OP, #name, help, conv_transpose_attributes, name##_options),                 \
      .schema = "(x:T, w:T, bias?:T) -> (y:T)" TN_OPS_FLOATS,                                                \
      .op_class = TN_CLASS_MATMUL,                                                                           \
      .infer = conv_transpose_infer,                                                                         \
      .decompose = conv_transpose_decompose,                                                                 \
      .cost = conv_transpose_cost,                                                                           \
      .notes = "The gradient by its input of the convolution with the same attributes. Dumoulin and Visin, " \
               "\"A guide to convolution arithmetic for deep learning\", 2016, section 4.",                  \
  };

CONV_TRANSPOSE(conv_transpose1d, "transposed convolution of (N, C, W) with (C, O / groups, w)")
CONV_TRANSPOSE(conv_transpose2d, "transposed convolution of (N, C, H, W) with (C, O / groups, h, w)")
CONV_TRANSPOSE(conv_transpose3d, "transposed convolution of (N, C, D, H, W) with (C, O / groups, d, h, w)")
