/* Pooling and its gradients against the definition: every window visits every element it covers. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_avg_pool2d, tn_kernel_cpu_avg_pool2d_grad, tn_kernel_cpu_max_pool2d,
    tn_kernel_cpu_max_pool2d_grad;

typedef struct pool {
  int64_t kernel[2], stride[2], padding[2];
  int32_t include_pad;
  tn_type x_type, y_type, index_type;
} pool;

/* Called for each element of x in the window of element y, with the window's divisor. */
typedef void (*visitor)(void *arg, int64_t x, int64_t y, double divisor);

static double divisor_of(const pool *p, int32_t axis, int64_t start) {
  int64_t size = p->x_type.dims[2 + axis], count = 0;
  for (int64_t i = start; i < start + p->kernel[axis]; i++)
    count += p->include_pad ? i < size + p->padding[axis] : i >= 0 && i < size;
  return (double)count;
}

static void visit_window(const pool *p, int64_t plane, int64_t i, int64_t j, visitor visit, void *arg) {
  const int64_t *x = p->x_type.dims + 2, *y = p->y_type.dims + 2;
  int64_t top = i * p->stride[0] - p->padding[0], left = j * p->stride[1] - p->padding[1];
  double divisor = divisor_of(p, 0, top) * divisor_of(p, 1, left);
  for (int64_t r = top; r < top + p->kernel[0]; r++)
    for (int64_t c = left; c < left + p->kernel[1]; c++)
      if (r >= 0 && r < x[0] && c >= 0 && c < x[1])
        visit(arg, (plane * x[0] + r) * x[1] + c, (plane * y[0] + i) * y[1] + j, divisor);
}

static void visit_all(const pool *p, visitor visit, void *arg) {
  for (int64_t plane = 0; plane < p->x_type.dims[0] * p->x_type.dims[1]; plane++)
    for (int64_t i = 0; i < p->y_type.dims[2]; i++)
      for (int64_t j = 0; j < p->y_type.dims[3]; j++) visit_window(p, plane, i, j, visit, arg);
}

static void run(const tn_kernel *kernel, const pool *p, const tn_type *in[2], void *in_data[2],
                const tn_type *out, int32_t n_out, void *out_data[2]) {
  static rig_match m;
  tn_pool2d_attributes attributes = {.kernel = {2, p->kernel},
                                     .stride = {2, p->stride},
                                     .padding = {2, p->padding},
                                     .include_pad = p->include_pad,
                                     .dims = {4, p->x_type.dims}};
  if (p->stride[0] == p->kernel[0] && p->stride[1] == p->kernel[1]) attributes.stride.n = 0;
  int32_t operands[2], n_in = in[1] != NULL ? 2 : 1;
  rig_start(&m);
  for (int32_t i = 0; i < n_in; i++) operands[i] = rig_in(&m, in[i]);
  int32_t first = rig_node(&m, kernel->item.name, &attributes, operands, n_in, out, n_out);
  for (int32_t i = 0; i < n_out; i++) rig_out(&m, first + i);
  rig_run_on_all(kernel, &m, in_data, out_data);
}

typedef struct work {
  const pool *p;
  void *x, *y, *dy, *dx;
  int32_t *index;
  double *value, *term; /* the expected value, and the sum of the magnitudes of its terms */
} work;

static void check_sums(const work *w, const tn_type *type, const void *data) {
  int32_t wide = type->dtype == TN_F64 ? TN_F64 : TN_F32;
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double bound = rig_ulp(type->dtype, w->value[i]) + 20 * rig_ulp(wide, w->term[i]);
    assert_true(fabs(rig_get(type, data, i) - w->value[i]) <= bound);
  }
}

/* ---- maxima ---- */

