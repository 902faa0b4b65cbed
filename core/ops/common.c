/* core/ops/common.c: functions that the families of ops share. */
#include "core/ops/common.h"

#include <stdio.h>

/* ---- messages ---- */

tn_ops_message tn_ops_text(const tn_type *type) {
  tn_ops_message m;
  int n = snprintf(m.v, sizeof m.v, "%s[", tn_dtype_name(type->dtype));
  for (int32_t i = 0; i < type->rank; i++)
    n += snprintf(m.v + n, sizeof m.v - (size_t)n, "%s%lld", i > 0 ? ", " : "", (long long)type->dims[i]);
  snprintf(m.v + n, sizeof m.v - (size_t)n, "]");
  return m;
}

/* ---- checking ---- */

tn_status tn_ops_check_axis(const void *handle, int64_t axis, int32_t rank, int32_t *at) {
  if (rank == 0)
    return tn_fail(handle, TN_EINVAL, "axis", "axis is %lld, but a scalar has no axes", (long long)axis);
  if (axis < -rank || axis >= rank)
    return tn_fail(handle, TN_EINVAL, "axis", "axis is %lld, expected %d .. %d for an operand of rank %d",
                   (long long)axis, (int)-rank, (int)rank - 1, (int)rank);
  *at = tn_ops_axis(axis, rank);
  return TN_OK;
}

tn_status tn_ops_check_axes(const void *handle, const tn_ints *axes, int32_t rank, bool *reduced) {
  for (int32_t i = 0; i < rank; i++) reduced[i] = axes->n == 0;
  for (int64_t i = 0; i < axes->n; i++) {
    int64_t axis = axes->v[i];
    if (axis < -rank || axis >= rank)
      return tn_fail(handle, TN_EINVAL, "axes", "axes has %lld, expected %d .. %d for an operand of rank %d",
                     (long long)axis, (int)-rank, (int)rank - 1, (int)rank);
    int32_t at = tn_ops_axis(axis, rank);
    if (reduced[at]) return tn_fail(handle, TN_EINVAL, "axes", "axes names dimension %d twice", (int)at);
    reduced[at] = true;
  }
  return TN_OK;
}

tn_status tn_ops_axis_of_x(tn_build *b, int64_t axis, int32_t *at) {
  return tn_ops_check_axis(b, axis, tn_val_type(b, tn_build_in(b, 0))->rank, at);
}

tn_status tn_ops_check_operand(tn_infer *n, const char *name, const tn_type *operand,
                               const tn_type *expected) {
  if (operand == NULL || tn_type_equal(operand, expected)) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "%s is %s, expected %s for x of %s", name, tn_ops_text(operand).v,
                 tn_ops_text(expected).v, tn_ops_text(n->node.in[0]).v);
}

tn_status tn_ops_check_channel(tn_infer *n, const tn_type *x) {
  int64_t most = INT32_MAX;
  for (int32_t i = 2; i < x->rank; i++) most /= x->dims[i] > 0 ? x->dims[i] : 1;
  if (most > 0) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "x is %s: a channel has more elements than an i32 index can count",
                 tn_ops_text(x).v);
}

tn_status tn_ops_check_count(tn_infer *n, const tn_type *type) {
  int64_t bytes = (int64_t)tn_dtype_size(type->dtype), product = bytes > 0 ? bytes : 8;
  bool overflow = false;
  for (int32_t i = 0; i < type->rank; i++) {
    if (type->dims[i] == 0) return TN_OK;
    overflow = overflow || __builtin_mul_overflow(product, type->dims[i], &product);
  }
  if (!overflow) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "the result %s has more bytes than can be addressed",
                 tn_ops_text(type).v);
}

tn_status tn_ops_check_dims(tn_infer *n, const tn_ints *dims, tn_type *type) {
  if (dims->n > TN_MAX_RANK)
    return tn_fail(n, TN_EINVAL, "dims", "dims has %lld entries, the highest rank is %d", (long long)dims->n,
                   (int)TN_MAX_RANK);
  type->rank = (int32_t)dims->n;
  for (int64_t i = 0; i < dims->n; i++) {
    if (dims->v[i] < 0)
      return tn_fail(n, TN_EINVAL, "dims", "entry %lld of dims is %lld, expected >= 0", (long long)i,
                     (long long)dims->v[i]);
    type->dims[i] = dims->v[i];
  }
  return tn_ops_check_count(n, type);
}

tn_status tn_ops_check_list(tn_infer *n, const char *option, const tn_ints *list, int64_t count,
                            int64_t least) {
  if (list->n != count)
    return tn_fail(n, TN_EINVAL, option, "%s has %lld entries, expected %lld", option, (long long)list->n,
                   (long long)count);
  for (int64_t i = 0; i < count; i++)
    if (list->v[i] < least)
      return tn_fail(n, TN_EINVAL, option, "entry %lld of %s is %lld, expected >= %lld", (long long)i, option,
                     (long long)list->v[i], (long long)least);
  return TN_OK;
}

