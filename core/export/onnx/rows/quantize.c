/* core/export/onnx/rows/quantize.c: fake quantization ([quantize]) as QuantizeLinear and DequantizeLinear,
 * whose scales are constants: runtimes find them in front of products and convolutions, and compute in whole
 * numbers. */
#include <math.h>
#include <string.h>

#include "core/export/onnx/nodes.h"
#include "core/ops/quantize.h"
#include "tenon/attributes.h"

enum { MOST_BITS = 8 };

static int64_t rounding_bits(const export_use *u) {
  return ((const tn_quantize_attributes *)u->node->attributes)->bits;
}

static bool rounding_is_state(const export_use *u, int32_t i) {
  return tn_export_state_path(u->x->graph, u->node, i) != NULL;
}

/* ---- inputs ---- */

static bool rounding_takes_input(const export_use *u) {
  return rounding_bits(u) <= MOST_BITS && rounding_is_state(u, 1) && rounding_is_state(u, 2) &&
         export_type(u, 1)->rank == 0 && export_type(u, 2)->rank == 0;
}

typedef struct rounding_grid {
  float scale;
  int zero;
} rounding_grid;

/* The formula of the op, in C. */
static rounding_grid rounding_find_grid(float low, float high, float n) {
#define minimum           fminf
#define maximum           fmaxf
#define round             rintf
#define STEP(name, value) float name = value;
  TN_QUANTIZE_GRID(STEP)
  return (rounding_grid){s, (int)z};
#undef minimum
#undef maximum
#undef round
#undef STEP
}

/* A range that was not observed rounds nothing. */
static tn_status rounding_input(const export_use *u) {
  export_graph *x = u->x;
  float low = 0, high = 0;
  int most = (1 << rounding_bits(u)) - 1;
  TN_TRY(x->read(x->context, tn_export_state_path(x->graph, u->node, 1), &low, sizeof low));
  TN_TRY(x->read(x->context, tn_export_state_path(x->graph, u->node, 2), &high, sizeof high));
  if (low > high) return export_yield(u, "Identity(x)");
  const rounding_grid grid = rounding_find_grid(low, high, (float)most);
  if (rounding_bits(u) == MOST_BITS)
    return export_yield(u, "DequantizeLinear(QuantizeLinear(x, %.9e, %d:u8), %.9e, %d:u8)", grid.scale,
                        grid.zero, grid.scale, grid.zero);
  return export_yield(u, "DequantizeLinear(Clip(QuantizeLinear(x, %.9e, %d:u8), 0:u8, %d:u8), %.9e, %d:u8)",
                      grid.scale, grid.zero, most, grid.scale, grid.zero);
}

/* ---- weights ---- */

static bool rounding_takes_weight(const export_use *u) {
  return rounding_bits(u) <= MOST_BITS && rounding_is_state(u, 0) && export_type(u, 0)->rank > 0 &&
         tn_type_count(export_type(u, 0)) > 0;
}

static int32_t rounding_axis(const export_use *u) {
  const tn_quantize_attributes *a = u->node->attributes;
  return (int32_t)(a->axis < 0 ? a->axis + export_type(u, 0)->rank : a->axis);
}

/* The scale of each slice along the axis, by the largest element. */
static void rounding_find_scales(const tn_type *type, int32_t axis, const float *weight, float most,
                                 float *scale) {
  for (int64_t i = 0; i < type->dims[axis]; i++) scale[i] = 0;
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    float *largest = &scale[export_slice_of(type, axis, i)];
    *largest = fmaxf(*largest, fabsf(weight[i]));
  }
  for (int64_t i = 0; i < type->dims[axis]; i++)
    scale[i] = fmaxf(scale[i] / most, (float)TN_QUANTIZE_LEAST_SCALE);
}

