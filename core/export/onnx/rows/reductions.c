/* core/export/onnx/rows/reductions.c: reductions. Their axes are an input from opset 18 on (sums: 13), an
 * attribute before. */
#include <stdio.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

enum { REDUCTION_TEXT = 128, AXES_ARE_INPUT = 18 };

/* "[0, 2]"; all dimensions where none is given, so that a scalar is reduced over nothing. */
static void reduction_axes(const export_use *u, const tn_ints *axes, char text[REDUCTION_TEXT]) {
  int32_t rank = export_type(u, 0)->rank;
  int64_t n = axes->n > 0 ? axes->n : rank;
  size_t at = 0;
  text[at++] = '[';
  for (int64_t i = 0; i < n; i++) {
    int64_t axis = axes->n > 0 ? axes->v[i] : i;
    at += (size_t)snprintf(text + at, REDUCTION_TEXT - at, "%s%lld", i > 0 ? ", " : "",
                           (long long)(axis < 0 ? axis + rank : axis));
  }
  snprintf(text + at, REDUCTION_TEXT - at, "]");
}

/* A reduction of x, or of another expression, as text. */
static const char *reduction_text(const export_use *u, const char *op, const char *of, bool keep) {
  const tn_reduce_attributes *a = u->node->attributes;
  char axes[REDUCTION_TEXT];
  reduction_axes(u, &a->axes, axes);
  bool input = u->x->opset >= AXES_ARE_INPUT || strcmp(op, "ReduceSum") == 0;
  return tn_arena_printf(&u->x->arena, "%s(%s, %s%s, keepdims=%d)", op, of, input ? "" : "axes=", axes, keep);
}

static tn_status reduction_emit(const export_use *u, const char *op, const char *of) {
  const tn_reduce_attributes *a = u->node->attributes;
  if (export_type(u, 0)->rank == 0) return export_yield(u, "Cast(x, to=Y)");
  const char *text = reduction_text(u, op, of, a->keep != 0);
  return text != NULL ? export_yield(u, "%s", text) : TN_ENOMEM;
}

/* Sums and products of small whole numbers have a wider type. */
static const char *reduction_operand(const export_use *u) {
  return export_type(u, 0)->dtype == export_result(u, 0)->dtype ? "x" : "Cast(x, to=Y)";
}

static tn_status reduction_sum(const export_use *u) {
  return reduction_emit(u, "ReduceSum", reduction_operand(u));
}
static tn_status reduction_prod(const export_use *u) {
  return reduction_emit(u, "ReduceProd", reduction_operand(u));
}
static tn_status reduction_max(const export_use *u) { return reduction_emit(u, "ReduceMax", "x"); }
static tn_status reduction_min(const export_use *u) { return reduction_emit(u, "ReduceMin", "x"); }
static tn_status reduction_mean(const export_use *u) { return reduction_emit(u, "ReduceMean", "x"); }
static tn_status reduction_logsumexp(const export_use *u) {
  return reduction_emit(u, "ReduceLogSumExp", "x");
}

/* In f32 for narrower types. */
static tn_status reduction_moments(const export_use *u) {
  const char *mean = reduction_text(u, "ReduceMean", "wide", true),
             *flat = reduction_text(u, "ReduceMean", "wide", false),
             *variance = reduction_text(u, "ReduceMean", "Mul(apart, apart)", false);
  if (mean == NULL || flat == NULL || variance == NULL) return TN_ENOMEM;
  bool same = export_type(u, 0)->dtype == export_result(u, 0)->dtype;
  return export_yield(u, "wide = %s; middle = %s; apart = Sub(wide, middle); %s; %s",
                      same ? "Identity(x)" : "Cast(x, to=Y)", mean, flat, variance);
}

const export_row export_rows_reductions[] = {
    {"reduce_sum", .emit = reduction_sum},
    {"prod", .emit = reduction_prod},
    {"reduce_max", .emit = reduction_max},
    {"reduce_min", .emit = reduction_min},
    {"reduce_mean", .emit = reduction_mean},
    {"logsumexp", .emit = reduction_logsumexp},
    {"moments", .emit = reduction_moments, .results = 2},
    {"argmax", "Cast(ArgMax(x, axis={axis}, keepdims=0), to=Y)"},
    {"argmin", "Cast(ArgMin(x, axis={axis}, keepdims=0), to=Y)"},
    {NULL},
};