tn_status tn_ops_check_rank(tn_infer *n, const char *operand, const tn_type *type, int32_t rank,
                            const char *dims) {
  if (type->rank == rank) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "%s is %s of rank %d, expected rank %d: %s", operand,
                 tn_ops_text(type).v, (int)type->rank, (int)rank, dims);
}

tn_status tn_ops_check_dims_of(tn_infer *n, const char *operand, const tn_type *type,
                               const tn_type *expected) {
  if (tn_type_same_dims(type, expected)) return TN_OK;
  tn_type want = *expected;
  want.dtype = type->dtype;
  return tn_fail(n, TN_EINVAL, NULL, "%s is %s, expected %s", operand, tn_ops_text(type).v,
                 tn_ops_text(&want).v);
}

const char *tn_ops_spatial_name(int32_t rank, int32_t i) {
  static const char *const names[] = {"depth", "height", "width"};
  return names[3 - rank + i];
}

const char *tn_ops_image_dims(int32_t rank) {
  static const char *const dims[] = {"batch, channels, width", "batch, channels, height, width",
                                     "batch, channels, depth, height, width"};
  return dims[rank - 1];
}

/* ---- axes ---- */

void tn_ops_axes(const tn_ints *axes, int32_t rank, bool *reduced) {
  for (int32_t i = 0; i < rank; i++) reduced[i] = axes->n == 0;
  for (int64_t i = 0; i < axes->n; i++) reduced[tn_ops_axis(axes->v[i], rank)] = true;
}

int64_t tn_ops_marked(const bool *marked, int32_t rank, int64_t *axes) {
  int64_t n = 0;
  for (int32_t i = 0; i < rank; i++)
    if (marked[i]) axes[n++] = i;
  return n;
}

tn_type tn_ops_reduced(const tn_type *type, const bool *reduced, bool keep) {
  tn_type r = {type->dtype, 0, {0}};
  for (int32_t i = 0; i < type->rank; i++) {
    if (!reduced[i])
      r.dims[r.rank++] = type->dims[i];
    else if (keep)
      r.dims[r.rank++] = 1;
  }
  return r;
}

int64_t tn_ops_reduced_count(const tn_type *type, const bool *reduced) {
  int64_t count = 1;
  for (int32_t i = 0; i < type->rank; i++)
    if (reduced[i]) count *= type->dims[i];
  return count;
}

/* ---- emitting ---- */

tn_val tn_ops_keep(tn_build *b, tn_val v, const tn_type *type, const bool *reduced) {
  tn_type kept = tn_ops_reduced(type, reduced, true);
  if (v == 0 || tn_type_same_dims(tn_val_type(b, v), &kept)) return v;
  return tn_reshape(b, v, kept.rank, kept.dims);
}

tn_val tn_ops_reduce(tn_build *b, const char *op, tn_val v, const bool *reduced) {
  int64_t axes[TN_MAX_RANK];
  int64_t n = tn_ops_marked(reduced, tn_val_type(b, v)->rank, axes);
  if (n == 0) return v;
  tn_op_begin(b, op);
  tn_op_arg(b, v);
  tn_op_set_ints(b, "axes", n, axes);
  tn_op_set_int(b, "keep", 1);
  return tn_op_end(b);
}

tn_val tn_ops_channels(tn_build *b, tn_val v, int32_t rank) {
  if (v == 0) return 0;
  int64_t dims[TN_MAX_RANK] = {1, tn_val_dim(b, v, 0), 1, 1, 1, 1, 1, 1};
  return tn_reshape(b, v, rank, dims);
}

void tn_ops_yield_to(tn_build *b, int32_t i, tn_val gradient) {
  tn_type type = tn_ops_type(b, tn_build_in(b, i));
  if (gradient == 0) return;
  tn_build_yield(b, i, tn_to_dtype(b, tn_sum_to(b, gradient, &type), type.dtype));
}

/* ---- costs ---- */

void tn_ops_cost(const tn_node *n, tn_cost *cost, double flops) {
  cost->flops = flops;
  cost->bytes = 0;
  for (int32_t i = 0; i < n->n_in; i++)
    if (n->in[i] != NULL) cost->bytes += tn_ops_count(n->in[i]) * (double)tn_dtype_size(n->in[i]->dtype);
  for (int32_t i = 0; i < n->n_out; i++)
    cost->bytes += tn_ops_count(&n->out[i]) * (double)tn_dtype_size(n->out[i].dtype);
}
