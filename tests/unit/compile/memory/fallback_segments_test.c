/* Pass `assign`, and the cuts around the ops that fall back. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

#include "core/compile/output/report.h"

static KERNEL(h_pointwise, "h.pointwise", "h", "pointwise+", offer_plain);
static KERNEL(h_argmax, "h.argmax", "h", "y = argmax(x)", offer_plain);

static const char *const host_families[] = {"h"};
static tn_target host;
static fixture F;

/* The device has no kernel that takes `erf`, and none for `argmax`; the host has. */
static int set_up(void **state) {
  static const tn_item *const kernels[] = {KERNELS_PLAIN, &h_pointwise.item, &h_argmax.item, NULL};
  (void)state;
  fixture_open(&F, kernels);
  host = F.target;
  host.families = host_families;
  F.target.fallback = &host;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

static void an_op_without_a_kernel_on_the_device_falls_back(void **state) {
  (void)state;
  assert_after(ASSIGNED, &F,
               "x: f32[4, 8] = input(name=x)\n"
               "y = exp(x)\n"
               "z = erf(y) in enc.ff\n"
               "output z = z\n",
               "x: f32[4, 8] = input(name=x)\n"
               "y: f32[4, 8] = exp(x)\n"
               "z: f32[4, 8] = erf(y) in enc.ff\n"
               "# falls back to h: t.pointwise: erf is too hard\n"
               "output z = z\n");
}

static KERNEL(h_reduce_max, "h.reduce_max", "h", "y = reduce_max(x)", offer_plain);

static void a_composite_is_decomposed_before_its_parts_fall_back(void **state) {
  static const tn_item *const kernels[] = {&k_reduce_sum.item, &k_copy.item, &k_pointwise.item,
                                           &h_reduce_max.item, NULL};
  (void)state;
  fixture_close(&F);
  fixture_open(&F, kernels);
  F.target.fallback = &host;
  char *text = fixture_text(&F, "x: f32[4, 4] = input(name=x)\ny = softmax(x)\noutput y = y\n", ASSIGNED);
  assert_null(strstr(text, "softmax"));
  const char *first = strstr(text, "# falls back to h: no installed kernel");
  assert_non_null(first);
  assert_null(strstr(first + 1, "# falls back to h"));
  tn_release(&F.env, text);
}

static void nothing_falls_back_if_the_device_has_all_kernels(void **state) {
  (void)state;
  static const char graph[] = "x: f32[4] = input(name=x)\ny: f32[4] = exp(x)\noutput y = y\n";
  assert_after(ASSIGNED, &F, graph, graph);
}

static void select_covers_each_side_with_its_own_kernels(void **state) {
  (void)state;
  assert_after(SELECTED, &F,
               "x: f32[4] = input(name=x)\n"
               "a = exp(x)\n"
               "b = erf(a)\n"
               "c = sin(b)\n"
               "output c = c\n",
               "x: f32[4] = input(name=x)\n"
               "a: f32[4] = exp(x)\n"
               "# 0: t.pointwise \"tiles\"\n"
               "b: f32[4] = erf(a)\n"
               "# 1: h.pointwise\n"
               "c: f32[4] = sin(b)\n"
               "# 2: t.pointwise \"tiles\"\n"
               "output c = c\n");
}

static void a_cut_copies_out_waits_and_copies_in(void **state) {
  (void)state;
  assert_after(PLANNED, &F,
               "x: f32[4] = input(name=x)\n"
               "a = exp(x)\n"
               "b = erf(a)\n"
               "c = sin(b)\n"
               "output c = c\n",
               "program p: 3 launches, arena 128 (at least 128), slot 64, output 64, kept 0, host 128\n"
               "input x: f32[4] @ slot+0\n"
               "output c: f32[4] @ output+0\n"
               "0: a @ arena+0 = t.pointwise \"tiles\"(x @ slot+0)\n"
               "copy out a @ arena+0 -> host+0, 16 bytes\n"
               "wait\n"
               "1: b @ host+64 = h.pointwise(a @ host+0)\n"
               "copy in b @ arena+64 <- host+64, 16 bytes\n"
               "2: c @ output+0 = t.pointwise \"tiles\"(b @ arena+64)\n");
}

static void neighbours_share_a_cut_and_its_copies(void **state) {
  (void)state;
  assert_after(SCHEDULED, &F,
               "x: f32[2, 4] = input(name=x)\n"
               "a = exp(x)\n"
               "i = argmax(a, axis=1)\n"
               "b = erf(a)\n"
               "s = sin(a)\n"
               "c = erf(s)\n"
               "output i = i\n"
               "output b = b\n"
               "output c = c\n",
               "program p: 4 launches\n"
               "input x: f32[2, 4]\n"
               "output i: i32[2]\n"
               "output b: f32[2, 4]\n"
               "output c: f32[2, 4]\n"
               "0: a, s = t.pointwise \"tiles\"(x)\n"
               "copy out a\n"
               "copy out s\n"
               "wait\n"
               "1: i = h.argmax(a)\n"
               "2: b = h.pointwise(a)\n"
               "3: c = h.pointwise(s)\n"
               "copy in i\n"
               "copy in b\n"
               "copy in c\n");
}

static void an_input_is_on_the_host_already(void **state) {
  (void)state;
  assert_after(PLANNED, &F, "x: f32[4] = input(name=x)\ny = erf(x)\noutput y = y\n",
               "program p: 1 launches, arena 0 (at least 0), slot 64, output 64, kept 0, host 64\n"
               "input x: f32[4] @ slot+0\n"
               "output y: f32[4] @ output+0\n"
               "wait\n"
               "0: y @ host+0 = h.pointwise(x @ slot+0)\n"
               "copy in y @ output+0 <- host+0, 16 bytes\n");
}

static KERNEL(h_concat, "h.concat", "h", "y = concat(xs*)", offer_plain);

/* A later cut reads the copy of h on the host, and y never leaves the host. */
static void a_value_is_transferred_once(void **state) {
  static const tn_item *const kernels[] = {&k_matmul.item,    &k_pointwise.item, &k_copy.item,
                                           &h_pointwise.item, &h_concat.item,    NULL};
  (void)state;
  fixture_close(&F);
  fixture_open(&F, kernels);
  F.target.fallback = &host;
  assert_after(SCHEDULED, &F,
               "x: f32[4, 4] = input(name=x)\n"
               "h = matmul(x, x)\n"
               "y = erf(h)\n"
               "z = matmul(h, x)\n"
               "u = erf(z)\n"
               "v = matmul(u, x)\n"
               "c = concat(v, h, y)\n"
               "output c = c\n",
               "program p: 6 launches\n"
               "input x: f32[4, 4]\n"
               "output c: f32[12, 4]\n"
               "0: h = t.matmul \"blocked\"(x, x, _)\n"
               "copy out h\n"
               "wait\n"
               "1: y = h.pointwise(h)\n"
               "2: z = t.matmul \"blocked\"(h, x, _)\n"
               "copy out z\n"
               "wait\n"
               "3: u = h.pointwise(z)\n"
               "copy in u\n"
               "4: v = t.matmul \"blocked\"(u, x, _)\n"
               "copy out v\n"
               "wait\n"
               "5: c = h.concat(v, h, y)\n"
               "copy in c\n");
}

/* The old value is copied out; the new one is copied into the state's location. */
static void a_commit_of_a_fallback_is_copied_to_its_state(void **state) {
  (void)state;
  assert_after(PLANNED, &F, "w: f32[4] = state(path=w)\nn = erf(w)\ncommit w = n\n",
               "program p: 1 launches, arena 0 (at least 0), slot 0, output 0, kept 0, host 128\n"
               "copy out w @ state.f32+0 -> host+0, 16 bytes\n"
               "wait\n"
               "0: n @ host+64 = h.pointwise(w @ host+0)\n"
               "copy in n @ state.f32+0 <- host+64, 16 bytes\n");
}

static void an_empty_value_needs_no_copy(void **state) {
  (void)state;
  tn_program *p =
      fixture_program(&F, "x: f32[0, 4] = input(name=x)\na = exp(x)\nb = erf(a)\nc = sin(b)\noutput c = c\n");
  int32_t cuts = 0;
  for (int32_t i = 0; i < p->n_segments; i++) cuts += p->segments[i].fallback;
  assert_int_equal(cuts, 1);
  assert_int_equal(p->segments[1].n_out + p->segments[1].n_in, 0);
  assert_int_equal(p->host_bytes, 0);
  tn_program_destroy(p);
}

static void the_report_has_reason_and_cost(void **state) {
  (void)state;
  tn_program *p = fixture_program(&F, "x: f32[4, 8] = input(name=x)\n"
                                      "a = exp(x)\n"
                                      "i = argmax(a, axis=1) in head\n"
                                      "output i = i\n");
  json_t *report = NULL;
  assert_int_equal(tn_program_report(p, &report), TN_OK);
  const json_t *list = json_object_get(report, "fallbacks"), *one = json_array_get(list, 0);
  assert_int_equal(json_array_size(list), 1);
  assert_int_equal(json_integer_value(json_object_get(report, "cuts")), 1);
  assert_string_equal(json_string_value(json_object_get(one, "op")), "argmax");
  assert_string_equal(json_string_value(json_object_get(one, "layer")), "head");
  assert_string_equal(json_string_value(json_object_get(one, "backend")), "h");
  assert_string_equal(json_string_value(json_object_get(one, "reason")),
                      "no installed kernel has a pattern for it");
  assert_int_equal(json_integer_value(json_object_get(one, "bytes")), 4 * 8 * 4 + 4 * 4);
  const json_t *op = json_array_get(json_object_get(report, "ops"), 1);
  assert_string_equal(json_string_value(json_object_get(op, "backend")), "h");
  assert_int_equal(json_integer_value(json_object_get(report, "peak_bytes")), p->arena_bytes + p->host_bytes);
  json_decref(report);
  tn_program_destroy(p);
}

static void a_refused_fallback_says_that_it_has_a_kernel(void **state) {
  (void)state;
  F.target.fallback_refused = true;
  assert_string_equal(
      fixture_failure(&F, "x: f32[4, 8] = input(name=x)\ny = erf(x) in enc.ff\noutput y = y\n",
                      TN_EUNSUPPORTED),
      "no kernel takes erf(f32[4, 8]) (enc.ff) on t, and the op has no decomposition; t.pointwise: erf is "
      "too hard; h can do it: [backend] fallback = warn lets it run there");
}

static void an_op_without_a_kernel_on_either_side_is_an_error_with_the_reasons_of_both(void **state) {
  (void)state;
  static const tn_item *const kernels[] = {KERNELS_PLAIN, NULL};
  fixture_close(&F);
  fixture_open(&F, kernels);
  F.target.fallback = &host;
  assert_string_equal(
      fixture_failure(&F, "x: f32[4] = input(name=x)\ny = erf(x)\noutput y = y\n", TN_EUNSUPPORTED),
      "no kernel takes erf(f32[4]) on t, and the op has no decomposition; t.pointwise: erf is too hard; nor "
      "can the fallback h: no installed kernel has a pattern for it");
}

/* ---- a backend that declines what it accepts ---- */

static tn_status takes_no_exp(tn_env *env, void *self, const tn_kernel *kernel, const tn_match *match) {
  assert_ptr_equal(self, &F);
  assert_string_equal(kernel->family, "t");
  for (int32_t i = 0; i < match->n_nodes; i++)
    if (strcmp(match->nodes[i].node->op, "exp") == 0)
      return tn_fail(env, TN_EUNSUPPORTED, NULL, "exp is on the list");
  return TN_OK;
}

static const tn_backend picky = {.takes = takes_no_exp};

static void a_backend_may_decline_a_kernel_that_it_accepts(void **state) {
  static const char *const families[] = {"own", "t"};
  (void)state;
  fixture_families(&F, families, 2);
  F.target.n_own = 1;
  F.target.backend = &picky;
  F.target.self = &F;
  assert_after(ASSIGNED, &F, "x: f32[4] = input(name=x)\ny = exp(x)\noutput y = y\n",
               "x: f32[4] = input(name=x)\n"
               "y: f32[4] = exp(x)\n"
               "# falls back to h: t.pointwise: exp is on the list\n"
               "output y = y\n");
}

static void running_out_of_memory_anywhere_is_an_error_without_a_leak(void **state) {
  static const char graph[] = "x: f32[4, 8] = input(name=x)\nw: f32[8, 8] = state(path=w)\n"
                              "a = gelu(x)\nh = matmul(a, w)\ni = argmax(h, axis=1)\ne = erf(w)\n"
                              "commit w = e\noutput i = i\n";
  (void)state;
  tn_program_destroy(fixture_program(&F, graph)); /* the states are in the map from now on */
  tn_status status = TN_ENOMEM;
  for (int64_t i = 0; status == TN_ENOMEM; i++) {
    tn_graph *g = fixture_graph(&F, graph);
    tn_program *p = NULL;
    F.left = i;
    status = tn_compile(&F.env, "p", F.registry, &F.target, g, F.map, NULL, &p);
    F.left = -1;
    tn_graph_destroy(g);
    tn_program_destroy(p);
  }
  assert_int_equal(status, TN_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_op_without_a_kernel_on_the_device_falls_back),
      TEST(a_composite_is_decomposed_before_its_parts_fall_back),
      TEST(nothing_falls_back_if_the_device_has_all_kernels),
      TEST(select_covers_each_side_with_its_own_kernels),
      TEST(a_cut_copies_out_waits_and_copies_in),
      TEST(neighbours_share_a_cut_and_its_copies),
      TEST(an_input_is_on_the_host_already),
      TEST(a_value_is_transferred_once),
      TEST(a_commit_of_a_fallback_is_copied_to_its_state),
      TEST(an_empty_value_needs_no_copy),
      TEST(the_report_has_reason_and_cost),
      TEST(a_refused_fallback_says_that_it_has_a_kernel),
      TEST(an_op_without_a_kernel_on_either_side_is_an_error_with_the_reasons_of_both),
      TEST(a_backend_may_decline_a_kernel_that_it_accepts),
      TEST(running_out_of_memory_anywhere_is_an_error_without_a_leak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
