#include "kernels/rows.h"

#include "kernels/clones.h"
#include "kernels/vmath.h"

enum { LANES = 32 }; /* separate sums, so that loops vectorize */

static inline double fold(double *lanes) {
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return lanes[0];
}

/* Sums `value`, which may use x[i], in lanes. */
#define SUM(value)                                                                                           \
  double lanes[LANES] = {0};                                                                                 \
  int64_t i = 0;                                                                                             \
  for (; i + LANES <= n; i += LANES)                                                                         \
    for (int j = 0; j < LANES; j++) {                                                                        \
      const int64_t k = i + j;                                                                               \
      lanes[j] += (double)(value);                                                                           \
    }                                                                                                        \
  for (int64_t k = i; k < n; k++) lanes[k - i] += (double)(value);                                           \
  return fold(lanes)

#define EACH(statement) TN_CPU_VECTOR for (int64_t k = 0; k < n; k++) statement

#define LARGER(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))

#define ROW_FUNCTIONS(X, EXP, name)                                                                          \
  static TN_CPU_CLONES double name##_largest(const void *from, int64_t n, double so_far) {                   \
    const X *x = from;                                                                                       \
    X lanes[LANES];                                                                                          \
    int64_t i = 0;                                                                                           \
    for (int j = 0; j < LANES; j++) lanes[j] = (X)so_far;                                                    \
    for (; i + LANES <= n; i += LANES)                                                                       \
      for (int j = 0; j < LANES; j++) lanes[j] = LARGER(x[i + j], lanes[j]);                                 \
    for (int j = 0; i < n; i++, j++) lanes[j] = LARGER(x[i], lanes[j]);                                      \
    for (int j = 1; j < LANES; j++) lanes[0] = LARGER(lanes[j], lanes[0]);                                   \
    return (double)lanes[0];                                                                                 \
  }                                                                                                          \
  static TN_CPU_CLONES double name##_sum(const void *from, int64_t n) {                                      \
    const X *x = from;                                                                                       \
    SUM(x[k]);                                                                                               \
  }                                                                                                          \
  static TN_CPU_CLONES double name##_sum_exp(const void *from, int64_t n, double shift) {                    \
    const X *x = from, m = (X)shift;                                                                         \
    SUM(EXP(x[k] - m));                                                                                      \
  }                                                                                                          \
  static TN_CPU_CLONES double name##_sum_squares(const void *from, int64_t n, double shift) {                \
    const X *x = from;                                                                                       \
    SUM(((double)x[k] - shift) * ((double)x[k] - shift));                                                    \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_softmax(const void *from, void *to, int64_t n, double shift,              \
                                           double sum) {                                                     \
    const X *x = from, m = (X)shift, s = (X)sum;                                                             \
    X *y = to;                                                                                               \
    EACH(y[k] = EXP(x[k] - m) / s);                                                                          \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_difference(const void *from, void *to, int64_t n, double shift,           \
                                              double log) {                                                  \
    const X *x = from, m = (X)shift, l = (X)log;                                                             \
    X *y = to;                                                                                               \
    EACH(y[k] = (x[k] - m) - l);                                                                             \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_scale(const void *from, void *to, int64_t n, double shift,                \
                                         double scale) {                                                     \
    const X *x = from, m = (X)shift, s = (X)scale;                                                           \
    X *y = to;                                                                                               \
    EACH(y[k] = (x[k] - m) * s);                                                                             \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_each_largest(const void *from, int64_t n, void *so_far) {                 \
    const X *x = from;                                                                                       \
    X *m = so_far;                                                                                           \
    EACH(m[k] = LARGER(x[k], m[k]));                                                                         \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_each_sum(const void *from, int64_t n, double *sum) {                      \
    const X *x = from;                                                                                       \
    EACH(sum[k] += (double)x[k]);                                                                            \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_each_sum_exp(const void *from, int64_t n, const void *shift,              \
                                                double *sum) {                                               \
    const X *x = from, *m = shift;                                                                           \
    EACH(sum[k] += (double)EXP(x[k] - m[k]));                                                                \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_each_softmax(const void *from, void *to, int64_t n, const void *shift,    \
                                                const double *sum) {                                         \
    const X *x = from, *m = shift;                                                                           \
    X *y = to;                                                                                               \
    EACH(y[k] = EXP(x[k] - m[k]) / (X)sum[k]);                                                               \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_each_difference(const void *from, void *to, int64_t n, const void *shift, \
                                                   const double *log) {                                      \
    const X *x = from, *m = shift;                                                                           \
    X *y = to;                                                                                               \
    EACH(y[k] = (x[k] - m[k]) - (X)log[k]);                                                                  \
  }                                                                                                          \
  static const tn_row_functions name = {name##_largest,      name##_sum,          name##_sum_exp,            \
                                        name##_sum_squares,  name##_softmax,      name##_difference,         \
                                        name##_scale,        name##_each_largest, name##_each_sum,           \
                                        name##_each_sum_exp, name##_each_softmax, name##_each_difference}

ROW_FUNCTIONS(float, vm_exp, f32);
ROW_FUNCTIONS(double, exp, f64);

const tn_row_functions *tn_row_functions_of(int32_t dtype) { return dtype == TN_F64 ? &f64 : &f32; }

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

static tn_rows divided(tn_rows r) {
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
  return divided(r);
}

tn_rows tn_rows_trailing(const tn_type *type, int64_t trailing) {
  tn_rows r = {.outer = 1, .n = 1, .inner = 1};
  for (int32_t i = 0; i < type->rank; i++) *(i < type->rank - trailing ? &r.outer : &r.n) *= type->dims[i];
  return divided(r);
}
