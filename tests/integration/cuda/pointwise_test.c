/* Pointwise regions and random numbers on the double of CUDA, against the reference backend: the same bits,
 * in every layout, size and alignment. */
#include "devices.h"

#include "tenon/random.h"

static tn_type type_of(int32_t dtype, int32_t rank, const int64_t *dims) {
  tn_type type = {dtype, rank, {0}};
  for (int32_t i = 0; i < rank; i++) type.dims[i] = dims[i];
  return type;
}
#define TYPE(dtype, ...)                                                                                     \
  type_of((dtype), (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* ---- one call on both devices ---- */

enum { MOST_OPERANDS = 4, MOST_BYTES = 1 << 16 };

/* An operand: memory of the type, behind `skip` elements, seen with its dimensions in another order. */
typedef struct operand {
  tn_type type;
  int64_t skip;
  const int32_t *order;
  const void *data;
} operand;

static tn_tensor *make(tn_device *device, const operand *o) {
  tn_type all = TYPE(o->type.dtype, tn_type_count(&o->type) + o->skip);
  tn_tensor *whole, *view, *permuted;
  OK(device, tn_tensor_new(device, &all, &whole));
  OK(device, tn_tensor_view(whole, &o->type, o->skip * (int64_t)tn_dtype_size(o->type.dtype), &view));
  OK(device, tn_tensor_write(view, o->data, tn_type_bytes(&o->type)));
  tn_tensor_delete(whole);
  if (o->order == NULL) return view;
  OK(device, tn_tensor_permute(view, o->order, &permuted));
  tn_tensor_delete(view);
  return permuted;
}

static size_t apply(tn_device *device, const char *op, const operand *operands, int32_t n, uint8_t *bytes) {
  tn_tensor *in[MOST_OPERANDS], *out = NULL;
  for (int32_t i = 0; i < n; i++) in[i] = make(device, &operands[i]);
  OK(device, tn_apply(device, op, in, n, &out, 1));
  size_t size = tn_type_bytes(tn_tensor_type(out));
  assert_true(size <= MOST_BYTES);
  OK(device, tn_tensor_read(out, bytes, size));
  for (int32_t i = 0; i < n; i++) tn_tensor_delete(in[i]);
  tn_tensor_delete(out);
  return size;
}

static void check_equal(const char *op, const operand *operands, int32_t n) {
  static uint8_t a[MOST_BYTES], b[MOST_BYTES];
  size_t size = apply(cuda, op, operands, n, a);
  assert_int_equal(apply(cpu, op, operands, n, b), size);
  for (size_t i = 0; i < size; i++)
    if (a[i] != b[i]) fail_msg("%s: byte %zu of %zu", op, i, size);
}

/* ---- random numbers ---- */

static const int64_t sizes[][4] = {{3}, {5, 7}, {2, 3, 4}, {1}, {1021}, {2, 4, 2, 8}};
static const int32_t ranks[] = {1, 2, 3, 0, 1, 4};
static const int32_t floats[] = {TN_F16, TN_BF16, TN_F32, TN_F64};

/* Blocks move the first number inside a group of four. */
static void random_numbers_have_the_bits_of_the_reference(void **state) {
  (void)state;
  static const char *const ops[] = {"random_uniform", "random_normal"};
  const int64_t iteration = 1000003, blocks[] = {0, 1, 2, 3};
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
    for (size_t k = 0; k < 32; k++) {
      char op[256], dims[64] = "";
      for (int32_t d = 0; d < ranks[i]; d++)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%s%d", d > 0 ? ", " : "",
                 (int)sizes[i][d]);
      snprintf(op, sizeof op, "%s(dims=[%s], stream=%d, a=-0.7, b=1.3, dtype=%s)", ops[k % 2], dims,
               (int)(i + k), tn_dtype_name(floats[k / 2 % 4]));
      const operand counters[2] = {{{TN_I64, 0, {0}}, 0, NULL, &iteration},
                                   {{TN_I64, 0, {0}}, 0, NULL, &blocks[k / 8]}};
      check_equal(op, counters, 2);
    }
}

/* f32 is a rounding of the same formula. */
static void normal_numbers_of_both_precisions_agree(void **state) {
  (void)state;
  const int64_t iteration = 7;
  static uint8_t wide[MOST_BYTES], narrow[MOST_BYTES];
  const operand counter = {{TN_I64, 0, {0}}, 0, NULL, &iteration};
  size_t n = apply(cuda, "random_normal(dims=[4096], stream=3, a=0, b=1, dtype=f64)", &counter, 1, wide) / 8;
  apply(cuda, "random_normal(dims=[4096], stream=3, a=0, b=1, dtype=f32)", &counter, 1, narrow);
  for (size_t i = 0; i < n; i++) {
    double x;
    float y;
    memcpy(&x, wide + 8 * i, sizeof x);
    memcpy(&y, narrow + 4 * i, sizeof y);
    assert_true(x - (double)y < 2e-6 && (double)y - x < 2e-6);
  }
}

/* ---- layouts, sizes, alignment ---- */

static const void *drawn(const tn_type *type, uint64_t stream, uint8_t *to) {
  tn_rng rng = tn_rng_at(99, stream);
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    float x = (float)tn_rng_between(&rng, -4, 4);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t upper = (uint16_t)(bits >> 16);
    double d = (double)x;
    if (type->dtype == TN_F64) memcpy(to + 8 * i, &d, 8);
    if (type->dtype == TN_F32) memcpy(to + 4 * i, &x, 4);
    if (type->dtype == TN_BF16) memcpy(to + 2 * i, &upper, 2);
    if (type->dtype == TN_I32) ((int32_t *)(void *)to)[i] = (int32_t)(x * 1000);
  }
  return to;
}

