#include "backends/cpu/kernels/common/rows.h"

#include "backends/cpu/kernels/common/clones.h"
#include "backends/cpu/kernels/common/vmath.h"

enum { LANES = 32 }; /* partial sums, so that loops vectorize */

static inline double rows_add_lanes(double *lanes) {
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return lanes[0];
}

/* Sums `value`, an expression of x[k], in lanes. */
#define SUM(value)                                                                                           \
  double lanes[LANES] = {0};                                                                                 \
  int64_t i = 0;                                                                                             \
  for (; i + LANES <= n; i += LANES)                                                                         \
    for (int j = 0; j < LANES; j++) {                                                                        \
      const int64_t k = i + j;                                                                               \
      lanes[j] += (double)(value);                                                                           \
    }                                                                                                        \
  for (int64_t k = i; k < n; k++) lanes[k - i] += (double)(value);                                           \
  return rows_add_lanes(lanes)

#define EACH(statement) TN_CPU_VECTOR for (int64_t k = 0; k < n; k++) statement

#define LARGER(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))

#define X          float
#define EXP        vm_exp
#define LANE(name) f32_##name
#define FUNCTIONS  f32_functions
#include "backends/cpu/kernels/common/rows_lane.h"
#undef X
#undef EXP
#undef LANE
#undef FUNCTIONS
#define X          double
#define EXP        exp
#define LANE(name) f64_##name
#define FUNCTIONS  f64_functions
#include "backends/cpu/kernels/common/rows_lane.h"

const tn_row_functions *tn_row_functions_of(int32_t dtype) {
  return dtype == TN_F64 ? &f64_functions : &f32_functions;
}

const void *tn_row_load(const tn_view *view, int64_t at, int64_t n, tn_row_tile *tile) {
  if (view->type.dtype == TN_F64) return (const double *)view->data + at;
  return tn_cpu_f32(view->type.dtype, view->data, at, n, tile->f32);
}

void *tn_row_begin(const tn_view *view, int64_t at, tn_row_tile *tile) {
  return tn_lane_is_stored(view->type.dtype) ? tn_cpu_at(view->data, view->type.dtype, at) : tile->f32;
}

void tn_row_end(const tn_view *view, int64_t at, int64_t n, const tn_row_tile *tile) {
  if (tn_lane_is_stored(view->type.dtype)) return;
  tn_cpu_narrow(view->type.dtype, tile->f32, tn_cpu_at(view->data, view->type.dtype, at), n);
}

static tn_rows rows_divided(tn_rows r) {
  int64_t width = r.inner < TN_ROW_BLOCK ? r.inner : TN_ROW_BLOCK;
  int64_t work = r.n * width;
  r.blocks = (r.inner + TN_ROW_BLOCK - 1) / TN_ROW_BLOCK;
  r.tasks = r.outer * r.blocks;
  r.tasks_per_chunk = work > 0 && work < TN_ROW_CHUNK ? TN_ROW_CHUNK / work : 1;
  r.chunks = (r.tasks + r.tasks_per_chunk - 1) / r.tasks_per_chunk;
  return r;
}

tn_rows tn_rows_of(const tn_type *type, int64_t axis) {
  if (axis < 0) axis += type->rank;
  tn_rows r = {.outer = 1, .n = type->dims[axis], .inner = 1};
  for (int32_t i = 0; i < type->rank; i++) {
    if (i < axis) r.outer *= type->dims[i];
    if (i > axis) r.inner *= type->dims[i];
  }
  return rows_divided(r);
}

tn_rows tn_rows_trailing(const tn_type *type, int64_t trailing) {
  tn_rows r = {.outer = 1, .n = 1, .inner = 1};
  for (int32_t i = 0; i < type->rank; i++) *(i < type->rank - trailing ? &r.outer : &r.n) *= type->dims[i];
  return rows_divided(r);
}