static tn_status rounding_read_scales(const export_use *u, float *scale) {
  export_graph *x = u->x;
  const tn_type *type = export_type(u, 0);
  float *weight = tn_alloc(x->env, tn_type_bytes(type));
  if (weight == NULL) return TN_ENOMEM;
  tn_status status =
      x->read(x->context, tn_export_state_path(x->graph, u->node, 0), weight, tn_type_bytes(type));
  if (status == TN_OK)
    rounding_find_scales(type, rounding_axis(u), weight, (float)((1 << (rounding_bits(u) - 1)) - 1), scale);
  tn_release(x->env, weight);
  return status;
}

/* The node that alone reads the weight, as its operand 1; NULL: there are others, or it is the only output.
 */
static const tn_gnode *rounding_find_reader(const export_use *u) {
  const tn_graph *g = u->x->graph;
  tn_val weight = u->node->first_out;
  for (size_t i = 0; i < g->nodes.n && u->x->reads[weight] == 1; i++)
    if (g->nodes.v[i].n_in > 1 && g->nodes.v[i].in[1] == weight) return &g->nodes.v[i];
  return NULL;
}

/* A norm multiplies the scales of its channels. A negative factor changes the sign of the whole numbers,
 * which are symmetric, and a factor of 0 makes them 0. */
static tn_status rounding_fold(const export_use *u, const tn_gnode *conv, float *scale, float *given) {
  export_graph *x = u->x;
  const tn_export_norm *norm = tn_export_fold_norm(&x->arena, x->graph, conv, x->folded[conv->first_out]);
  float *factor = norm != NULL ? tn_arena_alloc(&x->arena, (size_t)norm->channels * sizeof *factor) : NULL;
  if (factor == NULL) return TN_ENOMEM;
  TN_TRY(tn_export_fold_factors(x->env, x->read, x->context, norm, factor));
  for (int64_t i = 0; i < norm->channels; i++) {
    given[i] = factor[i] != 0 ? scale[i] * fabsf(factor[i]) : 1;
    scale[i] = factor[i] != 0 ? copysignf(scale[i], factor[i]) : INFINITY;
  }
  return TN_OK;
}

/* The weight of a product that reads it transposed is written transposed, so that no node is between both. */
static bool rounding_transposes(const export_use *u, const tn_gnode *reader) {
  if (reader == NULL || strcmp(reader->op->item.name, "matmul") != 0) return false;
  return export_product_swaps(&(export_use){u->x, reader, NULL});
}

static tn_status rounding_weight(const export_use *u) {
  export_graph *x = u->x;
  tn_type type = *export_type(u, 0), scales = {TN_F32, 1, {type.dims[rounding_axis(u)]}};
  size_t bytes = tn_type_bytes(&scales);
  float *scale = tn_arena_alloc(&x->arena, bytes), *given = tn_arena_alloc(&x->arena, bytes);
  if (scale == NULL || given == NULL) return TN_ENOMEM;
  TN_TRY(rounding_read_scales(u, scale));
  memcpy(given, scale, bytes);
  const tn_gnode *reader = rounding_find_reader(u);
  if (reader != NULL && x->folded[reader->first_out] != 0) TN_TRY(rounding_fold(u, reader, scale, given));
  export_weight weight = {.path = tn_export_state_path(x->graph, u->node, 0),
                          .type = type,
                          .transposed = rounding_transposes(u, reader),
                          .scale = scale,
                          .scale_axis = rounding_axis(u)};
  if (weight.transposed) {
    weight.scale_axis = 1;
    weight.type.dims[0] = type.dims[1];
    weight.type.dims[1] = type.dims[0];
  }
  const char *whole = export_weight_name(x, &weight), *by = export_constant(x, &scales, given);
  if (whole == NULL || by == NULL) return TN_ENOMEM;
  return export_yield(u, "DequantizeLinear('%s', '%s', axis=%d)", whole, by, weight.scale_axis);
}

const export_row export_rows_quantize[] = {
    {"fake_quantize", .emit = rounding_input, .takes = rounding_takes_input},
    {"fake_quantize_channels", .emit = rounding_weight, .takes = rounding_takes_weight},
    {NULL},
};
