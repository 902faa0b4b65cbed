/* Kernels of the backend cuda at sizes and layouts that the conformance suite does not draw, against the
 * backend cpu: wide heads, many parts, sums in parts, groups, channels innermost. */
#include "backends/shared/half.h"
#include "devices.h"

#include <math.h>

enum { MOST = 140 };

/* ---- uses of ops ---- */

typedef struct use {
  const char *op;
  bool channels_last;            /* tensors of rank 4 lie in memory with dimension 1 innermost */
  int32_t n_operands, n_results; /* results that are compared */
  int32_t dtype;                 /* of operands that are added; 0: f32 */
  tn_tensor *operands[2][MOST];  /* of cuda, of cpu */
  void (*set)(tn_call *call);
} use;

static tn_type type_of(int32_t rank, const int64_t *dims) {
  tn_type type = {TN_F32, rank, {0}};
  for (int32_t i = 0; i < rank; i++) type.dims[i] = dims[i];
  return type;
}

static tn_tensor *new_tensor(tn_device *device, tn_type type, bool channels_last) {
  tn_tensor *t, *view;
  int64_t *d = type.dims, channels = d[1];
  if (!channels_last || type.rank != 4) {
    OK(device, tn_tensor_new(device, &type, &t));
    return t;
  }
  d[1] = d[2], d[2] = d[3], d[3] = channels;
  OK(device, tn_tensor_new(device, &type, &t));
  OK(device, tn_tensor_permute(t, (const int32_t[]){0, 3, 1, 2}, &view));
  tn_tensor_delete(t);
  return view;
}

/* Writes f32 values to a tensor of f32, f16 or bf16. */
static void write_values(tn_device *device, tn_tensor *t, const float *values) {
  const size_t n = (size_t)tn_type_count(tn_tensor_type(t));
  const int32_t dtype = tn_tensor_type(t)->dtype;
  uint16_t *halves = malloc((n + 1) * sizeof *halves);
  for (size_t i = 0; i < n; i++)
    halves[i] = dtype == TN_F16 ? tn_f16_of_f32(values[i]) : tn_bf16_of_f32(values[i]);
  if (dtype == TN_F32)
    OK(device, tn_tensor_write(t, values, n * sizeof *values));
  else
    OK(device, tn_tensor_write(t, halves, n * sizeof *halves));
  free(halves);
}

