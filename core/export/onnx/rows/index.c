/* core/export/onnx/rows/index.c: gathers, scatters, sorting, sums along an axis. */
#include <stdio.h>

#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

/* An index of rank 1 takes slices, one of x's rank takes elements. A vector of a vector may be read as both.
 */
static tn_status index_gather(const export_use *u) {
  bool slices = export_type(u, 1)->rank == 1;
  return export_yield(u, slices ? "Gather(x, index, axis={axis})" : "GatherElements(x, index, axis={axis})");
}

static bool index_scatters(const export_use *u, int32_t mode) {
  const tn_scatter_attributes *a = u->node->attributes;
  return a->mode == mode;
}

/* An index for each update, where the op has one for each slice, as text. */
static const char *index_of_updates(const export_use *u, int64_t axis) {
  const tn_type *index = export_type(u, 1), *updates = export_type(u, 2);
  int64_t column[TN_MAX_RANK];
  if (index->rank == updates->rank) return "index";
  for (int32_t i = 0; i < updates->rank; i++) column[i] = i == axis ? -1 : 1;
  const char *shape = export_list(u->x, column, updates->rank),
             *sizes = export_sizes(u, updates->dims, updates->rank);
  if (shape == NULL || sizes == NULL) return NULL;
  return tn_arena_printf(&u->x->arena, "Expand(Reshape(index, '%s'), '%s')", shape, sizes);
}

static tn_status index_write_scatter(const export_use *u) {
  static const char *const reductions[] = {[TN_SCATTER_ADD] = ", reduction='add'",
                                           [TN_SCATTER_MAX] = ", reduction='max'",
                                           [TN_SCATTER_MIN] = ", reduction='min'",
                                           [TN_SCATTER_SET] = ""};
  const tn_scatter_attributes *a = u->node->attributes;
  const char *index = index_of_updates(u, a->axis < 0 ? a->axis + export_type(u, 2)->rank : a->axis);
  return index != NULL
             ? export_yield(u, "ScatterElements(x, %s, updates, axis={axis}%s)", index, reductions[a->mode])
             : TN_EUNSUPPORTED;
}

/* Ranges of one value each: the place of the value for every element. */
static tn_status index_spread(const export_use *u) {
  const tn_spread_attributes *a = u->node->attributes;
  int64_t *from = tn_arena_alloc(&u->x->arena, (size_t)a->count * sizeof *from + 1);
  if (from == NULL) return TN_ENOMEM;
  for (int64_t r = 0; r < a->starts.n; r++)
    for (int64_t i = a->starts.v[r]; i < (r + 1 < a->starts.n ? a->starts.v[r + 1] : a->count); i++)
      from[i] = a->index.v[r];
  const char *list = export_list(u->x, from, a->count);
  return list != NULL ? export_yield(u, "Gather(values, '%s')", list) : TN_ENOMEM;
}

static bool index_adds(const export_use *u) { return index_scatters(u, TN_SCATTER_ADD); }
static bool index_sets(const export_use *u) { return index_scatters(u, TN_SCATTER_SET); }
static bool index_takes_max(const export_use *u) { return index_scatters(u, TN_SCATTER_MAX); }
static bool index_takes_min(const export_use *u) { return index_scatters(u, TN_SCATTER_MIN); }

static bool index_sums(const export_use *u) {
  const tn_cumulative_attributes *a = u->node->attributes;
  return a->mode == TN_CUMULATIVE_SUM;
}

static tn_status index_cumulative(const export_use *u) {
  const tn_cumulative_attributes *a = u->node->attributes;
  return export_yield(u, "CumSum(x, %lld:i64, exclusive={exclusive}, reverse={reverse})", (long long)a->axis);
}

static tn_status index_top(const export_use *u, int64_t k, bool largest) {
  const tn_sort_attributes *a = u->node->attributes;
  const char *count = export_sizes(u, &k, 1);
  if (count == NULL) return TN_EUNSUPPORTED;
  return export_yield(
      u,
      "value, place = TopK(x, '%s', axis=%lld, largest=%d, sorted=1); Identity(value); Cast(place, to=i32)",
      count, (long long)a->axis, largest);
}

static tn_status index_sort(const export_use *u) {
  const tn_sort_attributes *a = u->node->attributes;
  const tn_type *x = export_type(u, 0);
  return index_top(u, x->dims[a->axis < 0 ? a->axis + x->rank : a->axis], a->descending != 0);
}

static tn_status index_topk(const export_use *u) {
  const tn_sort_attributes *a = u->node->attributes;
  return index_top(u, a->k, a->largest != 0);
}

const export_row export_rows_index[] = {
    {"gather", .emit = index_gather},
    {"embedding", "Gather(table, ids)"},
    {"scatter", .emit = index_write_scatter, .takes = index_sets},
    {"scatter", .emit = index_write_scatter, .takes = index_adds, .since = 16},
    {"scatter", .emit = index_write_scatter, .takes = index_takes_max, .since = 18},
    {"scatter", .emit = index_write_scatter, .takes = index_takes_min, .since = 18},
    {"spread", .emit = index_spread},
    {"cumulative", .emit = index_cumulative, .takes = index_sums},
    {"sort", .emit = index_sort, .results = 2},
    {"topk", .emit = index_topk, .results = 2},
    {NULL},
};
