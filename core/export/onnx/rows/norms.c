/* core/export/onnx/rows/norms.c: normalization. Factors and shifts that are absent are ones and zeros, which
 * the operators require. */
#include <stdio.h>

#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

/* An operand, or a vector of `count` numbers; quoted, for a template. */
static const char *norm_vector(const export_use *u, int32_t i, int64_t count, double number) {
  export_graph *x = u->x;
  const tn_type type = {.dtype = TN_F32, .rank = 1, .dims = {count}};
  const char *name;
  if (export_has(u, i)) {
    name = export_operand(u, i);
  } else {
    float *v = tn_arena_alloc(&x->arena, (size_t)count * sizeof *v + 1);
    if (v == NULL) return NULL;
    for (int64_t k = 0; k < count; k++) v[k] = (float)number;
    name = export_constant(x, &type, v);
  }
  return name != NULL ? tn_arena_printf(&x->arena, "'%s'", name) : NULL;
}

/* The operators have factors of the type of x, or of one type for x and them. */
static bool norm_is_plain(const export_use *u) { return export_type(u, 0)->dtype == TN_F32; }

static tn_status norm_batch(const export_use *u) {
  if (export_fold_takes(u)) return export_yield(u, "x");
  int64_t channels = export_type(u, 0)->dims[1];
  const char *weight = norm_vector(u, 3, channels, 1), *bias = norm_vector(u, 4, channels, 0);
  if (weight == NULL || bias == NULL) return TN_ENOMEM;
  return export_yield(u, "BatchNormalization(x, %s, %s, mean, variance, epsilon={epsilon})", weight, bias);
}

static int64_t norm_trailing_count(const export_use *u) {
  const tn_norm_attributes *a = u->node->attributes;
  const tn_type *x = export_type(u, 0);
  int64_t count = 1;
  for (int64_t i = x->rank - a->trailing; i < x->rank; i++) count *= x->dims[i];
  return count;
}

static bool norm_is_layer(const export_use *u) {
  const tn_norm_attributes *a = u->node->attributes;
  return norm_is_plain(u) && (export_has(u, 1) || a->trailing == 1);
}

static tn_status norm_layer(const export_use *u) {
  const tn_norm_attributes *a = u->node->attributes;
  const char *weight = norm_vector(u, 1, norm_trailing_count(u), 1);
  if (weight == NULL) return TN_ENOMEM;
  return export_yield(u, "LayerNormalization(x, %s, bias, axis=%lld, epsilon={epsilon})", weight,
                      -(long long)a->trailing);
}

static tn_status norm_rms(const export_use *u) {
  const tn_norm_attributes *a = u->node->attributes;
  const char *weight = norm_vector(u, 1, norm_trailing_count(u), 1);
  if (weight == NULL) return TN_ENOMEM;
  return export_yield(u, "RMSNormalization(x, %s, axis=%lld, epsilon={epsilon})", weight,
                      -(long long)a->trailing);
}

static tn_status norm_group(const export_use *u) {
  int64_t channels = export_type(u, 0)->dims[1];
  const char *weight = norm_vector(u, 1, channels, 1), *bias = norm_vector(u, 2, channels, 0);
  if (weight == NULL || bias == NULL) return TN_ENOMEM;
  return export_yield(u, "GroupNormalization(x, %s, %s, num_groups={groups}, epsilon={epsilon})", weight,
                      bias);
}

static bool norm_is_instance(const export_use *u) {
  const tn_norm_attributes *a = u->node->attributes;
  return norm_is_plain(u) && export_type(u, 0)->rank > 2 && a->groups == export_type(u, 0)->dims[1];
}

static tn_status norm_instance(const export_use *u) {
  int64_t channels = export_type(u, 0)->dims[1];
  const char *weight = norm_vector(u, 1, channels, 1), *bias = norm_vector(u, 2, channels, 0);
  if (weight == NULL || bias == NULL) return TN_ENOMEM;
  return export_yield(u, "InstanceNormalization(x, %s, %s, epsilon={epsilon})", weight, bias);
}

/* With an even size LRN has one channel more behind the own one, local_response_norm before it. */
static bool norm_is_lrn(const export_use *u) {
  const tn_local_response_norm_attributes *a = u->node->attributes;
  return norm_is_plain(u) && export_type(u, 0)->rank == 4 && a->size % 2 == 1;
}

const export_row export_rows_norms[] = {
    {"batch_norm_apply", .emit = norm_batch, .takes = norm_is_plain},
    {"layer_norm", .emit = norm_layer, .takes = norm_is_layer, .since = 17},
    {"rms_norm", .emit = norm_rms, .takes = norm_is_layer, .since = 23},
    {"group_norm", .emit = norm_instance, .takes = norm_is_instance},
    {"group_norm", .emit = norm_group, .takes = norm_is_plain, .since = 21},
    {"local_response_norm", "LRN(x, size={size}, alpha={alpha}, beta={beta}, bias={k})",
     .takes = norm_is_lrn},
    {NULL},
};
