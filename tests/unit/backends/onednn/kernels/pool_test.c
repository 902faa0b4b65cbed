#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_avg_pool2d, tn_kernel_cpu_avg_pool2d_grad, tn_kernel_cpu_max_pool2d,
    tn_kernel_cpu_max_pool2d_grad, tn_kernel_onednn_avg_pool2d, tn_kernel_onednn_avg_pool2d_grad,
    tn_kernel_onednn_max_pool2d, tn_kernel_onednn_max_pool2d_grad, tn_kernel_onednn_max_pool2d_values;

typedef struct pool {
  int64_t x[4], kernel[2], stride[2], padding[2];
  int32_t ceil, include_pad;
} pool;

static int64_t extent(const pool *p, int32_t i) {
  int64_t in = p->x[2 + i], padding = p->padding[i], stride = p->stride[i];
  int64_t span = in + 2 * padding - p->kernel[i], out = (span + (p->ceil ? stride - 1 : 0)) / stride + 1;
  return p->ceil && (out - 1) * stride >= in + padding ? out - 1 : out;
}

static void spoil(const tn_type *type, void *data, tn_rng *rng) {
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    uint64_t draw = tn_rng_below(rng, 24);
    if (draw == 0) rig_put(type, data, i, NAN);
    if (draw == 1) rig_put(type, data, i, -INFINITY);
    if (draw > 12) rig_put(type, data, i, 1); /* ties */
  }
}

static void check(const tn_kernel *own, const tn_kernel *reference, const char *op, const pool *p,
                  const tn_type *in, void *const *data, int32_t n_in, const tn_type *out, int32_t n_out,
                  double tolerance) {
  static rig_match m;
  int32_t number[2];
  tn_pool2d_attributes a = {.kernel = {2, p->kernel},
                            .stride = {2, p->stride},
                            .padding = {2, p->padding},
                            .ceil = p->ceil,
                            .include_pad = p->include_pad,
                            .dims = {4, p->x}};
  rig_start(&m);
  for (int32_t i = 0; i < n_in; i++) number[i] = rig_in(&m, &in[i]);
  int32_t first = rig_node(&m, op, &a, number, n_in, out, n_out);
  for (int32_t i = 0; i < n_out; i++) rig_out(&m, first + i);
  if (rig_query(own, &m).status == TN_EUNSUPPORTED) {
    assert_true(p->x[1] % 8 != 0);
    return;
  }
  ways_check(own, reference, &m, data, tolerance, 0);
  rig_sweep_allocations(own, &m);
}

/* The reference without its second result. */
static tn_status launch_values(tn_launch *l) {
  tn_view out[2] = {l->out[0], l->out[0]};
  tn_launch both = *l;
  out[1].type.dtype = TN_I32;
  out[1].data = rig_tensor(&out[1].type);
  both.n_out = 2;
  both.out = out;
  tn_status status = tn_kernel_cpu_max_pool2d.launch(&both);
  free(out[1].data);
  return status;
}

static void check_pool(const pool *p, int32_t dtype, tn_rng *rng) {
  tn_type x = rig_type(dtype, 4, p->x), y = x, index;
  y.dims[2] = extent(p, 0);
  y.dims[3] = extent(p, 1);
  index = y;
  index.dtype = TN_I32;
  void *values = rig_drawn(&x, rng), *dy = rig_drawn(&y, rng), *at = rig_tensor(&index),
       *best = rig_tensor(&y);
  tn_type maximum[2] = {y, index}, gradient[2] = {y, index};
  check(&tn_kernel_onednn_avg_pool2d, &tn_kernel_cpu_avg_pool2d, "avg_pool2d", p, &x, &values, 1, &y, 1,
        1e-6);
  check(&tn_kernel_onednn_avg_pool2d_grad, &tn_kernel_cpu_avg_pool2d_grad, "avg_pool2d_grad", p, &y, &dy, 1,
        &x, 1, 1e-6);
  spoil(&x, values, rng);
  check(&tn_kernel_onednn_max_pool2d, &tn_kernel_cpu_max_pool2d, "max_pool2d", p, &x, &values, 1, maximum, 2,
        0);
  tn_kernel reference = tn_kernel_cpu_max_pool2d;
  reference.launch = launch_values;
  check(&tn_kernel_onednn_max_pool2d_values, &reference, "max_pool2d", p, &x, &values, 1, maximum, 1, 0);
  static rig_match m;
  tn_pool2d_attributes a = {{2, p->kernel}, {2, p->stride}, {2, p->padding}, p->ceil, 0, {4, p->x}};
  rig_start(&m);
  int32_t number = rig_in(&m, &x), first = rig_node(&m, "max_pool2d", &a, &number, 1, maximum, 2);
  rig_out(&m, first);
  rig_out(&m, first + 1);
  rig_memory memory = {.in = &values, .out = (void *[]){best, at}, .threads = 1};
  assert_int_equal(rig_run(&tn_kernel_cpu_max_pool2d, &m, &memory, NULL), TN_OK);
  check(&tn_kernel_onednn_max_pool2d_grad, &tn_kernel_cpu_max_pool2d_grad, "max_pool2d_grad", p, gradient,
        (void *[]){dy, at}, 2, &x, 1, dtype == TN_F32 ? 1e-6 : 0);
  free(values);
  free(dy);
  free(at);
  free(best);
}

static void pools_agree_with_the_reference(void **state) {
  (void)state;
  static const pool pools[] = {
      {{2, 16, 9, 11}, {3, 3}, {2, 2}, {1, 1}, 0, 0},  {{2, 32, 12, 10}, {3, 3}, {2, 2}, {1, 1}, 0, 1},
      {{3, 16, 8, 8}, {2, 2}, {2, 2}, {0, 0}, 0, 0},   {{1, 48, 7, 7}, {7, 7}, {7, 7}, {0, 0}, 0, 0},
      {{2, 6, 28, 28}, {2, 2}, {2, 2}, {0, 0}, 0, 0},  {{2, 5, 10, 70}, {2, 2}, {2, 2}, {0, 0}, 0, 0},
      {{2, 3, 17, 39}, {3, 2}, {1, 1}, {1, 1}, 0, 1},  {{1, 7, 13, 14}, {5, 4}, {3, 2}, {2, 1}, 1, 1},
      {{1, 16, 13, 14}, {5, 4}, {3, 3}, {2, 1}, 1, 0}, {{2, 3, 10, 12}, {3, 3}, {3, 3}, {0, 0}, 0, 0},
      {{0, 16, 6, 6}, {2, 2}, {2, 2}, {0, 0}, 0, 0},   {{9, 16, 24, 24}, {3, 3}, {2, 2}, {1, 1}, 0, 0},
      {{13, 6, 40, 34}, {2, 2}, {2, 2}, {0, 0}, 0, 0}, {{1, 1, 1, 1}, {1, 1}, {1, 1}, {0, 0}, 0, 0},
      {{1, 2, 3, 900}, {2, 2}, {2, 2}, {0, 0}, 1, 0},  {{1, 2, 3, 1400}, {2, 2}, {2, 2}, {0, 0}, 1, 0},
  };
  static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F16};
  tn_rng rng = tn_rng_at(81, 0);
  for (size_t k = 0; k < sizeof pools / sizeof pools[0]; k++)
    for (size_t d = 0; d < 3; d++)
      if (k < 6 || d == k % 3) check_pool(&pools[k], dtypes[d], &rng);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pools_agree_with_the_reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
