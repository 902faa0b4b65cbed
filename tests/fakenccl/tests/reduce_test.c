/* A first light: all_reduce over threads and processes. */
#include "tests/fakenccl/tests/rig.h"

static void all_reduces(rig *r) {
  float *x = rig_floats(r, 1000);
  OK(L.f_ncclAllReduce(x, x, 1000, ncclFloat32, ncclSum, r->comm, r->stream));
  OK(L.f_cuStreamSynchronize(r->stream));
  CHECK(rig_is(r, x, 1000, (float)(r->ranks * (r->ranks + 1) / 2)));
  rig_free(r, x);
}

static void sums_over_threads(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n++) assert_int_equal(rig_run(1, n, all_reduces, NULL), 0);
  QUIET();
}

static void sums_over_processes(void **state) {
  (void)state;
  assert_int_equal(rig_run(2, 2, all_reduces, NULL), 0);
  assert_int_equal(rig_run(4, 1, all_reduces, NULL), 0);
  QUIET();
}

static const struct CMUnitTest tests[] = {
    RIG_TEST(sums_over_threads),
    RIG_TEST(sums_over_processes),
};
RIG_MAIN(tests)
