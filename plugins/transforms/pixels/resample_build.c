/* plugins/transforms/pixels/resample_build.c: resample.c as graph: two products with matrices of weights,
 * across and down. The weights are computed in f64 from indices, as fill_weights of resample.c does.
 *
 * Bytes: a weight has 22 bits and a byte 8, more than an f32 holds, so a weight is 64 high + low, and each
 * part has a product of its own. All partial sums are integers below 2^24, so their order does not change the
 * result; the two sums are put together and rounded without leaving this range. */
#include "plugins/transforms/transforms.h"

enum { LOW_BITS = 6 };
static const double whole_weight = 1 << 22, low_base = 1 << LOW_BITS;

static tn_val resample_build_f64(tn_build *b, double value) { return tn_scalar(b, TN_F64, value); }

/* The weights of one axis, f64 (out, in), which sum to 1 in each row. */
static tn_val resample_build_weights(tn_build *b, int64_t in, int64_t out) {
  double scale = (double)in / (double)out, reach = scale > 1 ? scale : 1;
  tn_type results = {TN_F64, 2, {out, 1}}, operands = {TN_F64, 2, {1, in}};
  const int64_t across[1] = {1};
  tn_val half = resample_build_f64(b, 0.5), zero = resample_build_f64(b, 0);
  tn_val centre = tn_mul(b, tn_add(b, tn_iota(b, &results, 0), half), resample_build_f64(b, scale));
  tn_val x = tn_iota(b, &operands, 1);
  tn_val start = tn_floor(b, tn_add(b, tn_sub(b, centre, resample_build_f64(b, reach)), half));
  tn_val stop = tn_floor(b, tn_add(b, tn_add(b, centre, resample_build_f64(b, reach)), half));
  tn_val distance = tn_div(b, tn_add(b, tn_sub(b, x, centre), half), resample_build_f64(b, reach));
  tn_val weight = tn_maximum(b, zero, tn_sub(b, resample_build_f64(b, 1), tn_abs(b, distance)));
  tn_val inside = tn_and(b, tn_ge(b, x, start), tn_lt(b, x, stop));
  weight = tn_where(b, inside, weight, zero);
  return tn_div(b, weight, tn_reduce_sum(b, weight, 1, across, 1));
}

/* The product along one axis: x weights^T across, weights x down. */
static tn_val resample_build_product(tn_build *b, tn_val x, tn_val weights, int down) {
  weights = tn_to_dtype(b, weights, TN_F32);
  return down ? tn_matmul(b, weights, x, 0, 0, 0, TN_MATH_FULL)
              : tn_matmul(b, x, weights, 0, 0, 1, TN_MATH_FULL);
}

/* floor((64 high + low + 2^21) / 2^22), of two products that are integers. */
static tn_val resample_build_rounded(tn_build *b, tn_val high, tn_val low) {
  double rest = whole_weight / low_base;
  tn_val sum = tn_add(b, high, tn_floor(b, tn_affine(b, low, 1 / low_base, 0)));
  return tn_floor(b, tn_affine(b, tn_affine(b, sum, 1, rest / 2), 1 / rest, 0));
}

/* x holds bytes as f32, and so does the result. */
static tn_val resample_build_pass_u8(tn_build *b, tn_val x, tn_val weights, int down) {
  tn_val fixed = tn_floor(
      b, tn_add(b, resample_build_f64(b, 0.5), tn_mul(b, weights, resample_build_f64(b, whole_weight))));
  tn_val high = tn_floor(b, tn_mul(b, fixed, resample_build_f64(b, 1 / low_base)));
  tn_val low = tn_sub(b, fixed, tn_mul(b, high, resample_build_f64(b, low_base)));
  return resample_build_rounded(b, resample_build_product(b, x, high, down),
                                resample_build_product(b, x, low, down));
}

tn_val resample_build(tn_build *b, tn_val x, int64_t height, int64_t width) {
  int32_t dtype = tn_val_type(b, x)->dtype;
  tn_val across = resample_build_weights(b, tn_val_dim(b, x, -1), width),
         down = resample_build_weights(b, tn_val_dim(b, x, -2), height);
  if (dtype != TN_U8) return resample_build_product(b, resample_build_product(b, x, across, 0), down, 1);
  x = tn_to_dtype(b, x, TN_F32);
  return tn_to_dtype(b, resample_build_pass_u8(b, resample_build_pass_u8(b, x, across, 0), down, 1), TN_U8);
}
