/* max_pool(dilation=) over one to three dimensions, against maxima by definition. */
#include <math.h>

#include "npy_files.h"

enum { MOST = 256 };

/* Windows over a channel of (1, 1, size...), whose missing dimensions have one element. */
typedef struct dilated_case {
  const char *dims, *call;
  int size[3], kernel[3], stride[3], padding[3], dilation[3], out[3];
} dilated_case;

static const dilated_case cases[] = {{"1, 9",
                                      "max_pool(3, stride=2, padding=1, dilation=2)",
                                      {1, 1, 9},
                                      {1, 1, 3},
                                      {1, 1, 2},
                                      {0, 0, 1},
                                      {1, 1, 2},
                                      {1, 1, 4}},
                                     {"1, 7, 6",
                                      "max_pool([2, 3], stride=[1, 2], padding=1, dilation=[3, 2], ceil=yes)",
                                      {1, 7, 6},
                                      {1, 2, 3},
                                      {1, 1, 2},
                                      {0, 1, 1},
                                      {1, 3, 2},
                                      {1, 6, 3}},
                                     {"1, 5, 4, 4",
                                      "max_pool(2, stride=[1, 1, 2], dilation=[2, 1, 3])",
                                      {5, 4, 4},
                                      {2, 2, 2},
                                      {1, 1, 2},
                                      {0, 0, 0},
                                      {2, 1, 3},
                                      {3, 3, 1}}};

/* The maximum of one window; elements beside the input do not count. */
static float dilated_max(const dilated_case *c, const float *x, const int *window) {
  float best = -INFINITY;
  int at[3];
  for (int tap = 0; tap < c->kernel[0] * c->kernel[1] * c->kernel[2]; tap++) {
    int rest = tap, inside = 1;
    for (int d = 2; d >= 0; d--) {
      at[d] = window[d] * c->stride[d] - c->padding[d] + rest % c->kernel[d] * c->dilation[d];
      rest /= c->kernel[d];
      inside &= at[d] >= 0 && at[d] < c->size[d];
    }
    if (inside) best = fmaxf(best, x[(at[0] * c->size[1] + at[1]) * c->size[2] + at[2]]);
  }
  return best;
}

static void check(const dilated_case *c) {
  int n = c->size[0] * c->size[1] * c->size[2], count = c->out[0] * c->out[1] * c->out[2], window[3], i = 0;
  float x[MOST];
  char ini[1024], shape[32];
  snprintf(ini, sizeof ini,
           "[run]\nname = pool\nmax_steps = 1\n[data]\nsource = random\nshape = %s\nclasses = 2\nbatch = "
           "2\n[model]\n"
           "inputs = image: f32[%s]\nlayers =\n    pooled: %s\n    flat: flatten\n    fc: linear(2)\n"
           "outputs = flat\nloss = cross_entropy <- fc, label\n[optimizer]\ntype = sgd\nlr = 0.1\n",
           c->dims, c->dims, c->call);
  file_write("pool.ini", ini);
  program_json(0, "train pool.ini");
  for (int k = 0; k < n; k++) x[k] = (float)(k * 37 % 101) - 120;
  write_npy("x.npy", 1, c->dims, x, (size_t)n);
  program_json(0, "predict pool.ini --input x.npy --output y.npy");
  snprintf(shape, sizeof shape, "1, %d", count);
  const float *y = read_npy("y.npy", shape, (size_t)count);
  for (window[0] = 0; window[0] < c->out[0]; window[0]++)
    for (window[1] = 0; window[1] < c->out[1]; window[1]++)
      for (window[2] = 0; window[2] < c->out[2]; window[2]++, i++)
        assert_true(y[i] == dilated_max(c, x, window));
}

static void dilated_windows_have_their_maxima(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&cases[i]);
}

static void a_window_that_does_not_fit_is_refused(void **state) {
  (void)state;
  file_write("pool.ini", "[run]\nname = pool\n[data]\nsource = random\nshape = 1, 5\nclasses = 2\n[model]\n"
                         "inputs = x: f32[1, 5]\nlayers = max_pool(3, dilation=3)\nloss = cross_entropy\n");
  assert_int_equal(program_run("plan pool.ini"), 65);
  assert_non_null(
      strstr(program_err, "a kernel of 3 with dilation 3 does not fit 5 elements with padding 0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(dilated_windows_have_their_maxima, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_window_that_does_not_fit_is_refused, program_open, program_close),
  };
  return cmocka_run_group_tests_name("dilated_pool", tests, NULL, NULL);
}
