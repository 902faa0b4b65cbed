/* tests/unit/plugins/transforms/build_test.c: a transform gives the same results on the device as on the
 * host. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/conformance/fixture.h"
#include "core/conformance/reference/reference.h"
#include "core/config/options/options.h"
#include "plugins/transforms/transforms.h"

enum { BATCH = 2, SAMPLE = 3 * 4 * 5, COUNT = BATCH * SAMPLE };

static fixture f;
static tn_arena arena;

static int start(void **state) {
  (void)state;
  if (fixture_open(&f) != TN_OK) return -1;
  arena = tn_arena_new(&f.env);
  return 0;
}

static int stop(void **state) {
  (void)state;
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

/* A graph with only the transform: input x, output y. */
static tn_graph *emit(const tn_transform *t, const void *options, int32_t dtype) {
  tn_type type = {dtype, 4, {BATCH, 3, 4, 5}};
  tn_graph *graph;
  tn_builder *builder;
  tn_val yielded = 0;
  assert_int_equal(tn_graph_create(&f.env, f.ops, &graph), TN_OK);
  assert_int_equal(tn_builder_create(graph, &builder), TN_OK);
  tn_build *b = tn_builder_handle(builder);
  tn_val x = tn_graph_input(graph, "x", &type);
  tn_build_frame frame = {.in = &x, .n_in = 1, .yielded = &yielded, .n_yield = 1, .prefix = "", .where = ""};
  tn_builder_push(b, &frame);
  if (t->build(b, options) != TN_OK) fail_msg("%s", tn_error_text(b));
  tn_builder_pop(b);
  assert_int_not_equal(yielded, 0);
  assert_int_equal(tn_graph_output(graph, "y", yielded), TN_OK);
  assert_int_equal(tn_graph_verify(graph), TN_OK);
  tn_builder_destroy(builder);
  return graph;
}

static void compare(const tn_transform *t, const char *const *pairs, int32_t dtype) {
  uint8_t bytes[COUNT];
  float floats[COUNT], expected[COUNT];
  tn_reference *r;
  tn_type type = {dtype, 3, {3, 4, 5}}, result = type;
  const void *options = options_of(t, pairs);
  tn_graph *graph = emit(t, options, dtype);
  assert_int_equal(tn_reference_create(graph, &r), TN_OK);
  for (int i = 0; i < COUNT; i++) {
    bytes[i] = (uint8_t)(i * 41 + 7);
    floats[i] = (float)bytes[i] / 100;
    tn_reference_input(r, "x")[i] = dtype == TN_U8 ? bytes[i] : floats[i];
  }
  assert_int_equal(t->infer(&f.env, options, 1, &type, &result), TN_OK);
  for (int n = 0; n < BATCH; n++) {
    const void *in = dtype == TN_U8 ? (const void *)(bytes + n * SAMPLE) : floats + n * SAMPLE;
    void *out = expected + n * SAMPLE;
    tn_transform_call call = {.env = f.env,
                              .struct_size = sizeof call,
                              .n = 1,
                              .in_type = &type,
                              .out_type = &result,
                              .in = &in,
                              .out = &out};
    assert_int_equal(t->apply(&call, options), TN_OK);
  }
  assert_int_equal(tn_reference_run(r), TN_OK);
  const double *y = tn_reference_output(r, "y", &type);
  assert_true(type.dtype == TN_F32 && type.rank == 4 && tn_type_count(&type) == COUNT);
  for (int i = 0; i < COUNT; i++) assert_true(fabs(y[i] - (double)expected[i]) < 1e-5);
  tn_reference_destroy(r);
  tn_graph_destroy(graph);
}

static void to_float_means_the_same_on_the_device(void **state) {
  (void)state;
  compare(&to_float_transform, (const char *const[]){NULL}, TN_U8);
}

static void normalize_means_the_same_on_the_device(void **state) {
  (void)state;
  compare(&normalize_transform, PAIRS("mean", "0.5", "std", "0.25"), TN_F32);
  compare(&normalize_transform, PAIRS("mean", "[0.1, 0.2, 0.3]", "std", "[0.5, 0.6, 0.7]"), TN_U8);
  compare(&normalize_transform, PAIRS("mean", "[0.1, 0.2, 0.3]", "std", "2"), TN_F32);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(to_float_means_the_same_on_the_device, start, stop),
      cmocka_unit_test_setup_teardown(normalize_means_the_same_on_the_device, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
