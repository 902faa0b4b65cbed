/* tests/unit/plugins/transforms/build_test.c: a transform gives the same results on the device as on the
 * host. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/conformance/fixture.h"
#include "core/base/rows.h"
#include "core/conformance/reference/reference.h"
#include "core/config/options/options.h"
#include "core/data/transform_chain.h"
#include "plugins/transforms/transforms.h"

extern const tn_transform center_crop_transform, normalize_transform, random_crop_transform,
    random_flip_transform, resize_transform, to_float_transform;

enum { BATCH = 3, MOST = BATCH * 2 * 64 * 64 };

static fixture f;
static tn_arena arena;
static tn_scratch scratch; /* of a worker */

static int start(void **state) {
  (void)state;
  if (fixture_open(&f) != TN_OK) return -1;
  arena = tn_arena_new(&f.env);
  return 0;
}

static int stop(void **state) {
  (void)state;
  tn_release(&f.env, scratch.memory);
  scratch = (tn_scratch){NULL, 0};
  tn_arena_free(&arena);
  fixture_close(&f);
  return 0;
}

static const void *options_of(const tn_transform *t, const char *const *pairs) {
  tn_options options;
  assert_int_equal(tn_options_start(&f.env, &arena, &t->item, &options), TN_OK);
  for (; *pairs != NULL; pairs += 2)
    assert_int_equal(tn_options_set_text(&f.env, &options, pairs[0], pairs[1]), TN_OK);
  assert_int_equal(tn_options_finish(&f.env, &options), TN_OK);
  return options.data;
}
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { FIELDS = 4 };
static const char *const operand_names[FIELDS] = {"x", "x1", "x2", "x3"};
static const char *const result_names[FIELDS] = {"y", "y1", "y2", "y3"};

/* A graph with only the transform: inputs x and so on and, if it has random choices, draws; outputs y. */
static tn_graph *emit(const tn_transform *t, const void *options, int32_t n, const tn_type *samples) {
  tn_type pairs = {TN_I32, 2, {BATCH, t->draws}};
  tn_graph *graph;
  tn_builder *builder;
  tn_val yielded[FIELDS] = {0}, in[FIELDS + 1] = {0};
  assert_int_equal(tn_graph_create(&f.env, f.ops, &graph), TN_OK);
  assert_int_equal(tn_builder_create(graph, &builder), TN_OK);
  tn_build *b = tn_builder_handle(builder);
  for (int32_t k = 0; k < n; k++) {
    tn_type type = tn_type_batched(&samples[k], BATCH);
    in[k] = tn_graph_input(graph, operand_names[k], &type);
  }
  if (t->draws > 0) in[n] = tn_graph_input(graph, "draws", &pairs);
  tn_build_frame frame = {
      .in = in, .n_in = n + (t->draws > 0), .yielded = yielded, .n_yield = n, .prefix = "", .where = ""};
  tn_builder_push(b, &frame);
  if (t->build(b, options) != TN_OK) fail_msg("%s", tn_error_text(b));
  tn_builder_pop(b);
  for (int32_t k = 0; k < n; k++) {
    assert_int_not_equal(yielded[k], 0);
    assert_int_equal(tn_graph_output(graph, result_names[k], yielded[k]), TN_OK);
  }
  assert_int_equal(tn_graph_verify(graph), TN_OK);
  tn_builder_destroy(builder);
  return graph;
}

/* Values of the batch. */
static union {
  uint8_t u8[MOST];
  float f32[MOST];
} in, out;

static void fill(int32_t dtype) {
  for (int i = 0; i < MOST; i++) {
    uint8_t byte = (uint8_t)(i * 41 + i * i * 7 + i / 50);
    if (dtype == TN_U8)
      in.u8[i] = byte;
    else
      in.f32[i] = (float)byte / 100;
  }
}

/* The host's result of sample n, and its random choices. */
static void apply(const tn_transform *t, const void *options, const tn_type *type, const tn_type *result,
                  int n, double *draws) {
  int32_t values[8];
  const void *from = (const char *)&in + (size_t)n * tn_type_bytes(type);
  void *to = (char *)&out + (size_t)n * tn_type_bytes(result);
  tn_transform_call call = {.env = f.env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = type,
                            .out_type = result,
                            .key = 1000u + (uint64_t)n,
                            .scratch = &scratch};
  if (t->draws > 0) assert_int_equal(t->draw(&call, options, values), TN_OK);
  for (int i = 0; i < t->draws; i++) draws[n * t->draws + i] = values[i];
  call.in = &from;
  call.out = &to;
  if (t->apply(&call, options) != TN_OK) fail_msg("%s", tn_error_text(&f.env));
}

