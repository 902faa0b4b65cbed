/* tests/integration/from_c/tensor_test.c: tensors and single ops through the public header alone. */
#include "tenon/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tn_context *context;
static tn_device *device;

static int open_device(void **state) {
  (void)state;
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  tn_status status = tn_device_open(context, "cpu", 0, "threads = 2", &device);
  if (status != TN_OK) fail_msg("%s", tn_error_text(context));
  return 0;
}

static int close_device(void **state) {
  (void)state;
  tn_device_close(device);
  tn_context_close(context);
  return 0;
}

#define OK(call)                                                                                             \
  do {                                                                                                       \
    if ((call) != TN_OK) fail_msg("%s: %s", #call, tn_error_text(device));                                   \
  } while (0)
#define FAILS(call, code, text)                                                                              \
  do {                                                                                                       \
    assert_int_equal((call), (code));                                                                        \
    if (strstr(tn_error_text(device), (text)) == NULL) fail_msg("'%s'", tn_error_text(device));              \
  } while (0)

static tn_type type_of(int32_t dtype, int32_t rank, const int64_t *dims) {
  tn_type type = {dtype, rank, {0}};
  for (int32_t i = 0; i < rank; i++) type.dims[i] = dims[i];
  return type;
}
#define TYPE(dtype, ...)                                                                                     \
  type_of((dtype), (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static tn_tensor *with(tn_type type, const float *values) {
  tn_tensor *t;
  OK(tn_tensor_new(device, &type, &t));
  OK(tn_tensor_write(t, values, tn_type_bytes(&type)));
  return t;
}

static void expect(tn_tensor *t, const float *values) {
  float got[64];
  size_t n = (size_t)tn_type_count(tn_tensor_type(t));
  assert_true(n <= 64);
  OK(tn_tensor_read(t, got, n * sizeof(float)));
  for (size_t i = 0; i < n; i++)
    if (!(fabsf(got[i] - values[i]) <= 1e-6f))
      fail_msg("element %zu is %g, expected %g", i, (double)got[i], (double)values[i]);
}

static int64_t compiled(void) {
  tn_device_info info = {.struct_size = sizeof info};
  OK(tn_device_describe(device, &info));
  return info.compiled;
}

/* ---- devices ---- */

static void a_device_says_what_it_is(void **state) {
  (void)state;
  tn_device_info info = {.struct_size = sizeof info};
  OK(tn_device_describe(device, &info));
  assert_string_equal(info.backend, "cpu");
  assert_int_equal(info.threads, 2);
  assert_int_equal(info.host_addressable, 1);
  info.struct_size = 0;
  FAILS(tn_device_describe(device, &info), TN_EINVAL, "struct_size");
}

static void what_cannot_be_opened_is_explained(void **state) {
  (void)state;
  tn_device *other;
  assert_int_equal(tn_device_open(context, "abacus", 0, NULL, &other), TN_EUNAVAILABLE);
  assert_null(other);
  assert_non_null(strstr(tn_error_text(context), "abacus"));
  assert_int_equal(tn_device_open(context, "cpu", 7, NULL, &other), TN_EUNAVAILABLE);
  assert_non_null(strstr(tn_error_text(context), "device 7"));
  assert_int_equal(tn_device_open(context, "cpu", 0, "thread = 2", &other), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(context), "did you mean 'threads'"));
  assert_int_equal(tn_device_open(context, "cpu", 0, "threads", &other), TN_EINVAL);
  assert_int_equal(tn_device_open(context, "cpu", 0, "threads = many", &other), TN_EINVAL);
  assert_null(other);
}

/* ---- tensors ---- */

static void a_new_tensor_is_zero(void **state) {
  (void)state;
  tn_type type = TYPE(TN_F32, 2, 3);
  tn_tensor *t;
  OK(tn_tensor_new(device, &type, &t));
  expect(t, (float[]){0, 0, 0, 0, 0, 0});
  assert_ptr_equal(tn_tensor_device(t), device);
  tn_tensor_delete(t);
  tn_tensor_delete(NULL);
}

static void tensors_keep_their_device_open(void **state) {
  (void)state;
  tn_device *other;
  tn_tensor *t;
  tn_type type = TYPE(TN_F32, 2);
  float got[2];
  assert_int_equal(tn_device_open(context, "cpu", 0, NULL, &other), TN_OK);
  assert_int_equal(tn_tensor_new(other, &type, &t), TN_OK);
  tn_device_close(other);
  assert_int_equal(tn_tensor_fill(t, 3), TN_OK);
  assert_int_equal(tn_tensor_read(t, got, sizeof got), TN_OK);
  assert_true(got[1] == 3.0f);
  tn_tensor_delete(t);
}

static void a_value_fills_every_dtype(void **state) {
  (void)state;
  for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++) {
    tn_type type = TYPE(dtype, 3), wide = TYPE(TN_F32, 3);
    tn_tensor *t, *y;
    OK(tn_tensor_new(device, &type, &t));
    OK(tn_tensor_new(device, &wide, &y));
    OK(tn_tensor_fill(t, 1));
    OK(tn_apply(device, "cast(to=f32)", &t, 1, &y, 1));
    expect(y, (float[]){1, 1, 1});
    tn_tensor_delete(t);
    tn_tensor_delete(y);
  }
  tn_type bytes = TYPE(TN_U8, 2);
  tn_tensor *t;
  OK(tn_tensor_new(device, &bytes, &t));
  FAILS(tn_tensor_fill(t, 256), TN_EINVAL, "u8 cannot hold 256");
  FAILS(tn_tensor_fill(t, 0.5), TN_EINVAL, "cannot hold");
  FAILS(tn_tensor_fill(t, NAN), TN_EINVAL, "cannot hold");
  tn_tensor_delete(t);
  bytes.dtype = TN_I8;
  OK(tn_tensor_new(device, &bytes, &t));
  OK(tn_tensor_fill(t, -128));
  FAILS(tn_tensor_fill(t, 128), TN_EINVAL, "i8 cannot hold 128");
  tn_tensor_delete(t);
}

static void a_tensor_may_lie_in_the_callers_memory(void **state) {
  (void)state;
  float mine[4] = {1, -2, 3, -4};
  tn_type type = TYPE(TN_F32, 2, 2);
  tn_tensor *t;
  OK(tn_tensor_wrap(device, &type, mine, &t));
  OK(tn_apply(device, "relu", &t, 1, &t, 1));
  OK(tn_device_wait(device));
  assert_true(mine[0] == 1 && mine[1] == 0 && mine[2] == 3 && mine[3] == 0);
  tn_tensor_delete(t);
  FAILS(tn_tensor_wrap(device, &type, NULL, &t), TN_EINVAL, "data is NULL");
  FAILS(tn_tensor_wrap(device, &type, (char *)mine + 1, &t), TN_EINVAL, "aligned");
  assert_null(t);
}

static void a_view_shares_memory_and_outlives_the_tensor(void **state) {
  (void)state;
  tn_type whole = TYPE(TN_F32, 3, 2), row = TYPE(TN_F32, 2);
  tn_tensor *t = with(whole, (float[]){1, 2, 3, 4, 5, 6}), *v, *bad;
  OK(tn_tensor_view(t, &row, 2 * sizeof(float), &v));
  FAILS(tn_tensor_view(t, &row, 5 * sizeof(float), &bad), TN_EINVAL, "but the tensor has 24");
  FAILS(tn_tensor_view(t, &row, -4, &bad), TN_EINVAL, "from byte -4");
  FAILS(tn_tensor_view(t, &row, 2, &bad), TN_EINVAL, "offset 2");
  OK(tn_tensor_fill(v, 9));
  expect(t, (float[]){1, 2, 9, 9, 5, 6});
  tn_tensor_delete(t);
  expect(v, (float[]){9, 9});
  tn_tensor_delete(v);
}

static void a_permuted_view_reads_and_computes_in_its_own_order(void **state) {
  (void)state;
  tn_type nhwc = TYPE(TN_F32, 1, 2, 2, 3), two = TYPE(TN_F32, 3, 2);
  float pixels[12];
  for (int i = 0; i < 12; i++) pixels[i] = (float)i;
  tn_tensor *t = with(nhwc, pixels), *nchw, *sum = NULL, *plain, *m, *flip;
  OK(tn_tensor_permute(t, (int32_t[]){0, 3, 1, 2}, &nchw));
  expect(nchw, (float[]){0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
  OK(tn_apply(device, "reduce_sum(axes=[2, 3])", &nchw, 1, &sum, 1));
  expect(sum, (float[]){18, 22, 26});
  OK(tn_tensor_new(device, tn_tensor_type(nchw), &plain));
  OK(tn_tensor_copy(plain, nchw));
  expect(plain, (float[]){0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11});
  OK(tn_apply(device, "neg", &plain, 1, &nchw, 1)); /* results may be permuted as well */
  expect(t, (float[]){-0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11});
  m = with(two, (float[]){1, 2, 3, 4, 5, 6});
  OK(tn_tensor_permute(m, (int32_t[]){1, 0}, &flip));
  OK(tn_tensor_write(flip, (float[]){1, 2, 3, 4, 5, 6}, 24));
  expect(m, (float[]){1, 4, 2, 5, 3, 6});
  OK(tn_apply(device, "neg", &flip, 1, &flip, 1)); /* in place */
  expect(m, (float[]){-1, -4, -2, -5, -3, -6});
  tn_tensor *bad;
  FAILS(tn_tensor_permute(m, (int32_t[]){0, 0}, &bad), TN_EINVAL, "order[1] is 0");
  FAILS(tn_tensor_view(flip, &two, 0, &bad), TN_EINVAL, "permuted");
  tn_tensor *all[] = {t, nchw, sum, plain, m, flip};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tn_tensor_delete(all[i]);
}

static void empty_tensors_and_scalars_are_tensors(void **state) {
  (void)state;
  tn_type empty = TYPE(TN_F32, 0, 3), scalar = {TN_F32, 0, {0}};
  tn_tensor *e, *s, *y = NULL, *z = NULL;
  float value = 4, got = 0;
  OK(tn_tensor_new(device, &empty, &e));
  OK(tn_tensor_new(device, &scalar, &s));
  OK(tn_tensor_fill(e, 1));
  OK(tn_tensor_write(s, &value, sizeof value));
  OK(tn_apply(device, "sqrt", &e, 1, &y, 1));
  assert_int_equal(tn_tensor_type(y)->dims[0], 0);
  assert_null(tn_tensor_data(y));
  OK(tn_apply(device, "sqrt", &s, 1, &z, 1));
  OK(tn_tensor_read(z, &got, sizeof got));
  assert_true(got == 2.0f);
  OK(tn_tensor_copy(e, y));
  tn_tensor *all[] = {e, s, y, z};
  for (size_t i = 0; i < 4; i++) tn_tensor_delete(all[i]);
}

static void wrong_types_and_sizes_are_refused(void **state) {
  (void)state;
  tn_type rank = {TN_F32, 9, {0}}, dtype = TYPE(TN_DTYPES, 1), negative = TYPE(TN_F32, -1),
          huge = TYPE(TN_F64, INT64_MAX / 2, 3);
  tn_tensor *t;
  FAILS(tn_tensor_new(device, &rank, &t), TN_EINVAL, "rank 9");
  FAILS(tn_tensor_new(device, &dtype, &t), TN_EINVAL, "dtype");
  FAILS(tn_tensor_new(device, &negative, &t), TN_EINVAL, "expected dimensions >= 0");
  FAILS(tn_tensor_new(device, &huge, &t), TN_EINVAL, "2^63");
  assert_null(t);
  t = with(TYPE(TN_F32, 2), (float[]){1, 2});
  float got[3];
  FAILS(tn_tensor_read(t, got, 12), TN_EINVAL, "12 bytes for f32[2], expected 8");
  tn_tensor_delete(t);
}

static void elements_go_from_device_to_device(void **state) {
  (void)state;
  tn_device *other;
  tn_type type = TYPE(TN_F32, 2, 2), wide = TYPE(TN_F64, 2, 2);
  tn_tensor *here = with(type, (float[]){1, 2, 3, 4}), *there, *back, *flip, *bad;
  assert_int_equal(tn_device_open(context, "cpu", 0, NULL, &other), TN_OK);
  OK(tn_tensor_new(device, &type, &back));
  assert_int_equal(tn_tensor_new(other, &type, &there), TN_OK);
  assert_int_equal(tn_tensor_new(other, &wide, &bad), TN_OK);
  assert_int_equal(tn_tensor_copy(bad, here), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(bad), "from f32[2, 2] to f64[2, 2]"));
  OK(tn_tensor_permute(here, (int32_t[]){1, 0}, &flip));
  assert_int_equal(tn_tensor_copy(there, flip), TN_OK);
  OK(tn_tensor_copy(back, there));
  expect(back, (float[]){1, 3, 2, 4});
  OK(tn_tensor_copy(flip, there));
  expect(here, (float[]){1, 2, 3, 4});
  FAILS(tn_apply(device, "neg", &there, 1, &back, 1), TN_EINVAL, "operand 0 is on device 0 of cpu");
  tn_tensor *all[] = {here, there, back, flip, bad};
  for (size_t i = 0; i < 5; i++) tn_tensor_delete(all[i]);
  tn_device_close(other);
}

/* ---- ops ---- */

static void a_call_is_compiled_once_for_its_signature(void **state) {
  (void)state;
  tn_tensor *x = with(TYPE(TN_F32, 2, 3), (float[]){1, 2, 3, 4, 5, 6}), *y = NULL, *z = NULL;
  int64_t before = compiled();
  for (int i = 0; i < 5; i++) {
    tn_tensor_delete(y);
    y = NULL;
    OK(tn_apply(device, "reduce_sum(axes=[1])", &x, 1, &y, 1));
  }
  assert_int_equal(compiled() - before, 1);
  tn_call *call = tn_call_begin(device, "reduce_sum");
  tn_call_operand(call, x);
  tn_call_set_ints(call, "axes", 1, (int64_t[]){1});
  OK(tn_call_end(call, &y, 1));
  assert_int_equal(compiled() - before, 1);
  expect(y, (float[]){6, 15});
  OK(tn_apply(device, "reduce_sum(axes=[0])", &x, 1, &z, 1));
  assert_int_equal(compiled() - before, 2);
  expect(z, (float[]){5, 7, 9});
  tn_device_trim(device);
  OK(tn_apply(device, "reduce_sum(axes=[0])", &x, 1, &z, 1));
  assert_int_equal(compiled() - before, 3);
  tn_tensor_delete(x);
  tn_tensor_delete(y);
  tn_tensor_delete(z);
}

static void the_number_of_compiled_calls_is_bounded(void **state) {
  (void)state;
  tn_device_info info = {.struct_size = sizeof info};
  for (int64_t n = 1; n <= 300; n++) {
    tn_type type = TYPE(TN_F32, n);
    tn_tensor *x, *y = NULL;
    OK(tn_tensor_new(device, &type, &x));
    OK(tn_apply(device, "neg", &x, 1, &y, 1));
    tn_tensor_delete(x);
    tn_tensor_delete(y);
  }
  OK(tn_device_describe(device, &info));
  assert_true(info.programs <= 128 && info.programs > 0);
  tn_device_trim(device);
  OK(tn_device_describe(device, &info));
  assert_int_equal(info.programs, 0);
  assert_int_equal(info.bytes, 0);
}

static void operands_may_be_absent_and_results_several(void **state) {
  (void)state;
  tn_tensor *x = with(TYPE(TN_F32, 1, 1, 2, 2), (float[]){1, 2, 3, 4}),
            *w = with(TYPE(TN_F32, 1, 1, 1, 1), (float[]){2}), *y = NULL;
  OK(tn_apply(device, "conv2d", (tn_tensor *[]){x, w, NULL}, 3, &y, 1));
  expect(y, (float[]){2, 4, 6, 8});
  tn_tensor *pooled[2] = {NULL, NULL};
  OK(tn_apply(device, "max_pool2d(kernel=[2, 2])", &x, 1, pooled, 2));
  expect(pooled[0], (float[]){4});
  int32_t index;
  OK(tn_tensor_read(pooled[1], &index, sizeof index));
  assert_int_equal(index, 3);
  tn_tensor *all[] = {x, w, y, pooled[0], pooled[1]};
  for (size_t i = 0; i < 5; i++) tn_tensor_delete(all[i]);
}

static void a_result_may_be_an_operand(void **state) {
  (void)state;
  tn_tensor *x = with(TYPE(TN_F32, 2, 2), (float[]){1, 2, 3, 4});
  OK(tn_apply(device, "matmul", (tn_tensor *[]){x, x}, 2, &x, 1));
  expect(x, (float[]){7, 10, 15, 22});
  tn_tensor_delete(x);
}

static void wrong_calls_say_what_was_expected(void **state) {
  (void)state;
  tn_tensor *x = with(TYPE(TN_F32, 2, 3), (float[]){1, 2, 3, 4, 5, 6}), *y = NULL, *three[3] = {NULL};
  FAILS(tn_apply(device, "rellu", &x, 1, &y, 1), TN_EUNAVAILABLE, "relu");
  FAILS(tn_apply(device, "matmul", (tn_tensor *[]){x, x}, 2, &y, 1), TN_EINVAL, "matmul");
  FAILS(tn_apply(device, "softmax(axes=1)", &x, 1, &y, 1), TN_EINVAL, "axis");
  FAILS(tn_apply(device, "softmax(1, 2)", &x, 1, &y, 1), TN_EINVAL, "one too many");
  FAILS(tn_apply(device, "relu(), relu()", &x, 1, &y, 1), TN_EINVAL, "expected one op");
  FAILS(tn_apply(device, "relu", &x, 1, three, 3), TN_EINVAL, "3 results are requested, expected 1 to 1");
  FAILS(tn_apply(device, "relu", NULL, 0, &y, 1), TN_EINVAL, "relu");
  assert_null(y);
  y = with(TYPE(TN_F32, 2), (float[]){0, 0});
  FAILS(tn_apply(device, "relu", &x, 1, &y, 1), TN_EINVAL,
        "result 0 is f32[2, 3], but the tensor given for it is f32[2]");
  expect(y, (float[]){0, 0});
  tn_tensor_delete(x);
  tn_tensor_delete(y);
  assert_int_equal(tn_call_end(NULL, &y, 1), TN_ENOMEM);
}

static void an_error_in_a_call_sticks_to_its_end(void **state) {
  (void)state;
  tn_tensor *x = with(TYPE(TN_F32, 2), (float[]){1, 2}), *y = NULL;
  tn_call *call = tn_call_begin(device, "affine");
  tn_call_set_float(call, "sale", 2);
  tn_call_operand(call, x);
  tn_call_set_int(call, "nonsense", 1);
  FAILS(tn_call_end(call, &y, 1), TN_EINVAL, "affine: sale");
  tn_call_cancel(tn_call_begin(device, "relu"));
  tn_call_cancel(NULL);
  tn_tensor_delete(x);
}

/* ---- gradients ---- */

static void a_call_can_end_with_its_gradient(void **state) {
  (void)state;
  tn_tensor *a = with(TYPE(TN_F32, 1, 2), (float[]){1, 2}), *b = with(TYPE(TN_F32, 2, 1), (float[]){3, 4}),
            *dy = with(TYPE(TN_F32, 1, 1), (float[]){10}), *grad[3] = {NULL, NULL, NULL};
  tn_call *call = tn_call_begin(device, "matmul");
  tn_call_operand(call, a);
  tn_call_operand(call, b);
  tn_call_operand(call, NULL);
  OK(tn_call_end_gradient(call, &dy, 1, NULL, grad, 3));
  expect(grad[0], (float[]){30, 40});
  expect(grad[1], (float[]){10, 20});
  assert_null(grad[2]);
  tn_tensor *all[] = {a, b, dy, grad[0], grad[1]};
  for (size_t i = 0; i < 5; i++) tn_tensor_delete(all[i]);
}

static void gradients_that_nothing_flows_into_are_zero(void **state) {
  (void)state;
  tn_tensor *x = with(TYPE(TN_F32, 2), (float[]){1, -2}), *grad = NULL, *dy;
  tn_call *call = tn_call_begin(device, "relu");
  tn_call_operand(call, x);
  OK(tn_call_end_gradient(call, NULL, 0, NULL, &grad, 1));
  expect(grad, (float[]){0, 0});
  dy = with(TYPE(TN_F32, 2), (float[]){5, 5});
  call = tn_call_begin(device, "relu");
  tn_call_operand(call, x);
  OK(tn_call_end_gradient(call, &dy, 1, (int32_t[]){1}, &grad, 1));
  expect(grad, (float[]){5, 0});
  tn_tensor *all[] = {x, grad, dy};
  for (size_t i = 0; i < 3; i++) tn_tensor_delete(all[i]);
}

static void wrong_gradients_say_what_was_expected(void **state) {
  (void)state;
  tn_tensor *x = with(TYPE(TN_F32, 2), (float[]){1, -2}), *dy = with(TYPE(TN_F32, 3), (float[]){1, 1, 1}),
            *grad[2] = {NULL, NULL};
  tn_call *call = tn_call_begin(device, "relu");
  tn_call_operand(call, x);
  FAILS(tn_call_end_gradient(call, &dy, 1, NULL, grad, 1), TN_EINVAL,
        "gradient of result 0 is f32[3], expected f32[2]");
  call = tn_call_begin(device, "relu");
  tn_call_operand(call, x);
  FAILS(tn_call_end_gradient(call, &dy, 1, NULL, grad, 2), TN_EINVAL, "room for 2 gradients");
  call = tn_call_begin(device, "argmax");
  tn_call_operand(call, x);
  FAILS(tn_call_end_gradient(call, &x, 1, NULL, grad, 1), TN_EINVAL, "no gradient");
  call = tn_call_begin(device, "relu");
  tn_call_operand(call, x);
  FAILS(tn_call_end_gradient(call, &x, 1, (int32_t[]){0}, grad, 1), TN_EINVAL, "no gradient is requested");
  tn_tensor_delete(x);
  tn_tensor_delete(dy);
}

/* A plugin's kernel that declines when it is prepared, in both variants: the reference takes the call. */
static void a_kernel_that_cannot_be_prepared_is_replaced(void **state) {
  static const float a[] = {1, 2, 3, 4}, product[] = {7, 10, 15, 22};
  tn_context *other, *before = context;
  tn_device *own = device;
  (void)state;
  assert_int_equal(tn_context_open(NULL, &other), TN_OK);
  context = other;
  assert_int_equal(tn_context_load(context, WRONG_FOLDER "/wrong_prepare.so"), TN_OK);
  assert_int_equal(tn_device_open(context, "cpu", 0, "threads = 1", &device), TN_OK);
  tn_tensor *x = with(TYPE(TN_F32, 2, 2), a), *y = NULL;
  OK(tn_apply(device, "matmul", (tn_tensor *[]){x, x}, 2, &y, 1));
  expect(y, product);
  tn_tensor_delete(x);
  tn_tensor_delete(y);
  tn_device_close(device);
  tn_context_close(context);
  context = before;
  device = own;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_device_says_what_it_is),
      cmocka_unit_test(what_cannot_be_opened_is_explained),
      cmocka_unit_test(a_new_tensor_is_zero),
      cmocka_unit_test(tensors_keep_their_device_open),
      cmocka_unit_test(a_value_fills_every_dtype),
      cmocka_unit_test(a_tensor_may_lie_in_the_callers_memory),
      cmocka_unit_test(a_view_shares_memory_and_outlives_the_tensor),
      cmocka_unit_test(a_permuted_view_reads_and_computes_in_its_own_order),
      cmocka_unit_test(empty_tensors_and_scalars_are_tensors),
      cmocka_unit_test(wrong_types_and_sizes_are_refused),
      cmocka_unit_test(elements_go_from_device_to_device),
      cmocka_unit_test(a_call_is_compiled_once_for_its_signature),
      cmocka_unit_test(the_number_of_compiled_calls_is_bounded),
      cmocka_unit_test(operands_may_be_absent_and_results_several),
      cmocka_unit_test(a_result_may_be_an_operand),
      cmocka_unit_test(wrong_calls_say_what_was_expected),
      cmocka_unit_test(an_error_in_a_call_sticks_to_its_end),
      cmocka_unit_test(a_call_can_end_with_its_gradient),
      cmocka_unit_test(gradients_that_nothing_flows_into_are_zero),
      cmocka_unit_test(wrong_gradients_say_what_was_expected),
      cmocka_unit_test(a_kernel_that_cannot_be_prepared_is_replaced),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