static void check_maximum(void *arg, int64_t x, int64_t y, double divisor) {
  work *w = arg;
  int64_t size = w->p->x_type.dims[2] * w->p->x_type.dims[3], best = x / size * size + w->index[y];
  double value = rig_get(&w->p->x_type, w->x, x), largest = rig_get(&w->p->x_type, w->x, best);
  (void)divisor;
  if (isnan(largest)) {
    assert_false(isnan(value) && x < best);
    return;
  }
  assert_true(value < largest || (value == largest && x >= best));
  w->term[y] += x == best; /* the index is in the window */
}

static void route(void *arg, int64_t x, int64_t y, double divisor) {
  work *w = arg;
  int64_t size = w->p->x_type.dims[2] * w->p->x_type.dims[3];
  (void)divisor;
  if (x % size != w->index[y]) return;
  w->value[x] += rig_get(&w->p->y_type, w->dy, y);
  w->term[x] += fabs(rig_get(&w->p->y_type, w->dy, y));
}

static void check_max(const pool *p, work *w, size_t count) {
  const tn_type *x[2] = {&p->x_type, NULL}, *dy[2] = {&p->y_type, &p->index_type};
  tn_type out[2] = {p->y_type, p->index_type};
  run(&tn_kernel_cpu_max_pool2d, p, x, (void *[]){w->x, NULL}, out, 2, (void *[]){w->y, w->index});
  visit_all(p, check_maximum, w);
  int64_t x_plane = p->x_type.dims[2] * p->x_type.dims[3], y_plane = p->y_type.dims[2] * p->y_type.dims[3];
  for (int64_t i = 0; i < tn_type_count(&p->y_type); i++) {
    double got = rig_get(&p->y_type, w->y, i);
    double there = rig_get(&p->x_type, w->x, i / y_plane * x_plane + w->index[i]);
    assert_true(isnan(got) ? isnan(there) : got == there && w->term[i] == 1);
  }
  run(&tn_kernel_cpu_max_pool2d_grad, p, dy, (void *[]){w->dy, w->index}, &p->x_type, 1,
      (void *[]){w->dx, NULL});
  memset(w->term, 0, count * sizeof(double));
  visit_all(p, route, w);
  check_sums(w, &p->x_type, w->dx);
}

/* ---- averages ---- */

static void average(void *arg, int64_t x, int64_t y, double divisor) {
  work *w = arg;
  double term = rig_get(&w->p->x_type, w->x, x) / divisor;
  w->value[y] += term;
  w->term[y] += fabs(term);
}

static void spread(void *arg, int64_t x, int64_t y, double divisor) {
  work *w = arg;
  double term = rig_get(&w->p->y_type, w->dy, y) / divisor;
  w->value[x] += term;
  w->term[x] += fabs(term);
}

static void check_avg(const pool *p, work *w, size_t count) {
  const tn_type *x[2] = {&p->x_type, NULL}, *dy[2] = {&p->y_type, NULL};
  memset(w->value, 0, count * sizeof(double));
  memset(w->term, 0, count * sizeof(double));
  run(&tn_kernel_cpu_avg_pool2d, p, x, (void *[]){w->x, NULL}, &p->y_type, 1, (void *[]){w->y, NULL});
  visit_all(p, average, w);
  check_sums(w, &p->y_type, w->y);
  memset(w->value, 0, count * sizeof(double));
  memset(w->term, 0, count * sizeof(double));
  run(&tn_kernel_cpu_avg_pool2d_grad, p, dy, (void *[]){w->dy, NULL}, &p->x_type, 1, (void *[]){w->dx, NULL});
  visit_all(p, spread, w);
  check_sums(w, &p->x_type, w->dx);
}

static void check_all(const pool *p, tn_rng *rng, int32_t nans) {
  size_t nx = (size_t)tn_type_count(&p->x_type), ny = (size_t)tn_type_count(&p->y_type), count = nx + ny + 1;
  work w = {.p = p, .x = rig_drawn(&p->x_type, rng), .dy = rig_drawn(&p->y_type, rng)};
  w.y = rig_tensor(&p->y_type);
  w.dx = rig_tensor(&p->x_type);
  w.index = calloc(ny + 1, sizeof *w.index);
  w.value = calloc(count, sizeof(double));
  w.term = calloc(count, sizeof(double));
  for (int32_t i = 0; i < nans; i++)
    rig_put(&p->x_type, w.x, tn_rng_below(rng, (int64_t)nx), i % 2 ? NAN : -INFINITY);
  check_max(p, &w, count);
  if (nans == 0) check_avg(p, &w, count);
  free(w.x), free(w.y), free(w.dx), free(w.dy), free(w.index), free(w.value), free(w.term);
}

