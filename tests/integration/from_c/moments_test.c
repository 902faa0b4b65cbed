/* tests/integration/from_c/moments_test.c: batch_norm and layer_norm of data whose mean is 1,000 standard
 * deviations from 0, on each backend of the host. */
#include "tenon/random.h"
#include "tenon/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BATCH = 8, CHANNELS = 32, SPACE = 144, COUNT = BATCH * CHANNELS * SPACE };

static tn_context *context;
static tn_device *device;

static void open_device(const char *backend) {
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  tn_status status = tn_device_open(context, backend, 0, "threads = 2", &device);
  if (status != TN_OK) fail_msg("%s", tn_error_text(context));
}

static void close_device(void) {
  tn_device_close(device);
  tn_context_close(context);
}

/* Applies an op that returns (y, mean, third); reads the third result of n elements. */
static void read_statistic(const char *op, const float *x, int64_t rank, float *third, size_t n) {
  tn_type image = {TN_F32, 4, {BATCH, CHANNELS, 12, 12}}, rows = {TN_F32, 2, {BATCH * CHANNELS, SPACE}};
  tn_tensor *in = NULL, *out[3] = {NULL};
  tn_status status = tn_tensor_new(device, rank == 4 ? &image : &rows, &in);
  if (status == TN_OK) status = tn_tensor_write(in, x, COUNT * sizeof *x);
  if (status == TN_OK) status = tn_apply(device, op, &in, 1, out, 3);
  if (status == TN_OK) status = tn_tensor_read(out[2], third, n * sizeof *third);
  if (status != TN_OK) fail_msg("%s: %s", op, tn_error_text(device));
  tn_tensor_delete(in);
  for (int i = 0; i < 3; i++) tn_tensor_delete(out[i]);
}

/* The variance of `runs` runs of SPACE elements, `stride` elements apart. */
static double variance_of(const float *x, int64_t runs, int64_t stride) {
  double sum = 0, squares = 0, n = (double)(runs * SPACE);
  for (int64_t i = 0; i < runs * SPACE; i++) sum += (double)x[i / SPACE * stride + i % SPACE];
  for (int64_t i = 0; i < runs * SPACE; i++) {
    double apart = (double)x[i / SPACE * stride + i % SPACE] - sum / n;
    squares += apart * apart;
  }
  return squares / n;
}

static void expect(const char *op, int64_t i, double found, double expected) {
  if (!(fabs(found / expected - 1) <= 1e-5))
    fail_msg("%s: %lld has %.9g, expected %.9g", op, (long long)i, found, expected);
}

static void check(const char *backend) {
  static float x[COUNT], variance[CHANNELS], rstd[BATCH * CHANNELS];
  tn_rng rng = tn_rng_at(5, 0);
  for (int64_t i = 0; i < COUNT; i++) x[i] = 1000 + (float)tn_rng_between(&rng, -1.7, 1.7);
  open_device(backend);
  read_statistic("batch_norm", x, 4, variance, CHANNELS);
  read_statistic("layer_norm(epsilon=0)", x, 2, rstd, BATCH * CHANNELS);
  close_device();
  for (int64_t c = 0; c < CHANNELS; c++)
    expect("batch_norm", c, (double)variance[c], variance_of(x + c * SPACE, BATCH, CHANNELS * SPACE));
  for (int64_t r = 0; r < BATCH * CHANNELS; r++)
    expect("layer_norm", r, 1 / ((double)rstd[r] * (double)rstd[r]), variance_of(x + r * SPACE, 1, 0));
}

static void cpu_keeps_the_digits_of_variances(void **state) {
  (void)state;
  check("cpu");
}

static void onednn_keeps_the_digits_of_variances(void **state) {
  (void)state;
#ifdef HAS_ONEDNN
  check("onednn");
#else
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cpu_keeps_the_digits_of_variances),
      cmocka_unit_test(onednn_keeps_the_digits_of_variances),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