/* Compares the results of a batch on the reference with those of apply. */
static void compare(const tn_transform *t, const char *const *pairs, const tn_type *type, double tolerance) {
  tn_reference *r;
  tn_type result = *type;
  const void *options = options_of(t, pairs);
  if (t->infer(&f.env, options, 1, type, &result) != TN_OK) fail_msg("%s", tn_error_text(&f.env));
  assert_true(tn_type_count(type) * BATCH <= MOST && tn_type_count(&result) * BATCH <= MOST);
  tn_graph *graph = emit(t, options, 1, type);
  assert_int_equal(tn_reference_create(graph, &r), TN_OK);
  fill(type->dtype);
  for (int64_t i = 0; i < BATCH * tn_type_count(type); i++)
    tn_reference_input(r, "x")[i] = type->dtype == TN_U8 ? in.u8[i] : (double)in.f32[i];
  for (int n = 0; n < BATCH; n++) apply(t, options, type, &result, n, tn_reference_input(r, "draws"));
  assert_int_equal(tn_reference_run(r), TN_OK);
  tn_type got, expected = tn_type_batched(&result, BATCH);
  const double *y = tn_reference_output(r, "y", &got);
  assert_true(tn_type_equal(&got, &expected));
  for (int64_t i = 0; i < tn_type_count(&got); i++) {
    double value = got.dtype == TN_U8 ? out.u8[i] : (double)out.f32[i];
    if (!(fabs(y[i] - value) <= tolerance))
      fail_msg("%s, element %lld: %.9g on the device, %.9g on the host", t->item.name, (long long)i, y[i],
               value);
  }
  tn_reference_destroy(r);
  tn_graph_destroy(graph);
}

/* ---- a picture with its mask, boxes and points ---- */

static const tn_type together[FIELDS] = {
    {TN_U8, 3, {2, 9, 12}}, {TN_I32, 2, {9, 12}}, {TN_F32, 2, {3, 4}}, {TN_F32, 2, {2, 2}}};

static double field_number(const void *values, int32_t dtype, int64_t i) {
  if (dtype == TN_U8) return ((const uint8_t *)values)[i];
  return dtype == TN_I32 ? ((const int32_t *)values)[i] : (double)((const float *)values)[i];
}

static void compare_field(tn_reference *r, int32_t k, int n, const tn_type *type, const void *values) {
  tn_type got;
  const double *y = tn_reference_output(r, result_names[k], &got);
  int64_t count = tn_type_count(type);
  assert_int_equal(tn_type_count(&got), BATCH * count);
  for (int64_t i = 0; i < count; i++) {
    double value = field_number(values, type->dtype, i);
    if (!(fabs(y[n * count + i] - value) <= (type->dtype == TN_F32 ? 4e-6 : 0)))
      fail_msg("field %d, element %lld: %.9g on the device, %.9g on the host", (int)k, (long long)i,
               y[n * count + i], value);
  }
}

/* Every sample of the batch is the same; their random choices differ. */
static void compare_together(const tn_transform *t, const char *const *pairs) {
  static uint8_t image[2 * 9 * 12], images[4 * 64 * 64];
  static int32_t mask[9 * 12], masks[64 * 64];
  static const float boxes[3][4] = {{1, 2, 4, 6}, {6.5f, 0.25f, 9.75f, 8}, {0, 0, 0, 0}};
  static const float points[2][2] = {{1, 2}, {6.5f, 0.25f}};
  static float moved[3][4], went[2][2];
  const void *const from[FIELDS] = {image, mask, boxes, points};
  void *const to[FIELDS] = {images, masks, moved, went};
  const void *options = options_of(t, pairs);
  tn_type results[FIELDS];
  tn_reference *r;
  for (int i = 0; i < 2 * 9 * 12; i++) image[i] = (uint8_t)(i * i * 7 + i);
  for (int i = 0; i < 9 * 12; i++) mask[i] = i * i % 17 - 3;
  if (t->infer(&f.env, options, FIELDS, together, results) != TN_OK) fail_msg("%s", tn_error_text(&f.env));
  tn_graph *graph = emit(t, options, FIELDS, together);
  assert_int_equal(tn_reference_create(graph, &r), TN_OK);
  for (int32_t k = 0; k < FIELDS; k++)
    for (int64_t i = 0, n = tn_type_count(&together[k]); i < BATCH * n; i++)
      tn_reference_input(r, operand_names[k])[i] = field_number(from[k], together[k].dtype, i % n);
  for (int round = 0; round < 2; round++) {
    for (int n = 0; n < BATCH; n++) {
      tn_transform_call call = {.env = f.env,
                                .struct_size = sizeof call,
                                .n = FIELDS,
                                .in_type = together,
                                .out_type = results,
                                .in = from,
                                .out = to,
                                .key = 77u + (uint64_t)n,
                                .scratch = &scratch};
      int32_t values[8];
      if (t->draws > 0) assert_int_equal(t->draw(&call, options, values), TN_OK);
      for (int i = 0; i < t->draws; i++) tn_reference_input(r, "draws")[n * t->draws + i] = values[i];
      assert_int_equal(t->apply(&call, options), TN_OK);
      for (int32_t k = 0; round == 1 && k < FIELDS; k++) compare_field(r, k, n, &results[k], to[k]);
    }
    if (round == 0) assert_int_equal(tn_reference_run(r), TN_OK);
  }
  tn_reference_destroy(r);
  tn_graph_destroy(graph);
}

