/* tests/cudnn/engines_test.c: the graphs that the backend describes, given to the real cuDNN: accepted, with
 * engines for sm_80 and sm_90; or declined, with cuDNN's reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "backends/cuda/cudnn/descriptors.h"
#include "backends/cuda/objects.h"
#include "tests/cudnn/real.h"
#include "tests/unit/backends/cuda/rig.h"

static const char *const devices[] = {"made_up_a100", "made_up_h200"};
static const int32_t dtypes[] = {TN_F16, TN_BF16, TN_F32};
static bool compiles; /* the double of the driver loads code */

/* 3 x 3, padding 1; y has the dims of x. */
static void describe_conv(tn_cudnn_graph *g, int32_t kind, int32_t dtype) {
  const tn_cudnn_window window = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  tn_type x = real_image(dtype, 32, 64, 28, 28), w = real_image(dtype, 64, 64, 3, 3);
  int32_t tx = tn_cudnn_image(g, &x), tw = tn_cudnn_image(g, &w), ty = tn_cudnn_image(g, &x);
  tn_cudnn_convolve(g, kind, &window, tx, tw, ty);
}

static const tn_cudnn_engines *find(const char *device, const tn_cudnn_graph *g, bool exact) {
  static tn_cudnn_engines engines;
  const tn_device_properties p = real_device(device);
  const tn_cuda_backend_object backend = {.cudnn = real_library()};
  tn_env env = cuda_rig_env();
  *cuda_rig_text = '\0';
  tn_status status = tn_cudnn_find_engines(&env, &backend, &p, g, exact, &engines);
  assert_true((status == TN_OK) == (engines.n > 0));
  return &engines;
}

static int answers(void) {
  int n = 0;
  for (const struct tn_cudnn_answer *a = real_library()->answers; a != NULL; a = *(void *const *)a) n++;
  return n;
}

static void convolutions_have_engines(void **state) {
  (void)state;
  for (int d = 0; d < 2; d++)
    for (int k = 0; k < 3; k++)
      for (int32_t kind = TN_CUDNN_CONV_FORWARD; kind <= TN_CUDNN_CONV_GRAD_WEIGHT; kind++) {
        tn_cudnn_graph g = {0};
        describe_conv(&g, kind, dtypes[k]);
        const tn_cudnn_engines *e = find(devices[d], &g, false);
        if (e->n == 0) fail_msg("%s, %s, %d: %s", devices[d], tn_dtype_name(dtypes[k]), (int)kind, e->reason);
        assert_true(e->engine[0].matrix);
        assert_true(e->engine[0].deterministic);
        for (int32_t i = 0; i < e->n; i++) {
          assert_false(e->engine[i].compiled);
          assert_true(e->engine[i].workspace_bytes >= 0 && e->engine[i].workspace_bytes <= 256 << 20);
        }
      }
}

/* tf32 has 10 bits of mantissa. */
static void f32_of_full_precision_leaves_matrix_units_out(void **state) {
  (void)state;
  for (int d = 0; d < 2; d++)
    for (int32_t kind = TN_CUDNN_CONV_FORWARD; kind <= TN_CUDNN_CONV_GRAD_WEIGHT; kind++) {
      tn_cudnn_graph g = {0};
      describe_conv(&g, kind, TN_F32);
      const tn_cudnn_engines *e = find(devices[d], &g, true);
      assert_true(e->n > 0);
      for (int32_t i = 0; i < e->n; i++) assert_false(e->engine[i].matrix);
    }
}

static void answers_are_remembered_by_graph_and_device(void **state) {
  tn_cudnn_graph g = {0}, other = {0};
  (void)state;
  describe_conv(&g, TN_CUDNN_CONV_FORWARD, TN_F16);
  describe_conv(&other, TN_CUDNN_CONV_FORWARD, TN_F16);
  other.operations[0].window.dilation[0] = 2;
  other.operations[0].window.before[0] = other.operations[0].window.after[0] = 2;
  tn_cudnn_forget_engines(real_library());
  (void)find("made_up_h200", &g, false);
  (void)find("made_up_h200", &g, false);
  assert_int_equal(answers(), 1);
  (void)find("made_up_a100", &g, false);
  assert_int_equal(answers(), 2);
  (void)find("made_up_h200", &other, false);
  assert_int_equal(answers(), 3);
  (void)find("made_up_h200", &g, true);
  assert_int_equal(answers(), 4);
}

static void a_graph_that_is_none_is_declined_with_the_reason_of_cudnn(void **state) {
  tn_cudnn_graph g = {0};
  (void)state;
  describe_conv(&g, TN_CUDNN_CONV_FORWARD, TN_F16);
  g.tensors[2].dims[2] = 27; /* y has another height than the window gives */
  assert_int_equal(find("made_up_h200", &g, false)->n, 0);
  assert_non_null(strstr(cuda_rig_text, "CUDNN_STATUS_BAD_PARAM"));
  describe_conv(&g, TN_CUDNN_CONV_FORWARD, TN_F16);
  for (int32_t i = 0; i < TN_CUDNN_OPERATIONS; i++) tn_cudnn_pointwise(&g, CUDNN_POINTWISE_EXP, 0, -1, 2);
  assert_true(g.outgrown);
  assert_int_equal(find("made_up_h200", &g, false)->n, 0);
  assert_non_null(strstr(cuda_rig_text, "too many tensors or operations"));
}

