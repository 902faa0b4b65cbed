/* tests/cudnn/attention_test.c: the graphs of attention and its gradient, given to the real cuDNN: it has
 * engines for sm_80 and sm_90, which are compiled at run time and so show only where there is a driver, or
 * its double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cudnn/kernels/attention_graph.h"
#include "backends/cuda/objects.h"
#include "tests/cudnn/real.h"
#include "tests/unit/backends/cuda/rig.h"

enum { FORWARD, VARYING, ORDERED, GRAPHS };
/* Where heads lie: (batch, heads, tokens, width); (batch, tokens, heads x width); and in there, queries, keys
 * and values side by side. */
enum { APART, TOGETHER, SLICES, PLACES };

static const char *const devices[] = {"made_up_a100", "made_up_h200"};

typedef struct shape {
  int32_t dtype;
  int64_t batch, heads, queries, keys, width, value_width;
  bool causal;
  int place;
} shape;

static tn_cuda_heads heads_at(const shape *s, int64_t tokens, int64_t width, int64_t parts) {
  int64_t row = parts * s->heads * width;
  if (s->place == APART)
    return (tn_cuda_heads){.batch = s->heads * tokens * width, .head = tokens * width, .row = width};
  return (tn_cuda_heads){.batch = tokens * row, .head = width, .row = row};
}

static tn_cuda_attention_use use_of(const shape *s, bool gradient) {
  int64_t parts = s->place == SLICES ? 3 : 1;
  tn_cuda_attention_use a = {.gradient = gradient,
                             .causal = s->causal,
                             .dtype = s->dtype,
                             .scale = 1 / sqrt((double)s->width),
                             .batch = s->batch,
                             .heads = s->heads,
                             .queries = s->queries,
                             .keys = s->keys,
                             .width = s->width,
                             .value_width = s->value_width};
  a.q = a.dq = heads_at(s, s->queries, s->width, parts);
  a.k = a.dk = heads_at(s, s->keys, s->width, parts);
  a.v = a.dv = heads_at(s, s->keys, s->value_width, parts);
  a.y = a.dy = heads_at(s, s->queries, s->value_width, 1);
  return a;
}

static void describe(const shape *s, int graph, tn_cudnn_graph *g) {
  const tn_cuda_attention_use a = use_of(s, graph != FORWARD);
  if (graph == FORWARD)
    tn_cudnn_attention_graph(&a, g);
  else
    tn_cudnn_attention_grad_graph(&a, graph == ORDERED, g);
  if (graph == ORDERED) g->most_workspace = (int64_t)2 << 30;
}

static const tn_cudnn_engines *find(const char *device, const tn_cudnn_graph *g) {
  static tn_cudnn_engines engines;
  const tn_device_properties p = real_device(device);
  const tn_cuda_backend_object backend = {.cudnn = real_library()};
  tn_env env = cuda_rig_env();
  *cuda_rig_text = '\0';
  (void)tn_cudnn_find_engines(&env, &backend, &p, g, false, &engines);
  return &engines;
}

static const tn_cudnn_engine *engine_of(const char *device, const shape *s, int graph) {
  static const char *const names[] = {"attention", "the gradient", "the ordered gradient"};
  tn_cudnn_graph g;
  describe(s, graph, &g);
  const tn_cudnn_engines *e = find(device, &g);
  if (e->n == 0)
    fail_msg("%s of %lld x %lld queries, %lld keys, %lld and %lld wide, %s, %s, place %d, on %s: %s",
             names[graph], (long long)(s->batch * s->heads), (long long)s->queries, (long long)s->keys,
             (long long)s->width, (long long)s->value_width, tn_dtype_name(s->dtype),
             s->causal ? "causal" : "full", s->place, device, e->reason);
  return &e->engine[0];
}

/* character models: 6 heads, 256 tokens; GPT-2 124M: 12 heads, 1024 tokens. */
static void models_have_engines(void **state) {
  static const shape shapes[] = {{TN_F16, 64, 6, 256, 256, 64, 64, true, SLICES},
                                 {TN_F16, 8, 12, 1024, 1024, 64, 64, true, SLICES},
                                 {TN_F16, 64, 12, 1024, 1024, 64, 64, true, SLICES},
                                 {TN_F16, 8, 16, 2048, 2048, 128, 128, true, TOGETHER},
                                 {TN_F16, 16, 12, 512, 512, 64, 64, false, APART}};
  (void)state;
  for (int d = 0; d < 2; d++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int graph = FORWARD; graph < GRAPHS; graph++)
        for (int place = APART; place < PLACES; place++)
          for (int bf16 = 0; bf16 < 2; bf16++) {
            shape s = shapes[i];
            s.place = place;
            if (bf16) s.dtype = TN_BF16;
            const tn_cudnn_engine *e = engine_of(devices[d], &s, graph);
            assert_true(e->compiled && e->matrix && e->deterministic);
          }
}