static const int32_t dtypes[] = {TN_BF16, TN_F32, TN_F64, TN_I32};

/* Sizes around the widths of packs and the 2048 positions of a block; views that begin between packs. */
static void tails_and_views_between_packs(void **state) {
  (void)state;
  static uint8_t x[MOST_BYTES], y[MOST_BYTES];
  static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 9, 255, 1024, 2047, 2048, 2049, 5003};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    for (size_t k = 0; k < 8; k++) {
      tn_type type = TYPE(dtypes[k % 4], counts[i]);
      const operand operands[2] = {{type, k < 4 ? 0 : 1, NULL, drawn(&type, 1, x)},
                                   {type, k < 4 ? 0 : 3, NULL, drawn(&type, 2, y)}};
      check_equal("maximum", operands, 2);
      check_equal("mul", operands, 2);
    }
}

/* A value by channel, by row, by sample, or one, for images whose channels come first and last. */
static void operands_repeat_in_every_way(void **state) {
  (void)state;
  static const int64_t images[][4] = {{2, 16, 4, 4}, {3, 12, 5, 1}, {2, 5, 3, 3}, {1, 8, 2, 6}};
  static const int32_t last[] = {0, 3, 1, 2};
  static uint8_t x[MOST_BYTES], y[MOST_BYTES];
  for (size_t i = 0; i < sizeof images / sizeof *images; i++)
    for (size_t k = 0; k < 128; k++) {
      const int64_t *d = images[i];
      bool channels_last = k % 2 == 1;
      tn_type type =
          channels_last ? TYPE(dtypes[k / 2 % 4], d[0], d[2], d[3], d[1]) : type_of(dtypes[k / 2 % 4], 4, d);
      size_t keep = k / 8; /* a bit for each dimension */
      tn_type part = {type.dtype, 4, {0}};
      for (int32_t a = 0; a < 4; a++) part.dims[a] = keep >> a & 1 ? d[a] : 1;
      const operand operands[2] = {{type, 0, channels_last ? last : NULL, drawn(&type, 1, x)},
                                   {part, 0, NULL, drawn(&part, 2, y)}};
      check_equal("sub", operands, 2);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_numbers_have_the_bits_of_the_reference),
      cmocka_unit_test(normal_numbers_of_both_precisions_agree),
      cmocka_unit_test(tails_and_views_between_packs),
      cmocka_unit_test(operands_repeat_in_every_way),
  };
  return cmocka_run_group_tests(tests, open_devices, close_devices);
}