static void a_device_without_its_description_is_declined(void **state) {
  static const char *const details[] = {NULL, "{\"deviceVer\": 900}"};
  static const char *const reasons[] = {"has no description", "is not what cuDNN reads"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    tn_device_properties p = real_device("made_up_h200");
    tn_cudnn_engines engines;
    const tn_cuda_backend_object backend = {.cudnn = real_library()};
    tn_env env = cuda_rig_env();
    tn_cudnn_graph g = {0};
    p.details = details[i];
    describe_conv(&g, TN_CUDNN_CONV_FORWARD, TN_F16);
    assert_int_equal(tn_cudnn_find_engines(&env, &backend, &p, &g, false, &engines), TN_EUNSUPPORTED);
    if (strstr(cuda_rig_text, reasons[i]) == NULL) fail_msg("%s", cuda_rig_text);
  }
}

static void a_library_that_is_not_open_is_declined(void **state) {
  static const tn_cuda_backend_object without_cudnn;
  const void *const backends[] = {NULL, &without_cudnn};
  static const char *const reasons[] = {"the backend cuda is not open", "cudnn = no"};
  const tn_device_properties p = real_device("made_up_h200");
  (void)state;
  for (int i = 0; i < 2; i++) {
    tn_cudnn_engines engines;
    tn_env env = cuda_rig_env();
    tn_cudnn_graph g = {0};
    describe_conv(&g, TN_CUDNN_CONV_FORWARD, TN_F16);
    assert_int_equal(tn_cudnn_find_engines(&env, backends[i], &p, &g, false, &engines), TN_EUNSUPPORTED);
    if (strstr(cuda_rig_text, reasons[i]) == NULL) fail_msg("%s", cuda_rig_text);
    assert_int_equal(tn_cudnn_version_of(backends[i]), 0);
  }
}

/* The settings of an engine, read from cuDNN's configurations, make a plan with the promised workspace. */
static void assert_plan(const char *device, const tn_cudnn_graph *g, const tn_cudnn_engine *e) {
  static tn_cudnn_calls c;
  const tn_device_properties p = real_device(device);
  int64_t workspace = -1, text = 0;
  tn_cudnn_calls_init(&c, real_library());
  cudnnBackendDescriptor_t plan = tn_cudnn_describe_plan(&c, g, e, p.details, NULL);
  tn_cudnn_get(&c, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
  text = tn_cudnn_get(&c, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, NULL);
  if (!tn_cudnn_ok(&c)) fail_msg("%s, %s: %s", device, e->name, c.why);
  tn_cudnn_calls_free(&c);
  assert_int_equal(workspace, e->workspace_bytes);
  assert_true(text > 0);
}

static void engines_make_plans(void **state) {
  (void)state;
  for (int d = 0; d < 2; d++)
    for (int k = 0; k < 3; k++)
      for (int32_t kind = TN_CUDNN_CONV_FORWARD; kind <= TN_CUDNN_CONV_GRAD_WEIGHT; kind++) {
        tn_cudnn_graph g = {0};
        describe_conv(&g, kind, dtypes[k]);
        const tn_cudnn_engines *e = find(devices[d], &g, false);
        for (int32_t i = 0; i < e->n; i++) assert_plan(devices[d], &g, &e->engine[i]);
      }
}

/* A convolution in bf16 with statistics is compiled at run time on sm_90. */
static void engines_are_compiled_where_there_is_a_driver(void **state) {
  tn_cudnn_graph g = {0};
  (void)state;
  if (!compiles) {
    printf("skipped: no double of the driver that loads code\n");
    skip();
  }
  describe_conv(&g, TN_CUDNN_CONV_FORWARD, TN_BF16);
  int32_t sum = tn_cudnn_channels(&g, TN_F32, 64), squares = tn_cudnn_channels(&g, TN_F32, 64);
  tn_cudnn_gen_stats(&g, 2, sum, squares);
  const tn_cudnn_engines *e = find("made_up_h200", &g, false);
  assert_int_equal(e->n > 0, 1);
  assert_true(e->engine[0].compiled);
  assert_plan("made_up_h200", &g, &e->engine[0]);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_have_engines),
      cmocka_unit_test(f32_of_full_precision_leaves_matrix_units_out),
      cmocka_unit_test(answers_are_remembered_by_graph_and_device),
      cmocka_unit_test(a_graph_that_is_none_is_declined_with_the_reason_of_cudnn),
      cmocka_unit_test(a_device_without_its_description_is_declined),
      cmocka_unit_test(a_library_that_is_not_open_is_declined),
      cmocka_unit_test(engines_make_plans),
      cmocka_unit_test(engines_are_compiled_where_there_is_a_driver),
  };
  compiles = argc > 1 && real_driver(argv[1]); /* before the library takes another driver */
  if (real_library() == NULL) return 77;
  return cmocka_run_group_tests_name("cudnn engines", tests, NULL, NULL);
}