/* The same values on both devices, between -1 and 1. */
static void add_operand(use *u, int32_t rank, const int64_t *dims) {
  tn_type type = type_of(rank, dims);
  if (u->dtype != 0) type.dtype = u->dtype;
  const size_t n = (size_t)tn_type_count(&type);
  float *values = malloc((n + 1) * sizeof *values);
  uint32_t seed = 12345u + (uint32_t)u->n_operands;
  for (size_t i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / 8388608.0f - 1;
  }
  for (int32_t d = 0; d < 2; d++) {
    tn_device *device = d == 0 ? cuda : cpu;
    tn_tensor *t = new_tensor(device, type, u->channels_last && d == 0);
    write_values(device, t, values);
    u->operands[d][u->n_operands] = t;
  }
  u->n_operands++;
  free(values);
}
#define OPERAND(u, ...)                                                                                      \
  add_operand((u), (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* The first results on a device. */
static void call_on(const use *u, int32_t d, tn_tensor **results) {
  tn_device *device = d == 0 ? cuda : cpu;
  tn_call *call = tn_call_begin(device, u->op);
  for (int32_t i = 0; i < u->n_operands; i++) tn_call_operand(call, u->operands[d][i]);
  if (u->set != NULL) u->set(call);
  OK(device, tn_call_end(call, results, u->n_results));
}

static float *values_of(tn_device *device, tn_tensor *t) {
  const tn_type *type = tn_tensor_type(t);
  const size_t n = (size_t)tn_type_count(type);
  float *values = malloc((n + 1) * sizeof *values);
  uint16_t *halves = (uint16_t *)values;
  OK(device, tn_tensor_read(t, values, (size_t)tn_type_bytes(type)));
  for (size_t i = n; type->dtype != TN_F32 && i-- > 0;)
    values[i] = type->dtype == TN_F16 ? tn_f32_of_f16(halves[i]) : tn_f32_of_bf16(halves[i]);
  return values;
}

static void expect_same(const use *u, tn_tensor *got, tn_tensor *wanted, double tolerance) {
  const int64_t n = tn_type_count(tn_tensor_type(wanted));
  float *g = values_of(cuda, got), *w = values_of(cpu, wanted);
  assert_int_equal(tn_type_count(tn_tensor_type(got)), n);
  for (int64_t i = 0; i < n; i++)
    if (!(fabs((double)g[i] - (double)w[i]) <= tolerance * fmax(1, fabs((double)w[i]))))
      fail_msg("%s: element %lld of %lld is %g, expected %g", u->op, (long long)i, (long long)n, (double)g[i],
               (double)w[i]);
  free(g);
  free(w);
}

/* Runs the op on both devices, and on cuda a second time: the results have the same bits. */
static void expect_equal_devices(use *u, double tolerance) {
  tn_tensor *wanted[4] = {NULL}, *got[4] = {NULL}, *again[4] = {NULL};
  call_on(u, 1, wanted);
  for (int32_t i = 0; i < u->n_results && u->channels_last; i++)
    got[i] = new_tensor(cuda, *tn_tensor_type(wanted[i]), true);
  call_on(u, 0, got);
  call_on(u, 0, again);
  for (int32_t i = 0; i < u->n_results; i++) {
    expect_same(u, got[i], wanted[i], tolerance);
    float *a = values_of(cuda, got[i]), *b = values_of(cuda, again[i]);
    assert_memory_equal(a, b, tn_type_bytes(tn_tensor_type(got[i])));
    free(a);
    free(b);
    tn_tensor_delete(wanted[i]);
    tn_tensor_delete(got[i]);
    tn_tensor_delete(again[i]);
  }
  for (int32_t i = 0; i < u->n_operands; i++)
    for (int32_t d = 0; d < 2; d++) tn_tensor_delete(u->operands[d][i]);
}

/* ---- movement ---- */

static void set_axis(tn_call *call) { tn_call_set_int(call, "axis", 1); }

static void concat_of_70_parts_takes_two_launches(void **state) {
  (void)state;
  use u = {.op = "concat", .n_results = 1, .set = set_axis};
  for (int64_t i = 0; i < 70; i++) OPERAND(&u, 3, 4 + i % 5 * 4, 4); /* rows of 16 bytes and more */
  expect_equal_devices(&u, 0);
  use odd = {.op = "concat", .n_results = 1, .set = set_axis};
  for (int64_t i = 0; i < 5; i++) OPERAND(&odd, 50, 1 + i, 37);
  expect_equal_devices(&odd, 0);
}

static void set_pack(tn_call *call) {
  int64_t offsets[70], count = 0;
  for (int64_t i = 0; i < 70; i++) {
    offsets[i] = count + i % 3 * 16;
    count = offsets[i] + 1 + i * 7;
  }
  tn_call_set_ints(call, "offsets", 70, offsets);
  tn_call_set_int(call, "count", count + 5);
}

static void pack_fills_gaps(void **state) {
  (void)state;
  use u = {.op = "pack", .n_results = 1, .set = set_pack};
  for (int64_t i = 0; i < 70; i++) OPERAND(&u, 1 + i * 7);
  expect_equal_devices(&u, 0);
}

static void set_order(tn_call *call) { tn_call_set_ints(call, "order", 3, (const int64_t[]){2, 0, 1}); }
static void set_slice(tn_call *call) {
  tn_call_set_ints(call, "starts", 3, (const int64_t[]){1, 2, 4});
  tn_call_set_ints(call, "stops", 3, (const int64_t[]){3, 9, 16});
}
static void set_pad(tn_call *call) {
  tn_call_set_ints(call, "low", 3, (const int64_t[]){0, 1, 4});
  tn_call_set_ints(call, "high", 3, (const int64_t[]){1, 0, 8});
}

static void tiles_and_vectors_move_every_element(void **state) {
  (void)state;
  use transpose = {.op = "transpose", .n_results = 1, .set = set_order};
  OPERAND(&transpose, 33, 40, 70);
  expect_equal_devices(&transpose, 0);
  use slice = {.op = "slice", .n_results = 1, .set = set_slice};
  OPERAND(&slice, 3, 10, 20);
  expect_equal_devices(&slice, 0);
  use pad = {.op = "pad", .n_results = 1, .set = set_pad};
  OPERAND(&pad, 3, 10, 20);
  expect_equal_devices(&pad, 0);
}

/* ---- windows ---- */

static void set_stride(tn_call *call) {
  tn_call_set_ints(call, "stride", 2, (const int64_t[]){2, 3});
  tn_call_set_ints(call, "padding", 2, (const int64_t[]){1, 2});
}
static void set_stride_and_dims(tn_call *call) {
  set_stride(call);
  tn_call_set_ints(call, "dims", 4, (const int64_t[]){3, 20, 25, 31});
}
static void set_stride_and_weight_dims(tn_call *call) {
  set_stride(call);
  tn_call_set_ints(call, "dims", 4, (const int64_t[]){70, 20, 3, 3});
}

static void expect_convolutions(bool channels_last, int64_t batch) {
  use y = {.op = "conv2d", .channels_last = channels_last, .n_results = 1, .set = set_stride};
  OPERAND(&y, batch, 20, 25, 31);
  OPERAND(&y, 70, 20, 3, 3);
  OPERAND(&y, 70);
  expect_equal_devices(&y, 2e-5);
  if (batch != 3) return;
  use dx = {
      .op = "conv2d_grad_input", .channels_last = channels_last, .n_results = 1, .set = set_stride_and_dims};
  OPERAND(&dx, 3, 70, 13, 11);
  OPERAND(&dx, 70, 20, 3, 3);
  expect_equal_devices(&dx, 2e-5);
  use dw = {.op = "conv2d_grad_weight",
            .channels_last = channels_last,
            .n_results = 1,
            .set = set_stride_and_weight_dims};
  OPERAND(&dw, 3, 20, 25, 31);
  OPERAND(&dw, 3, 70, 13, 11);
  expect_equal_devices(&dw, 5e-5);
}

static void convolutions_of_planes(void **state) {
  (void)state;
  expect_convolutions(false, 3);
}
static void convolutions_of_channels(void **state) {
  (void)state;
  expect_convolutions(true, 3);
  expect_convolutions(true, 0);
}

static void set_depthwise(tn_call *call) {
  tn_call_set_ints(call, "padding", 2, (const int64_t[]){1, 1});
  tn_call_set_int(call, "groups", 9);
}
static void set_depthwise_weight(tn_call *call) {
  set_depthwise(call);
  tn_call_set_ints(call, "dims", 4, (const int64_t[]){9, 1, 3, 3});
}

/* The gradient of the weight has 4 x 30 x 30 terms, which are summed in parts. */
static void depthwise_convolutions(void **state) {
  (void)state;
  use y = {.op = "conv2d", .n_results = 1, .set = set_depthwise};
  OPERAND(&y, 4, 9, 30, 30);
  OPERAND(&y, 9, 1, 3, 3);
  expect_equal_devices(&y, 1e-5);
  use dw = {.op = "conv2d_grad_weight", .n_results = 1, .set = set_depthwise_weight};
  OPERAND(&dw, 4, 9, 30, 30);
  OPERAND(&dw, 4, 9, 30, 30);
  expect_equal_devices(&dw, 1e-4);
}

static void set_pool(tn_call *call) {
  tn_call_set_ints(call, "kernel", 2, (const int64_t[]){3, 2});
  tn_call_set_ints(call, "stride", 2, (const int64_t[]){2, 1});
  tn_call_set_ints(call, "padding", 2, (const int64_t[]){1, 1});
}

static void pools_of_channels(void **state) {
  (void)state;
  for (int64_t batch = 0; batch < 3; batch += 2) {
    use largest = {.op = "max_pool2d", .channels_last = true, .n_results = 1, .set = set_pool};
    OPERAND(&largest, batch, 24, 17, 19);
    expect_equal_devices(&largest, 0);
    use mean = {.op = "avg_pool2d", .channels_last = true, .n_results = 1, .set = set_pool};
    OPERAND(&mean, batch, 24, 17, 19);
    expect_equal_devices(&mean, 1e-6);
  }
}

/* ---- attention ---- */

static void set_causal(tn_call *call) { tn_call_set_int(call, "causal", 1); }

/* The result of an op on the cpu, as an operand of both devices. */
static void add_result(use *u, tn_tensor *result) {
  const tn_type type = *tn_tensor_type(result);
  const int32_t dtype = u->dtype;
  float *values = values_of(cpu, result);
  u->dtype = type.dtype;
  add_operand(u, type.rank, type.dims);
  for (int32_t d = 0; d < 2; d++) write_values(d ? cpu : cuda, u->operands[d][u->n_operands - 1], values);
  u->dtype = dtype;
  free(values);
}

typedef struct attention_use {
  int32_t dtype;
  int64_t width, value_width;
  bool causal;
} attention_use;

static void add_attention_operands(use *u, const attention_use *a) {
  OPERAND(u, 1, 2, 70, a->width);
  OPERAND(u, 1, 2, 75, a->width);
  OPERAND(u, 1, 2, 75, a->value_width);
}

/* Two tiles of queries and of keys; the gradient on the results of attention. */
static void expect_attention(const attention_use *a, double tolerance, double grad_tolerance) {
  use y = {.op = "attention", .n_results = 2, .dtype = a->dtype, .set = a->causal ? set_causal : NULL};
  use grad = {.op = "attention_grad", .n_results = 3, .dtype = a->dtype, .set = y.set};
  tn_tensor *results[2] = {NULL};
  add_attention_operands(&y, a);
  add_attention_operands(&grad, a);
  call_on(&y, 1, results);
  for (int32_t i = 0; i < 2; i++) {
    add_result(&grad, results[i]);
    tn_tensor_delete(results[i]);
  }
  OPERAND(&grad, 1, 2, 70, a->value_width);
  expect_equal_devices(&y, tolerance);
  expect_equal_devices(&grad, grad_tolerance);
}

static void attention_of_any_width(void **state) {
  (void)state;
  expect_attention(&(attention_use){TN_F32, 64, 40, true}, 2e-5, 5e-5);
  expect_attention(&(attention_use){TN_F32, 40, 100, false}, 2e-5, 5e-5);
  expect_attention(&(attention_use){TN_F32, 200, 256, true}, 2e-5, 5e-5);
}

/* In f16 and bf16 by cuDNN, whose double rounds where the library does. */
static void attention_in_half_precision(void **state) {
  (void)state;
  for (int32_t bf16 = 0; bf16 < 2; bf16++) {
    const int32_t dtype = bf16 ? TN_BF16 : TN_F16;
    const double tolerance = bf16 ? 8e-3 : 1e-3;
    expect_attention(&(attention_use){dtype, 64, 40, true}, tolerance, 4 * tolerance);
    expect_attention(&(attention_use){dtype, 16, 32, false}, tolerance, 4 * tolerance);
    expect_attention(&(attention_use){dtype, 12, 8, true}, tolerance, 4 * tolerance); /* not by cuDNN */
  }
}

/* Whether a call of the op on the double fails where cuDNN's executions do. */
static bool needs_cudnn(const use *u) {
  static char all[1 << 16];
  tn_tensor *results[3] = {NULL};
  size_t n = 0;
  for (int i = 1; i < 1000; i++) n += (size_t)snprintf(all + n, sizeof all - n, "cudnnBackendExecute:%d,", i);
  tn_call *call = tn_call_begin(cuda, u->op);
  for (int32_t i = 0; i < u->n_operands; i++) tn_call_operand(call, u->operands[0][i]);
  setenv("FAKECUDA_FAIL", all, 1);
  tn_status status = tn_call_end(call, results, u->n_results);
  unsetenv("FAKECUDA_FAIL");
  for (int32_t i = 0; i < u->n_results; i++) tn_tensor_delete(results[i]);
  return status != TN_OK;
}

/* The last test: a failed launch can leave the device unusable. */
static void attention_in_half_precision_is_cudnns(void **state) {
  use f32 = {.op = "attention", .n_results = 2}, f16 = {.op = "attention", .n_results = 2, .dtype = TN_F16};
  (void)state;
  if (!HAS_CUDNN) skip();
  add_attention_operands(&f32, &(attention_use){TN_F32, 64, 40, false});
  add_attention_operands(&f16, &(attention_use){TN_F16, 64, 40, false});
  assert_false(needs_cudnn(&f32));
  assert_true(needs_cudnn(&f16));
  for (int32_t i = 0; i < 3; i++)
    for (int32_t d = 0; d < 2; d++) {
      tn_tensor_delete(f32.operands[d][i]);
      tn_tensor_delete(f16.operands[d][i]);
    }
}

static int open_devices_with_cudnn(void **state) {
  (void)state;
  return open_devices_with("libraries = " DOUBLES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(concat_of_70_parts_takes_two_launches),
      cmocka_unit_test(pack_fills_gaps),
      cmocka_unit_test(tiles_and_vectors_move_every_element),
      cmocka_unit_test(convolutions_of_planes),
      cmocka_unit_test(convolutions_of_channels),
      cmocka_unit_test(depthwise_convolutions),
      cmocka_unit_test(pools_of_channels),
      cmocka_unit_test(attention_of_any_width),
  };
  const struct CMUnitTest of_cudnn[] = {
      cmocka_unit_test(attention_in_half_precision),
      cmocka_unit_test(attention_in_half_precision_is_cudnns),
  };
  int failed = cmocka_run_group_tests_name("Tenon's kernels", tests, open_devices, close_devices);
  return failed + cmocka_run_group_tests_name("cuDNN's", of_cudnn, open_devices_with_cudnn, close_devices);
}
