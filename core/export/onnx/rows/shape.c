/* core/export/onnx/rows/shape.c: ops that move elements. Sizes that depend on the batch are computed from it.
 */
#include <string.h>

#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

/* One dimension that depends on the batch is -1; several are computed. */
static tn_status shape_reshape(const export_use *u) {
  const tn_type *to = export_result(u, 0);
  int64_t dims[TN_MAX_RANK];
  int32_t varying = 0;
  bool empty = tn_type_count(to) == 0;
  for (int32_t i = 0; i < to->rank; i++) {
    dims[i] = to->dims[i];
    if (!export_is_batch(u->x, dims[i])) continue;
    varying++;
    dims[i] = -1;
  }
  const char *sizes =
      varying > 1 || empty ? export_sizes(u, to->dims, to->rank) : export_list(u->x, dims, to->rank);
  if (sizes == NULL) return TN_EUNSUPPORTED;
  return export_yield(u, empty ? "Reshape(x, '%s', allowzero=1)" : "Reshape(x, '%s')", sizes);
}

/* A dimension that x has already is 1 in the shape, which Expand broadcasts. */
static tn_status shape_broadcast(const export_use *u) {
  const tn_type *from = export_type(u, 0), *to = export_result(u, 0);
  int64_t dims[TN_MAX_RANK];
  for (int32_t i = 0; i < to->rank; i++) {
    int32_t k = i - (to->rank - from->rank);
    dims[i] = k >= 0 && from->dims[k] == to->dims[i] ? 1 : to->dims[i];
  }
  const char *sizes = export_sizes(u, dims, to->rank);
  return sizes != NULL ? export_yield(u, "Expand(x, '%s')", sizes) : TN_EUNSUPPORTED;
}

/* The dimensions that are cut alone; one that is taken to its end has no number for it. */
static tn_status shape_slice(const export_use *u) {
  const tn_slice_attributes *a = u->node->attributes;
  const tn_type *x = export_type(u, 0);
  int64_t starts[TN_MAX_RANK], stops[TN_MAX_RANK], axes[TN_MAX_RANK], steps[TN_MAX_RANK];
  int32_t n = 0;
  for (int32_t i = 0; i < x->rank; i++) {
    int64_t step = a->steps.n > 0 ? a->steps.v[i] : 1;
    if (a->starts.v[i] == 0 && a->stops.v[i] == x->dims[i] && step == 1) continue;
    starts[n] = a->starts.v[i];
    stops[n] = a->stops.v[i] == x->dims[i] ? INT64_MAX : a->stops.v[i];
    axes[n] = i;
    steps[n++] = step;
  }
  if (n == 0) return export_yield(u, "Identity(x)");
  const char *first = export_sizes(u, starts, n), *end = export_sizes(u, stops, n),
             *of = export_list(u->x, axes, n), *by = export_list(u->x, steps, n);
  if (first == NULL || end == NULL) return TN_EUNSUPPORTED;
  return export_yield(u, "Slice(x, '%s', '%s', '%s', '%s')", first, end, of, by);
}

static const char *shape_borders(const export_use *u, const tn_ints *low, const tn_ints *high) {
  int64_t borders[2 * TN_MAX_RANK];
  memcpy(borders, low->v, (size_t)low->n * sizeof *borders);
  memcpy(borders + low->n, high->v, (size_t)high->n * sizeof *borders);
  return export_list(u->x, borders, low->n + high->n);
}

/* A dimension of n elements with `inner` zeros behind each but the last: as a matrix with that many columns
 * more, whose rows are joined and cut. *type becomes that of the text. */
static const char *shape_spread(const export_use *u, const char *of, int32_t axis, int64_t inner,
                                tn_type *type) {
  int64_t pads[2 * (TN_MAX_RANK + 1)] = {0}, n = type->dims[axis];
  type->dims[axis] = n * (inner + 1);
  pads[(type->rank + 1) + axis + 1] = inner;
  const char *borders = export_list(u->x, pads, 2 * (type->rank + 1)),
             *sizes = export_sizes(u, type->dims, type->rank);
  type->dims[axis] -= inner;
  if (borders == NULL || sizes == NULL) return NULL;
  return tn_arena_printf(&u->x->arena,
                         "Slice(Reshape(Pad(Unsqueeze(%s, [%d]), '%s', 0), '%s'), [0], [%lld], [%d])", of,
                         axis + 1, borders, sizes, (long long)type->dims[axis], axis);
}

