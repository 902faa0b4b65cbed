/* core/ops/conv_window.c: the window of a convolution over one to three spatial dimensions: checks, the size
 * of the result, the number of products, and the op with the same window. */
#include <stdio.h>

#include "core/ops/conv.h"

/* ---- shapes ---- */

tn_status tn_conv_check_window(tn_infer *n, const tn_conv2d_attributes *a, int32_t rank) {
  int64_t paddings = a->padding.n == 2 * rank ? 2 * rank : rank;
  TN_TRY(tn_ops_check_list(n, "stride", &a->stride, rank, 1));
  TN_TRY(tn_ops_check_list(n, "padding", &a->padding, paddings, 0));
  return tn_ops_check_list(n, "dilation", &a->dilation, rank, 1);
}

static tn_status conv_check_ranks(tn_infer *n, int32_t rank, const tn_type *x, const tn_type *w) {
  static const char *const of_w[] = {"output channels, input channels / groups, width",
                                     "output channels, input channels / groups, height, width",
                                     "output channels, input channels / groups, depth, height, width"};
  TN_TRY(tn_ops_check_rank(n, "x", x, 2 + rank, tn_ops_image_dims(rank)));
  return tn_ops_check_rank(n, "w", w, 2 + rank, of_w[rank - 1]);
}

static tn_status conv_check_groups(tn_infer *n, int64_t groups, const tn_type *x, const tn_type *w) {
  if (x->dims[1] % groups != 0 || w->dims[0] % groups != 0)
    return tn_fail(n, TN_EINVAL, "groups",
                   "%lld groups must divide the %lld input and the %lld output channels", (long long)groups,
                   (long long)x->dims[1], (long long)w->dims[0]);
  if (w->dims[1] == x->dims[1] / groups) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL,
                 "w is %s, expected %lld as its second dimension: %lld input channels in %lld %s",
                 tn_ops_text(w).v, (long long)(x->dims[1] / groups), (long long)x->dims[1], (long long)groups,
                 groups == 1 ? "group" : "groups");
}

/* The number of positions of the window along spatial dimension i. */
static tn_status conv_count_positions(tn_infer *n, const tn_conv2d_attributes *a, int32_t i, int64_t size,
                                      int64_t kernel, int64_t *count) {
  int64_t low = a->padding.v[i], high = tn_conv_behind(a, i), padded, reach;
  if (__builtin_mul_overflow(kernel - 1, a->dilation.v[i], &reach) ||
      __builtin_add_overflow(size, low, &padded) || __builtin_add_overflow(padded, high, &padded) ||
      reach >= padded)
    return tn_fail(
        n, TN_EINVAL, NULL,
        "the kernel of %lld with dilation %lld is larger than the input's %s of %lld with padding %lld",
        (long long)kernel, (long long)a->dilation.v[i], tn_ops_spatial_name((int32_t)a->stride.n, i),
        (long long)size, (long long)(low > high ? low : high));
  *count = (padded - reach - 1) / a->stride.v[i] + 1;
  return TN_OK;
}

tn_status tn_conv_slide(tn_infer *n, const tn_conv2d_attributes *a, int32_t rank, const tn_type *x,
                        const tn_type *w, tn_type *y) {
  TN_TRY(tn_conv_check_window(n, a, rank));
  TN_TRY(conv_check_ranks(n, rank, x, w));
  TN_TRY(conv_check_groups(n, a->groups, x, w));
  *y = *x;
  y->dims[1] = w->dims[0];
  for (int32_t i = 0; i < rank; i++) {
    int64_t kernel = w->dims[2 + i];
    if (kernel < 1) return tn_fail(n, TN_EINVAL, NULL, "w is %s: an empty kernel", tn_ops_text(w).v);
    TN_TRY(conv_count_positions(n, a, i, x->dims[2 + i], kernel, &y->dims[2 + i]));
  }
  return tn_ops_check_count(n, y);
}

tn_status tn_conv_check_bias(tn_infer *n, const tn_type *bias, int64_t channels) {
  if (bias == NULL || (bias->rank == 1 && bias->dims[0] == channels)) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "bias is %s, expected [%lld], one number for each output channel",
                 tn_ops_text(bias).v, (long long)channels);
}

/* ---- emission ---- */

tn_val tn_conv_emit(tn_build *b, const char *suffix, tn_val x, tn_val w, tn_val z,
                    const tn_conv2d_attributes *a, const tn_type *dims) {
  char op[32];
  snprintf(op, sizeof op, "conv%dd%s", (int)a->stride.n, suffix);
  tn_op_begin(b, op);
  tn_op_arg(b, x);
  tn_op_arg(b, w);
  if (z != 0) tn_op_arg(b, z);
  tn_op_set_ints(b, "stride", a->stride.n, a->stride.v);
  tn_op_set_ints(b, "padding", a->padding.n, a->padding.v);
  tn_op_set_ints(b, "dilation", a->dilation.n, a->dilation.v);
  tn_op_set_int(b, "groups", a->groups);
  tn_op_set_int(b, "math", a->math);
  if (dims != NULL) tn_op_set_ints(b, "dims", dims->rank, dims->dims);
  return tn_op_end(b);
}

/* ---- cost ---- */

/* Every element of y is a sum of C / groups * h * w products, padding included. The gradients compute the
 * same products in another order. */
double tn_conv_flops(const tn_type *y, const tn_type *w) {
  double products = tn_ops_count(y);
  for (int32_t i = 1; i < w->rank; i++) products *= (double)w->dims[i];
  return 2 * products;
}