/* The gradients of the scores in 16 bits, or dq in f32. */
static void workspaces_are_those_of_the_forms(void **state) {
  const shape s = {TN_BF16, 8, 12, 1024, 1024, 64, 64, true, SLICES};
  const int64_t scores = 8 * 12 * 1024 * 1024 * 2, dq = 8 * 12 * 1024 * 64 * 4;
  (void)state;
  for (int d = 0; d < 2; d++) {
    assert_in_range(engine_of(devices[d], &s, FORWARD)->workspace_bytes, 0, 1 << 20);
    assert_in_range(engine_of(devices[d], &s, VARYING)->workspace_bytes, 0, dq + (1 << 20));
    assert_in_range(engine_of(devices[d], &s, ORDERED)->workspace_bytes, scores, scores + (1 << 20));
  }
}

static void lengths_need_no_padding(void **state) {
  static const int64_t lengths[][2] = {{1000, 1000}, {17, 17},   {65, 65}, {2, 2},
                                       {1, 64},      {100, 300}, {7, 13}};
  (void)state;
  for (int d = 0; d < 2; d++)
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
      for (int graph = FORWARD; graph < GRAPHS; graph++)
        for (int causal = 0; causal < 2; causal++) {
          const shape s = {TN_F16, 2, 3, lengths[i][0], lengths[i][1], 64, 64, causal != 0, TOGETHER};
          (void)engine_of(devices[d], &s, graph);
        }
}

static void widths_are_multiples_of_8(void **state) {
  static const int64_t widths[][2] = {{8, 8}, {16, 16}, {24, 24}, {40, 40}, {96, 96}, {128, 64}, {64, 32}};
  static const int64_t others[][2] = {{12, 12}, {5, 5}};
  tn_cudnn_graph g;
  (void)state;
  for (int d = 0; d < 2; d++)
    for (int graph = FORWARD; graph < GRAPHS; graph++) {
      shape s = {TN_BF16, 2, 3, 128, 128, 64, 64, true, TOGETHER};
      for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        s.width = widths[i][0];
        s.value_width = widths[i][1];
        (void)engine_of(devices[d], &s, graph);
      }
      for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        s.width = others[i][0];
        s.value_width = others[i][1];
        describe(&s, graph, &g);
        if (find(devices[d], &g)->n > 0) fail_msg("%lld: cuDNN has it now", (long long)s.width);
        assert_non_null(strstr(cuda_rig_text, "cuDNN has no engine"));
      }
    }
}

/* A graph without engines may have some where code can be compiled. */
static void a_missing_driver_is_named(void **state) {
  const shape s = {TN_BF16, 2, 3, 128, 128, 20, 20, true, TOGETHER};
  tn_cudnn_graph g;
  (void)state;
  describe(&s, FORWARD, &g);
  strcpy(real_library()->driverless, "no driver for this test");
  assert_int_equal(find("made_up_h200", &g)->n, 0);
  real_library()->driverless[0] = '\0';
  assert_string_equal(
      cuda_rig_text,
      "cuDNN has no engine for this graph on this device; those that are compiled at run time are "
      "missing: no driver for this test");
}

/* On sm_80 the gradient ends at 128, attention does not. */
static void wide_heads_differ_by_device(void **state) {
  const shape s = {TN_F16, 2, 3, 128, 128, 160, 160, true, TOGETHER};
  tn_cudnn_graph g;
  (void)state;
  (void)engine_of("made_up_a100", &s, FORWARD);
  (void)engine_of("made_up_h200", &s, VARYING);
  describe(&s, VARYING, &g);
  assert_int_equal(find("made_up_a100", &g)->n, 0);
}

/* The workspace of a graph bounds its engines. */
static void engines_with_more_workspace_are_left_out(void **state) {
  const shape s = {TN_F16, 64, 12, 1024, 1024, 64, 64, true, SLICES};
  tn_cudnn_graph g;
  (void)state;
  describe(&s, ORDERED, &g);
  assert_true(find("made_up_h200", &g)->n > 0);
  g.most_workspace = 0;
  assert_int_equal(find("made_up_h200", &g)->n, 0);
  assert_non_null(strstr(cuda_rig_text, "more than 256 MiB"));
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(models_have_engines),
      cmocka_unit_test(workspaces_are_those_of_the_forms),
      cmocka_unit_test(lengths_need_no_padding),
      cmocka_unit_test(widths_are_multiples_of_8),
      cmocka_unit_test(a_missing_driver_is_named),
      cmocka_unit_test(wide_heads_differ_by_device),
      cmocka_unit_test(engines_with_more_workspace_are_left_out),
  };
  bool has_driver = argc > 1 && real_driver(argv[1]); /* before the library takes another */
  if (real_library() == NULL) return 77;
  if (!has_driver) return printf("skipped: no double of the driver that loads code\n"), 77;
  return cmocka_run_group_tests_name("cudnn attention", tests, NULL, NULL);
}