static tn_status shape_pad(const export_use *u) {
  const tn_pad_attributes *a = u->node->attributes;
  const char *borders = shape_borders(u, &a->low, &a->high), *of = "x";
  tn_type type = *export_type(u, 0);
  for (int32_t i = 0; i < a->inner.n && of != NULL; i++) {
    if (a->inner.v[i] == 0 || type.dims[i] < 2) continue;
    if (export_is_batch(u->x, type.dims[i]))
      return tn_failf(u->x->env, TN_EUNSUPPORTED, "zeros between the samples of a batch");
    of = shape_spread(u, of, i, a->inner.v[i], &type);
  }
  if (borders == NULL || of == NULL) return TN_ENOMEM;
  return export_yield(u, "Pad(%s, '%s', 0)", of, borders);
}

/* Its options are those of `pad`, without inner, and the mode. */
static const tn_option *shape_option(const export_use *u, const char *name) {
  const tn_option *o = u->node->op->item.options;
  while (o->name != NULL && strcmp(o->name, name) != 0) o++;
  return o;
}

static int32_t shape_mode(const export_use *u) {
  return *(const int32_t *)(const void *)((const char *)u->node->attributes +
                                          shape_option(u, "mode")->offset);
}

static const char *shape_extension(const export_use *u) {
  const char *a = u->node->attributes;
  const tn_ints *low = (const void *)(a + shape_option(u, "low")->offset);
  const tn_ints *high = (const void *)(a + shape_option(u, "high")->offset);
  return shape_borders(u, low, high);
}

enum { EXTEND_CONSTANT = 0, EXTEND_REFLECT = 1, EXTEND_REPLICATE = 2, EXTEND_CIRCULAR = 3 };

static bool shape_extends_early(const export_use *u) { return shape_mode(u) != EXTEND_CIRCULAR; }

static tn_status shape_extend(const export_use *u) {
  static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
  const char *borders = shape_extension(u);
  int32_t mode = shape_mode(u);
  if (borders == NULL) return TN_ENOMEM;
  if (mode != EXTEND_CONSTANT) return export_yield(u, "Pad(x, '%s', mode='%s')", borders, modes[mode]);
  const double *value = (const void *)((const char *)u->node->attributes + shape_option(u, "value")->offset);
  const char *number = export_number(u->x, export_type(u, 0)->dtype, *value);
  return number != NULL ? export_yield(u, "Pad(x, '%s', '%s')", borders, number) : TN_ENOMEM;
}

/* The operands as text: 'a', 'b'. */
static tn_status shape_concat(const export_use *u) {
  tn_text list = tn_text_new(u->x->env);
  tn_status status = TN_OK;
  for (int32_t i = 0; i < u->node->n_in && status == TN_OK; i++) {
    const char *name = export_operand(u, i);
    if (name == NULL)
      status = TN_ENOMEM;
    else
      tn_text_addf(&list, "'%s', ", name);
  }
  if (status == TN_OK) status = list.failed ? TN_ENOMEM : export_yield(u, "Concat(%saxis={axis})", list.v);
  tn_text_free(&list);
  return status;
}

const export_row export_rows_shape[] = {
    {"reshape", .emit = shape_reshape},
    {"broadcast", .emit = shape_broadcast},
    {"transpose", "Transpose(x, perm={order})"},
    {"slice", .emit = shape_slice},
    {"pad", .emit = shape_pad},
    {"extend", .emit = shape_extend, .takes = shape_extends_early},
    {"extend", .emit = shape_extend, .since = 19},
    {"concat", .emit = shape_concat},
    {"copy", "Identity(x)"},
    {"reorder", "Identity(x)"},
    {NULL},
};
