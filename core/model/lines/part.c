/* core/model/lines/part.c: parts of values in lines that compute, as in x[:, 0] and x[..., 1:-1, None]. A
 * slice takes the elements, and a reshape drops the dimensions of single numbers and adds those of None. */
#include "core/model/assemble.h"

/* The part as arguments of the ops `slice` and `reshape`. */
typedef struct part_plan {
  const tn_type *x;
  int64_t starts[TN_MAX_RANK], stops[TN_MAX_RANK], steps[TN_MAX_RANK], dims[TN_MAX_RANK];
  int32_t axis, rank;                /* dimensions of x that are done, and those of the result */
  bool slices, steps_over, reshapes; /* steps_over: a step is more than 1 */
} part_plan;

static tn_status part_add_dim(const tn_env *env, part_plan *p, int64_t dim) {
  if (p->rank == TN_MAX_RANK)
    return tn_failf(env, TN_EINVAL, "the part has more than %d dimensions, expected at most %d",
                    (int)TN_MAX_RANK, (int)TN_MAX_RANK);
  p->dims[p->rank++] = dim;
  return TN_OK;
}

static void part_take(part_plan *p, int64_t start, int64_t stop, int64_t step) {
  int32_t axis = p->axis++;
  p->starts[axis] = start;
  p->stops[axis] = stop;
  p->steps[axis] = step;
  p->steps_over = p->steps_over || step > 1;
  p->slices = p->slices || start > 0 || stop < p->x->dims[axis] || step > 1;
}

static tn_status part_take_one(const tn_env *env, part_plan *p, const tn_index *index) {
  int64_t size = p->x->dims[p->axis], position = tn_index_position(index, size);
  if (position < 0)
    return tn_failf(env, TN_EINVAL, "dimension %d has size %lld, expected a number from %lld to %lld",
                    p->axis, (long long)size, (long long)-size, (long long)size - 1);
  part_take(p, position, position + 1, 1);
  p->reshapes = true;
  return TN_OK;
}

static tn_status part_take_range(const tn_env *env, part_plan *p, const tn_index *index) {
  int64_t size = p->x->dims[p->axis], start, stop;
  if (!tn_index_range(index, size, &start, &stop))
    return tn_failf(env, TN_EINVAL, "the range is empty, expected one inside dimension %d of size %lld",
                    p->axis, (long long)size);
  part_take(p, start, stop, index->step);
  return part_add_dim(env, p, (stop - start - 1) / index->step + 1);
}

static tn_status part_take_whole(const tn_env *env, part_plan *p, int32_t end) {
  while (p->axis < end) {
    TN_TRY(part_add_dim(env, p, p->x->dims[p->axis]));
    part_take(p, 0, p->x->dims[p->axis], 1);
  }
  return TN_OK;
}

static tn_status part_take_index(const tn_env *env, part_plan *p, const tn_index *index, int32_t behind) {
  switch (index->kind) {
  case TN_INDEX_ONE: return part_take_one(env, p, index);
  case TN_INDEX_RANGE: return part_take_range(env, p, index);
  case TN_INDEX_REST: return part_take_whole(env, p, p->x->rank - behind);
  default: p->reshapes = true; return part_add_dim(env, p, 1);
  }
}

/* The number of dimensions that indices stand for. */
static int32_t part_count(const tn_index *index, int32_t n) {
  int32_t count = 0;
  for (int32_t i = 0; i < n; i++) count += index[i].kind == TN_INDEX_ONE || index[i].kind == TN_INDEX_RANGE;
  return count;
}

static tn_status part_check(const tn_env *env, const part_plan *p, const tn_index *index, int32_t n) {
  int32_t rests = 0, count = part_count(index, n);
  for (int32_t i = 0; i < n; i++) rests += index[i].kind == TN_INDEX_REST;
  if (rests > 1) return tn_failf(env, TN_EINVAL, "'...' stands %d times, expected it once at most", rests);
  if (count > p->x->rank)
    return tn_failf(env, TN_EINVAL, "%d dimensions are indexed, expected at most %d", count, p->x->rank);
  return TN_OK;
}

static tn_status part_plan_indices(const tn_env *env, part_plan *p, const tn_index *index, int32_t n) {
  TN_TRY(part_check(env, p, index, n));
  for (int32_t i = 0; i < n; i++)
    TN_TRY(part_take_index(env, p, &index[i], part_count(index + i + 1, n - i - 1)));
  return part_take_whole(env, p, p->x->rank);
}

tn_status tn_part_emit(const tn_model_scope *scope, tn_val x, const tn_index *index, int32_t n, tn_val *y) {
  tn_assembly *a = scope->assembly;
  const tn_type type = *tn_val_type(a->b, x);
  part_plan p = {.x = &type};
  char text[TN_TYPE_TEXT];
  tn_status status = part_plan_indices(a->env, &p, index, n);
  if (status != TN_OK)
    return tn_wrap(a->env, status, "%s of %s", tn_index_text(&a->arena, index, n),
                   tn_type_format(&type, text));
  *y = x;
  if (p.slices)
    *y = tn_slice(a->b, *y, type.rank, p.starts, type.rank, p.stops, p.steps_over ? type.rank : 0, p.steps);
  if (p.reshapes) *y = tn_reshape(a->b, *y, p.rank, p.dims);
  return tn_build_status(a->b);
}