/* The number of windows, by the op's definition. Rounding up may add one that begins inside x or its padding.
 */
static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int32_t up) {
  int64_t room = size + 2 * padding - kernel, count = (up ? room + stride - 1 : room) / stride + 1;
  return up && (count - 1) * stride >= size + padding ? count - 1 : count;
}

static pool draw(int32_t dtype, tn_rng *rng) {
  pool p = {.include_pad = (int32_t)tn_rng_below(rng, 2)};
  int64_t x[4] = {1 + tn_rng_below(rng, 3), 1 + tn_rng_below(rng, 4)}, y[4] = {x[0], x[1]};
  for (int32_t i = 0; i < 2; i++) {
    p.kernel[i] = 1 + tn_rng_below(rng, 4);
    p.stride[i] = tn_rng_below(rng, 3) == 0 ? p.kernel[i] : 1 + tn_rng_below(rng, 4);
    p.padding[i] = tn_rng_below(rng, p.kernel[i] / 2 + 1);
    x[2 + i] = p.kernel[i] + tn_rng_below(rng, 12);
    y[2 + i] = windows(x[2 + i], p.kernel[i], p.stride[i], p.padding[i], (int32_t)tn_rng_below(rng, 2));
  }
  p.x_type = rig_type(dtype, 4, x);
  p.y_type = rig_type(dtype, 4, y);
  p.index_type = rig_type(TN_I32, 4, y);
  return p;
}

static const int32_t dtypes[4] = {TN_F32, TN_F64, TN_F16, TN_BF16};

static void pools_of_drawn_shapes_follow_the_definition(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(21, 0);
  for (int32_t i = 0; i < 120; i++) {
    pool p = draw(dtypes[i % 4], &rng);
    check_all(&p, &rng, 0);
  }
}

static void nan_is_the_largest_and_the_first_counts(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(22, 0);
  for (int32_t i = 0; i < 60; i++) {
    pool p = draw(dtypes[i % 4], &rng);
    check_all(&p, &rng, 6);
  }
}

static void many_planes_and_none_are_pooled(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(23, 0);
  pool p = {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .include_pad = 1};
  p.x_type = RIG_TYPE(TN_F32, 4, 50, 23, 23);
  p.y_type = RIG_TYPE(TN_F32, 4, 50, 12, 12);
  p.index_type = RIG_TYPE(TN_I32, 4, 50, 12, 12);
  check_all(&p, &rng, 0);
  p.x_type.dims[0] = p.y_type.dims[0] = p.index_type.dims[0] = 0;
  check_all(&p, &rng, 0);
}

static void integer_types_are_unsupported(void **state) {
  (void)state;
  pool p = {.kernel = {1, 1}, .stride = {1, 1}};
  tn_pool2d_attributes attributes = {
      .kernel = {2, p.kernel}, .stride = {2, p.stride}, .padding = {2, p.padding}};
  tn_type type = RIG_TYPE(TN_I32, 1, 1, 1, 1);
  static rig_match m;
  rig_start(&m);
  int32_t in[1] = {rig_in(&m, &type)};
  rig_out(&m, rig_node(&m, "avg_pool2d", &attributes, in, 1, &type, 1));
  assert_int_equal(rig_query(&tn_kernel_cpu_avg_pool2d, &m).status, TN_EUNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pools_of_drawn_shapes_follow_the_definition),
      cmocka_unit_test(nan_is_the_largest_and_the_first_counts),
      cmocka_unit_test(many_planes_and_none_are_pooled),
      cmocka_unit_test(integer_types_are_unsupported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
