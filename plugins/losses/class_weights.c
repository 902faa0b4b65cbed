/* plugins/losses/class_weights.c: the cross entropy with a weight for each class. */
#include "plugins/losses/losses.h"

/* Numbers that are joined at once. */
enum { JOINED = 16 };

/* The numbers [first, first + n) of a list as a vector, joined as a tree. They depend on nothing, so it is
 * computed once. */
static tn_val class_vector(tn_build *b, const tn_floats *list, int32_t dtype, int64_t first, int64_t n) {
  tn_type one = {.dtype = dtype, .rank = 1, .dims = {1}};
  tn_val parts[JOINED];
  int64_t count = 0, part = 1;
  if (n == 1) return tn_full(b, &one, list->v[first]);
  while (part * JOINED < n) part *= JOINED;
  for (int64_t at = 0; at < n; at += part)
    parts[count++] = class_vector(b, list, dtype, first + at, n - at < part ? n - at : part);
  return tn_concat(b, count, parts, 0);
}

static int32_t class_axis(const cross_entropy_options *o, const tn_type *type) {
  return (int32_t)(o->axis < 0 ? o->axis + type->rank : o->axis);
}

tn_status class_weights(tn_build *b, const cross_entropy_options *o, tn_val like, tn_val *weights) {
  tn_type type = *tn_val_type(b, like);
  int32_t axis = class_axis(o, &type);
  if (axis < 0 || axis >= type.rank)
    return tn_fail(b, TN_EINVAL, "axis", "%lld is out of range for rank-%d scores", (long long)o->axis,
                   (int)type.rank);
  if (type.dims[axis] != o->weights.n)
    return tn_fail(b, TN_EINVAL, "weights",
                   "weights has %lld numbers, expected one for each of the %lld classes",
                   (long long)o->weights.n, (long long)type.dims[axis]);
  int64_t dims[TN_MAX_RANK];
  for (int32_t i = 0; i < type.rank; i++) dims[i] = i == axis ? o->weights.n : 1;
  *weights = tn_reshape(b, class_vector(b, &o->weights, type.dtype, 0, o->weights.n), type.rank, dims);
  return TN_OK;
}

/* The weight of each target's class, which is 0 where the target is no class. */
static tn_val class_weight_of_target(tn_build *b, const cross_entropy_options *o, tn_val weights) {
  tn_type type = *tn_val_type(b, tn_build_in(b, 1));
  int64_t rows = tn_type_count(&type), classes = o->weights.n;
  tn_val target = tn_reshape(b, tn_build_in(b, 1), 1, &rows);
  if (tn_dtype_size(type.dtype) < tn_dtype_size(TN_I32)) target = tn_to_dtype(b, target, TN_I32);
  tn_val first = loss_number_like(b, target, 0), end = loss_number_like(b, target, (double)classes);
  tn_val is_class = tn_and(b, tn_ge(b, target, first), tn_lt(b, target, end));
  tn_val own = tn_gather(b, tn_reshape(b, weights, 1, &classes), tn_where(b, is_class, target, first), 0);
  own = tn_where(b, is_class, own, loss_number_like(b, own, 0));
  return tn_reshape(b, own, type.rank, type.dims);
}

/* With label smoothing s, the loss of a sample with the class y is (1 - s) w_y loss - s / C sum_k w_k log
 * p_k, and the mean divides by the sum of w_y, so the second part is divided by w_y here. */
tn_status yield_weighted(tn_build *b, const cross_entropy_options *o, tn_val loss, tn_val counts) {
  tn_val scores = tn_build_in(b, 0), x = tn_to_dtype(b, scores, tn_val_type(b, loss)->dtype), weights = 0;
  TN_TRY(class_weights(b, o, x, &weights));
  int64_t axis = class_axis(o, tn_val_type(b, x));
  tn_val own = class_weight_of_target(b, o, weights);
  if (o->label_smoothing > 0) {
    tn_val all = tn_reduce_sum(b, tn_mul(b, tn_log_softmax(b, x, axis), weights), 1, &axis, 0),
           divisor =
               tn_where(b, tn_eq(b, own, loss_number_like(b, own, 0)), loss_number_like(b, own, 1), own);
    tn_val even = tn_affine(b, tn_div(b, all, divisor), -o->label_smoothing / (double)o->weights.n, 0);
    loss = tn_add(b, tn_affine(b, loss, 1 - o->label_smoothing, 0), even);
  }
  tn_build_yield(b, 0, loss);
  tn_build_yield(b, 1, tn_mul(b, counts, own));
  return TN_OK;
}
