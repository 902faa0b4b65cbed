/* tests/fakecuda/cudnn/tests/run_test.c: what the double computes, against sums in f64 by the definition of
 * each operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include "tests/fakecuda/cudnn/tests/rig.h"

#define FORWARD CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
#define FILTER  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
#define DATA    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR

static cudnnHandle_t handle(void) {
  static cudnnHandle_t made;
  rig_cuda();
  if (!made) assert_int_equal(rig_double()->cudnnCreate(&made), CUDNN_STATUS_SUCCESS);
  return made;
}

static rig_graph *begin(void) {
  cudnnHandle_t h = handle();
  return rig_new(rig_double(), h);
}

static void check(const rig_graph *g) {
  if (g->status != CUDNN_STATUS_SUCCESS)
    fail_msg("status %d, line %d of rig.c: %s", (int)g->status, g->line, g->dnn->fakecudnn_why());
}

static void run(rig_graph *g, int engine) {
  check(g);
  rig_execute(g, engine);
  check(g);
}

static void end(rig_graph *g) {
  rig_free_memory();
  rig_free(g);
}

static double tolerance(int type) {
  return type == CUDNN_DATA_HALF ? 1e-3 : type == CUDNN_DATA_BFLOAT16 ? 8e-3 : 1e-5;
}

static void compare(const rig_graph *g, int tensor, const double *expected) {
  double *got = rig_read(g, tensor), most = 0;
  for (int64_t i = 0; i < rig_elements(g, tensor); i++) {
    if (fabs(expected[i]) > most) most = fabs(expected[i]);
  }
  double allowed = tolerance(g->tensors[tensor].type) * (most > 1 ? most : 1);
  for (int64_t i = 0; i < rig_elements(g, tensor); i++) {
    if (!(fabs(got[i] - expected[i]) <= allowed))
      fail_msg("tensor %d, element %lld: %g, expected %g", tensor, (long long)i, got[i], expected[i]);
  }
  free(got);
}

/* ---- convolutions ---- */

typedef struct window {
  int64_t n, c, h, w, k, r, groups, stride, padding, dilation;
} window;

static int64_t out_of(const window *v, int64_t in) {
  return (in + 2 * v->padding - v->dilation * (v->r - 1) - 1) / v->stride + 1;
}

/* Calls `term` for each product: offsets in x, w, y, row-major. */
static void each_product(const window *v, void (*term)(double *const of[3], const int64_t at[3]),
                         double *const of[3]) {
  int64_t p = out_of(v, v->h), q = out_of(v, v->w), cg = v->c / v->groups, kg = v->k / v->groups;
  for (int64_t i = 0; i < v->n * v->k * p * q; i++) {
    int64_t n = i / (v->k * p * q), k = i / (p * q) % v->k, y = i / q % p, x = i % q;
    for (int64_t j = 0; j < cg * v->r * v->r; j++) {
      int64_t c = j / (v->r * v->r), r = j / v->r % v->r, s = j % v->r;
      int64_t in_y = y * v->stride - v->padding + r * v->dilation,
              in_x = x * v->stride - v->padding + s * v->dilation;
      if (in_y < 0 || in_y >= v->h || in_x < 0 || in_x >= v->w) continue;
      term(of, (const int64_t[]){((n * v->c + k / kg * cg + c) * v->h + in_y) * v->w + in_x,
                                 k * cg * v->r * v->r + j, i});
    }
  }
}

static void forward_term(double *const of[3], const int64_t at[3]) {
  of[2][at[2]] += of[0][at[0]] * of[1][at[1]];
}
static void filter_term(double *const of[3], const int64_t at[3]) {
  of[1][at[1]] += of[0][at[0]] * of[2][at[2]];
}
static void data_term(double *const of[3], const int64_t at[3]) {
  of[0][at[0]] += of[1][at[1]] * of[2][at[2]];
}

static void check_convolution(int kind, int type, const window *v, int engine) {
  rig_graph *g = begin();
  int t[3] = {rig_image(g, type, RIG_MEMORY, v->n, v->c, v->h, v->w),
              rig_image(g, type, RIG_MEMORY, v->k, v->c / v->groups, v->r, v->r),
              rig_image(g, type, RIG_MEMORY, v->n, v->k, out_of(v, v->h), out_of(v, v->w))};
  int out = kind == FORWARD ? 2 : kind == FILTER ? 1 : 0;
  rig_convolve(g, kind, t[0], t[1], t[2], v->stride, v->padding, v->dilation);
  rig_close(g);
  rig_fill(g, 7);
  double *of[3];
  for (int i = 0; i < 3; i++) of[i] = rig_read(g, t[i]);
  for (int64_t i = 0; i < rig_elements(g, t[out]); i++) of[out][i] = 0;
  each_product(v, out == 2 ? forward_term : out == 1 ? filter_term : data_term, of);
  run(g, engine);
  compare(g, t[out], of[out]);
  for (int i = 0; i < 3; i++) free(of[i]);
  end(g);
}

static void convolutions(void **state) {
  (void)state;
  static const window windows[] = {
      {2, 8, 7, 6, 16, 3, 1, 1, 1, 1}, {1, 5, 9, 9, 7, 3, 1, 2, 1, 1},  {3, 8, 5, 5, 8, 1, 1, 1, 0, 1},
      {2, 6, 8, 8, 9, 3, 3, 1, 0, 1},  {2, 4, 9, 11, 4, 3, 4, 2, 2, 2}, {1, 24, 12, 12, 40, 5, 1, 3, 2, 1},
  };
  static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    for (int type = 0; type < 3; type++) {
      check_convolution(FORWARD, types[type], &windows[i], 0);
      check_convolution(DATA, types[type], &windows[i], 0);
      check_convolution(FILTER, types[type], &windows[i], 0);
      check_convolution(FILTER, types[type], &windows[i], 1);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
