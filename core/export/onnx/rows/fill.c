/* core/export/onnx/rows/fill.c: values that depend on no operand. */
#include <stdio.h>

#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

/* A scalar is a constant; an array is a scalar that is expanded. */
static tn_status fill_full(const export_use *u) {
  const tn_full_attributes *a = u->node->attributes;
  const char *number = export_number(u->x, export_result(u, 0)->dtype, a->value);
  if (number == NULL) return TN_ENOMEM;
  if (a->dims.n == 0) return export_yield(u, "'%s'", number);
  const char *sizes = export_sizes(u, a->dims.v, a->dims.n);
  return sizes != NULL ? export_yield(u, "Expand('%s', '%s')", number, sizes) : TN_EUNSUPPORTED;
}

/* 0 to n - 1 along the axis, and repeated along the others. */
static tn_status fill_iota(const export_use *u) {
  const tn_iota_attributes *a = u->node->attributes;
  const tn_type *type = export_result(u, 0);
  int64_t axis = a->axis < 0 ? a->axis + type->rank : a->axis, column[TN_MAX_RANK];
  for (int32_t i = 0; i < type->rank; i++) column[i] = i == axis ? -1 : 1;
  const char *n = export_sizes(u, &type->dims[axis], 1), *shape = export_list(u->x, column, type->rank),
             *sizes = export_sizes(u, type->dims, type->rank);
  if (n == NULL || shape == NULL || sizes == NULL) return TN_EUNSUPPORTED;
  return export_yield(
      u, "line = Range(0:i64, Squeeze('%s', [0]), 1:i64); Expand(Reshape(Cast(line, to=Y), '%s'), '%s')", n,
      shape, sizes);
}

static tn_status fill_triangle(const export_use *u) {
  const tn_mask_attributes *a = u->node->attributes;
  int64_t dims[] = {a->rows, a->columns};
  const char *sizes = export_sizes(u, dims, 2);
  if (sizes == NULL) return TN_EUNSUPPORTED;
  return export_yield(u, "Cast(Trilu(Expand(1:f32, '%s'), %lld:i64, upper=0), to=bool)", sizes,
                      (long long)a->diagonal);
}

static tn_status fill_random(const export_use *u) {
  return tn_failf(u->x->env, TN_EUNSUPPORTED, "random numbers of a seed have no operator");
}

const export_row export_rows_fill[] = {
    {"full", .emit = fill_full},
    {"iota", .emit = fill_iota},
    {"triangular_mask", .emit = fill_triangle, .since = 14},
    {"random_uniform", .emit = fill_random},
    {"random_normal", .emit = fill_random},
    {NULL},
};