static void fields_go_with_the_picture_on_the_device(void **state) {
  (void)state;
  compare_together(&center_crop_transform, PAIRS("size", "[4, 7]"));
  compare_together(&random_crop_transform, PAIRS("size", "[5, 6]", "padding", "2"));
  compare_together(&random_flip_transform, PAIRS("p", "0.5"));
  compare_together(&random_flip_transform, PAIRS("p", "1", "direction", "vertical"));
  compare_together(&resize_transform, PAIRS("size", "[13, 5]"));
}

static tn_type picture_type(int32_t dtype, int64_t height, int64_t width) {
  return (tn_type){dtype, 3, {2, height, width}};
}

/* The reference computes in f64. */
static const double rounding = 1e-5;

static void to_float_means_the_same_on_the_device(void **state) {
  (void)state;
  tn_type u8 = picture_type(TN_U8, 4, 5);
  compare(&to_float_transform, (const char *const[]){NULL}, &u8, rounding);
}

static void normalize_means_the_same_on_the_device(void **state) {
  (void)state;
  tn_type u8 = picture_type(TN_U8, 4, 5), f32 = picture_type(TN_F32, 4, 5);
  compare(&normalize_transform, PAIRS("mean", "0.5", "std", "0.25"), &f32, rounding);
  compare(&normalize_transform, PAIRS("mean", "[0.1, 0.2]", "std", "[0.5, 0.6]"), &u8, rounding);
  compare(&normalize_transform, PAIRS("mean", "[0.1, 0.2]", "std", "2"), &f32, rounding);
}

static void crops_mean_the_same_on_the_device(void **state) {
  (void)state;
  tn_type u8 = picture_type(TN_U8, 9, 12), f32 = picture_type(TN_F32, 8, 7);
  compare(&center_crop_transform, PAIRS("size", "[4, 7]"), &u8, 0);
  compare(&center_crop_transform, PAIRS("size", "5"), &f32, 0);
  compare(&random_crop_transform, PAIRS("size", "[4, 7]"), &u8, 0);
  compare(&random_crop_transform, PAIRS("size", "12", "padding", "5"), &u8, 0);
  compare(&random_crop_transform, PAIRS("size", "[7, 6]", "padding", "2"), &f32, 0);
}

static void flips_mean_the_same_on_the_device(void **state) {
  (void)state;
  tn_type u8 = picture_type(TN_U8, 9, 12), f32 = picture_type(TN_F32, 8, 7);
  compare(&random_flip_transform, (const char *const[]){NULL}, &u8, 0);
  compare(&random_flip_transform, PAIRS("p", "1"), &f32, 0);
  compare(&random_flip_transform, PAIRS("p", "1", "direction", "vertical"), &u8, 0);
  compare(&random_flip_transform, PAIRS("p", "0"), &u8, 0);
}

/* Every ratio of sizes up to 34, up and down. */
static void resize_of_bytes_has_the_same_bits_on_the_device(void **state) {
  (void)state;
  char size[32];
  for (int from = 1; from <= 34; from += 3)
    for (int to = 1; to <= 34; to++) {
      tn_type u8 = picture_type(TN_U8, from, 35 - from);
      snprintf(size, sizeof size, "[%d, %d]", to, 35 - to);
      compare(&resize_transform, PAIRS("size", size), &u8, 0);
    }
  tn_type wide = picture_type(TN_U8, 20, 31);
  compare(&resize_transform, PAIRS("size", "13"), &wide, 0);
}

/* The values are up to 2.55; the weights of both are f32, and the host's sums as well. */
static void resize_of_floats_differs_by_rounding(void **state) {
  (void)state;
  tn_type f32 = picture_type(TN_F32, 20, 31);
  compare(&resize_transform, PAIRS("size", "[33, 9]"), &f32, 1e-6);
  compare(&resize_transform, PAIRS("size", "40"), &f32, 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(to_float_means_the_same_on_the_device, start, stop),
      cmocka_unit_test_setup_teardown(normalize_means_the_same_on_the_device, start, stop),
      cmocka_unit_test_setup_teardown(crops_mean_the_same_on_the_device, start, stop),
      cmocka_unit_test_setup_teardown(flips_mean_the_same_on_the_device, start, stop),
      cmocka_unit_test_setup_teardown(resize_of_bytes_has_the_same_bits_on_the_device, start, stop),
      cmocka_unit_test_setup_teardown(resize_of_floats_differs_by_rounding, start, stop),
      cmocka_unit_test_setup_teardown(fields_go_with_the_picture_on_the_device, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
