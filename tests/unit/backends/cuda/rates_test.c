/* tests/unit/backends/cuda/rates_test.c: estimates of backends/cuda/rates.h beside published measurements,
 * those of docs/guide/devices.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>

#include "backends/cuda/rates.h"

/* A measurement, as a rate: operations a second of products, else bytes a second. */
typedef struct measurement {
  const char *what;
  tn_cuda_kind kind;
  double peak, reached;
} measurement;

static const measurement measurements[] = {
    {"bf16 product, A100 (ml-engineering)", TN_CUDA_PRODUCT, 312e12, 267.9e12},
    {"bf16 product, H100 (ml-engineering)", TN_CUDA_PRODUCT, 989e12, 792.1e12},
    {"causal attention, heads of 64, H200 (cudnn-frontend)", TN_CUDA_ATTENTION, 990e12, 310e12},
    {"its gradient", TN_CUDA_ATTENTION_GRAD, 990e12, 264e12},
    {"causal attention, heads of 128, 2048 tokens, H200 (cudnn-frontend)", TN_CUDA_WIDE_ATTENTION, 990e12,
     484e12},
    {"its gradient", TN_CUDA_WIDE_ATTENTION_GRAD, 990e12, 370e12},
    {"RMS norm and its gradient, H200 (cudnn-frontend)", TN_CUDA_ROWS, 4.8e12, 3.8e12},
    {"reading in order, GH200 (OpenCL-Benchmark)", TN_CUDA_STREAM, 4.02e12, 3.61e12},
};

static bool is_product(tn_cuda_kind kind) { return kind != TN_CUDA_STREAM && kind != TN_CUDA_ROWS; }

/* Of a launch so long that its own time does not count. */
static void estimates_are_near_measurements(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof measurements / sizeof *measurements; i++) {
    const measurement *m = &measurements[i];
    const tn_device_properties d = {.bytes_per_s = is_product(m->kind) ? 1e15 : m->peak, .launch_s = 2e-6};
    double s = is_product(m->kind) ? tn_cuda_estimate_s(&d, m->kind, 1, m->reached, m->peak)
                                   : tn_cuda_bytes_s(&d, m->kind, m->reached);
    if (!(fabs(s - 1) <= 0.25)) fail_msg("%s: an estimated %g s, measured 1 s", m->what, s);
  }
}

static void every_kind_has_shares(void **state) {
  (void)state;
  for (int kind = 0; kind < TN_CUDA_KINDS; kind++) {
    tn_cuda_share share = tn_cuda_share_of((tn_cuda_kind)kind);
    assert_true(share.memory > 0 && share.memory < 1);
    assert_true(share.arithmetic > 0 && share.arithmetic < 1);
  }
}

static void a_launch_takes_the_longer_of_both_times(void **state) {
  const tn_device_properties d = {.bytes_per_s = 1e12, .launch_s = 2e-6};
  (void)state;
  tn_cuda_share share = tn_cuda_share_of(TN_CUDA_PRODUCT);
  double memory_s = tn_cuda_estimate_s(&d, TN_CUDA_PRODUCT, 1e9, 1, 1e15);
  double arithmetic_s = tn_cuda_estimate_s(&d, TN_CUDA_PRODUCT, 1, 1e12, 1e15);
  assert_true(fabs(memory_s - (2e-6 + 1e-3 / share.memory)) < 1e-12);
  assert_true(fabs(arithmetic_s - (2e-6 + 1e-3 / share.arithmetic)) < 1e-12);
}

/* One tile more than there are multiprocessors takes a second round. */
static void the_last_round_leaves_multiprocessors_idle(void **state) {
  (void)state;
  assert_true(tn_cuda_busy_share(132, 132) == 1);
  assert_true(fabs(tn_cuda_busy_share(133, 132) - 133.0 / 264) < 1e-12);
  assert_true(fabs(tn_cuda_busy_share(33, 132) - 0.25) < 1e-12);
  assert_true(tn_cuda_busy_share(33, 0) == 1);
  assert_true(tn_cuda_busy_share(0, 132) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(estimates_are_near_measurements),
                                     cmocka_unit_test(every_kind_has_shares),
                                     cmocka_unit_test(a_launch_takes_the_longer_of_both_times),
                                     cmocka_unit_test(the_last_round_leaves_multiprocessors_idle)};
  return cmocka_run_group_tests_name("cuda rates", tests, NULL, NULL);
}
