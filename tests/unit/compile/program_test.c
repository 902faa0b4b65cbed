/* Whole programs: report, hash, the text forms of the passes, and allocation failures. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

#include "core/compile/output/report.h"

/* Requires column-major operands and results, so that reorders are inserted before and after. */
static tn_status offer_column_major(tn_query *q) {
  static const tn_operand_layout column_major = {TN_LAYOUT_FIXED, 0, {.set = 1, .order = {1, 0}}};
  tn_variant v = {
      .struct_size = sizeof v, .name = "turned", .in = &column_major, .out = &column_major, .cost_s = 1e-9};
  tn_add_variant(q, &v);
  return TN_OK;
}

static KERNEL(k_turned, "t.turned", "t", "y = transpose(x)", offer_column_major);

static const tn_item *const kernels[] = {KERNELS_PLAIN, &k_matmul_relu.item, &k_turned.item, NULL};
static fixture F;

static int set_up(void **state) {
  (void)state;
  fixture_open(&F, kernels);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

/* A graph with a decomposition, a fused pattern, a region, layouts, a pack with a gap, a predicate, a commit
 * that needs a copy, and an input that is an output. */
static const char everything[] = "x: f32[4, 8] = input(name=x)\n"
                                 "ok: bool[] = input(name=ok)\n"
                                 "w: f32[8, 8] = state(path=w)\n"
                                 "m: f32[8] = state(path=m)\n"
                                 "h = matmul(x, w) in enc.fc\n"
                                 "r = relu(h) in enc.fc\n"
                                 "s = softmax(r) in head\n"
                                 "c = reduce_sum(s, axes=[0])\n"
                                 "t = transpose(w, order=[1, 0])\n"
                                 "p = pack(c, t, offsets=[0, 16], count=96)\n"
                                 "l = reduce_sum(p)\n"
                                 "n = add(m, c)\n"
                                 "commit m = n if ok\n"
                                 "commit w = t\n"
                                 "output loss = l\n"
                                 "output x = x\n";

static const char *text_at(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static void the_report_has_every_launch(void **state) {
  (void)state;
  tn_program *p = fixture_program(&F, everything);
  json_t *report = NULL;
  assert_int_equal(tn_program_report(p, &report), TN_OK);
  assert_int_equal(json_integer_value(json_object_get(report, "launches")), p->n_steps);
  assert_int_equal(json_integer_value(json_object_get(report, "peak_bytes")), p->arena_bytes);
  assert_int_equal(json_integer_value(json_object_get(report, "bound_bytes")), p->bound_bytes);
  assert_int_equal(strlen(text_at(report, "hash")), 16);
  assert_int_equal(json_array_size(json_object_get(report, "fallbacks")), 0);
  const json_t *ops = json_object_get(report, "ops"), *found = NULL, *op;
  size_t i;
  assert_int_equal(json_array_size(ops), p->n_steps);
  json_array_foreach(ops, i, op) if (strcmp(text_at(op, "op"), "matmul+relu") == 0) found = op;
  assert_non_null(found);
  assert_string_equal(text_at(found, "name"), "enc.fc");
  assert_string_equal(text_at(found, "kernel"), "t.matmul_relu");
  assert_string_equal(text_at(found, "backend"), "t");
  assert_string_equal(text_at(found, "layout"), "row-major");
  assert_true(json_real_value(json_object_get(found, "flops")) >= 2 * 4 * 8 * 8);
  assert_true(json_real_value(json_object_get(found, "cost_ms")) > 0);
  assert_true(json_is_false(json_object_get(found, "measured")));
  assert_true(json_is_array(json_object_get(found, "rejected")));
  json_decref(report);
  tn_program_destroy(p);
}

static void a_rejection_is_reported_with_its_reason(void **state) {
  (void)state;
  tn_program *p =
      fixture_program(&F, "x: f32[4, 8] = input(name=x)\nw: f32[8, 8] = state(path=w)\nh = matmul(x, w)\n"
                          "r = relu(h)\noutput h = h\noutput r = r\n");
  json_t *report = NULL;
  assert_int_equal(tn_program_report(p, &report), TN_OK);
  const json_t *op = json_array_get(json_object_get(report, "ops"), 1);
  const json_t *rejection = json_array_get(json_object_get(op, "rejected"), 0);
  assert_string_equal(text_at(rejection, "kernel"), "t.matmul_relu");
  assert_string_equal(text_at(rejection, "reason"), "a value inside it is committed or an output");
  json_decref(report);
  tn_program_destroy(p);
}

static void equal_programs_have_equal_hashes(void **state) {
  (void)state;
  tn_program *a = fixture_program(&F, everything), *b = fixture_program(&F, everything);
  tn_program *c = fixture_program(&F, "x: f32[4, 8] = input(name=x)\ny = exp(x)\noutput y = y\n");
  tn_program *d = fixture_program(&F, "x: f32[4, 8] = input(name=x)\ny = sin(x)\noutput y = y\n");
  assert_true(a->hash == b->hash);
  assert_true(c->hash != d->hash);
  tn_program_destroy(a);
  tn_program_destroy(b);
  tn_program_destroy(c);
  tn_program_destroy(d);
}

static void a_layout_is_reported_by_its_order(void **state) {
  (void)state;
  tn_program *p = fixture_program(&F, everything);
  json_t *report = NULL, *op;
  size_t i, turned = 0;
  assert_int_equal(tn_program_report(p, &report), TN_OK);
  json_array_foreach(json_object_get(report, "ops"), i, op) turned +=
      strcmp(text_at(op, "layout"), "1 0") == 0;
  assert_int_equal(turned, 2); /* the reorder in front and the transpose; the one behind makes it row-major */
  json_decref(report);
  tn_program_destroy(p);
}

static void programs_can_share_a_slot(void **state) {
  (void)state;
  tn_program *whole = fixture_program(&F, "x: f32[4] = input(name=x)\nw: f32[40] = input(name=w)\n"
                                          "y = exp(x)\nz = exp(w)\noutput y = y\noutput z = z\n");
  tn_graph *graph = fixture_graph(&F, "n: f32[3] = input(name=n)\nw: f32[40] = input(name=w)\n"
                                      "m = exp(n)\nz = exp(w)\noutput m = m\noutput z = z\n");
  tn_compile_options options = {.slot_like = whole};
  tn_program *part = NULL;
  assert_int_equal(tn_compile(&F.env, "part", F.registry, &F.target, graph, F.map, &options, &part), TN_OK);
  assert_string_equal(part->inputs[1].name, "w");
  assert_int_equal(part->inputs[1].offset, whole->inputs[1].offset);
  assert_int_equal(part->inputs[0].offset, whole->slot_bytes); /* of its own: behind */
  assert_int_equal(part->slot_bytes, whole->slot_bytes + 64);
  tn_program_destroy(part);
  tn_program_destroy(whole);
  tn_graph_destroy(graph);
}

static void every_pass_can_be_dumped(void **state) {
  (void)state;
  tn_text dump = tn_text_new(&F.env);
  tn_compile_options options = {"", &dump};
  tn_graph *graph = fixture_graph(&F, "x: f32[4] = input(name=x)\ny = exp(x)\noutput y = y\n");
  tn_program *p = NULL;
  assert_int_equal(tn_compile(&F.env, "eval", F.registry, &F.target, graph, F.map, &options, &p), TN_OK);
  assert_string_equal(dump.v, "# program eval after assign\n"
                              "x: f32[4] = input(name=x)\n"
                              "y: f32[4] = exp(x)\n"
                              "output y = y\n"
                              "# program eval after select\n"
                              "x: f32[4] = input(name=x)\n"
                              "y: f32[4] = exp(x)\n"
                              "# 0: t.pointwise \"tiles\"\n"
                              "output y = y\n"
                              "# program eval after layout\n"
                              "x: f32[4]{0} = input(name=x)\n"
                              "y: f32[4]{0} = exp(x)\n"
                              "# 0: t.pointwise \"tiles\"\n"
                              "output y = y\n"
                              "# program eval after recompute\n"
                              "x: f32[4]{0} = input(name=x)\n"
                              "y: f32[4]{0} = exp(x)\n"
                              "# 0: t.pointwise \"tiles\"\n"
                              "output y = y\n"
                              "# program eval after constants\n"
                              "x: f32[4]{0} = input(name=x)\n"
                              "y: f32[4]{0} = exp(x)\n"
                              "# 0: t.pointwise \"tiles\"\n"
                              "output y = y\n"
                              "# program eval after join\n"
                              "x: f32[4]{0} = input(name=x)\n"
                              "y: f32[4]{0} = exp(x)\n"
                              "# 0: t.pointwise \"tiles\"\n"
                              "output y = y\n"
                              "# program eval after rematerialize\n"
                              "x: f32[4]{0} = input(name=x)\n"
                              "y: f32[4]{0} = exp(x)\n"
                              "# 0: t.pointwise \"tiles\"\n"
                              "output y = y\n"
                              "# program eval after schedule\n"
                              "program eval: 1 launches\n"
                              "input x: f32[4]\n"
                              "output y: f32[4]\n"
                              "0: y = t.pointwise \"tiles\"(x)\n"
                              "# program eval after memory\n"
                              "program eval: 1 launches, arena 0 (at least 0), slot 64, output 64, kept 0\n"
                              "input x: f32[4] @ slot+0\n"
                              "output y: f32[4] @ output+0\n"
                              "0: y @ output+0 = t.pointwise \"tiles\"(x @ slot+0)\n");
  tn_text_free(&dump);
  tn_program_destroy(p);
  tn_graph_destroy(graph);
}

static void the_text_after_select_parses_back(void **state) {
  (void)state;
  char *text = fixture_text(&F, everything, LAID_OUT);
  tn_graph *graph = fixture_graph(&F, text);
  tn_text again = tn_text_new(&F.env);
  assert_int_equal(tn_graph_print(graph, &again), TN_OK);
  assert_non_null(strstr(again.v, "output loss = l\n"));
  tn_text_free(&again);
  tn_graph_destroy(graph);
  tn_release(&F.env, text);
}

/* Compiles with `allowed` allocations; true if they were enough. */
static bool compile_with(int64_t allowed) {
  tn_graph *graph = fixture_graph(&F, everything);
  tn_text dump = tn_text_new(&F.env);
  tn_compile_options options = {"", &dump};
  tn_program *p = NULL;
  assert_int_equal(tn_state_map_add_rest(F.map, graph), TN_OK);
  int64_t before = F.blocks;
  F.left = allowed;
  tn_status status = tn_compile(&F.env, "p", F.registry, &F.target, graph, F.map, &options, &p);
  F.left = -1;
  tn_text_free(&dump);
  if (status == TN_OK) {
    tn_program_destroy(p);
  } else {
    assert_int_equal(status, TN_ENOMEM);
    assert_null(p);
    assert_true(F.blocks <= before);
  }
  tn_graph_destroy(graph);
  return status == TN_OK;
}

static void running_out_of_memory_anywhere_is_an_error_without_a_leak(void **state) {
  (void)state;
  compile_with(-1); /* parses the schemas of ops that only decompositions use; the context keeps them */
  int64_t before = F.blocks, allowed = 0;
  while (!compile_with(allowed)) {
    assert_int_equal(F.blocks, before);
    allowed++;
  }
  assert_true(allowed > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(the_report_has_every_launch),
      TEST(a_rejection_is_reported_with_its_reason),
      TEST(a_layout_is_reported_by_its_order),
      TEST(equal_programs_have_equal_hashes),
      TEST(every_pass_can_be_dumped),
      TEST(programs_can_share_a_slot),
      TEST(the_text_after_select_parses_back),
      TEST(running_out_of_memory_anywhere_is_an_error_without_a_leak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
