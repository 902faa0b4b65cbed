/* Tests of passes: copying, replacing, merging, decomposing; liveness and uses. */
#include "tests/unit/graph/rig.h"

#include "core/graph/op/schema.h"
#include "core/graph/uses.h"

static rig R;

static int set_up(void **state) {
  (void)state;
  rig_init(&R);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rig_finish(&R);
  return 0;
}

static tn_status copy_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  (void)context;
  return tn_rewrite_copy(r, node);
}

static void assert_rewritten(const char *before, tn_rewrite_fn fn, const char *after) {
  tn_graph *from = parsed(&R, before), *to;
  assert_ok(&R, tn_graph_rewrite(from, fn, NULL, &to));
  tn_graph_destroy(from); /* the new graph must not refer to the old one */
  assert_verified(&R, to);
  assert_prints(&R, to, after);
  tn_graph_destroy(to);
}

static void assert_merged(const char *before, const char *after) {
  tn_graph *from = parsed(&R, before), *to;
  assert_ok(&R, tn_graph_merge(from, &to));
  tn_graph_destroy(from);
  assert_verified(&R, to);
  assert_prints(&R, to, after);
  tn_graph_destroy(to);
}

/* ---- rewriting ---- */

static void a_copy_is_equal_without_dead_nodes(void **state) {
  (void)state;
  assert_rewritten("unread f32[2] = state(path=v, what=buffer)\n"
                   "x: f32[2] = input(name=x)\n"
                   "unused: f32[2] = input(name=unused)\n"
                   "w: f32[2] = state(path=w, init=ones)\n"
                   "only_written: f32[2] = state(path=only_written, what=slot, init=zeros)\n"
                   "%5: f32[2]{0} = tagged(x, ints=[1, 2], text=\"a b\", floats=[0.5]) in fc1\n"
                   "%6: f32[2] = exp(%5)\n"
                   "dead: f32[2] = exp(%6)\n"
                   "p: bool[] = full(dtype=bool)\n"
                   "s: f32[2], c: f32[2] = sincos(%5)\n"
                   "report(s)\n"
                   "commit w = c if p\n"
                   "commit only_written = c\n"
                   "output y = %6\n",
                   copy_node,
                   "unread f32[2] = state(path=v, what=buffer)\n"
                   "unread f32[2] = state(path=w, init=ones)\n"
                   "unread f32[2] = state(path=only_written, what=slot, init=zeros)\n"
                   "x: f32[2] = input(name=x)\n"
                   "%2: f32[2]{0} = tagged(x, text=\"a b\", ints=[1, 2], floats=[0.5]) in fc1\n"
                   "%3: f32[2] = exp(%2)\n"
                   "p: bool[] = full(dtype=bool)\n"
                   "s: f32[2], c: f32[2] = sincos(%2)\n"
                   "report(s)\n"
                   "commit w = c if p\n"
                   "commit only_written = c\n"
                   "output y = %3\n");
}

static tn_status negate_twice(tn_rewrite *r, const tn_gnode *node, void *context) {
  (void)context;
  if (!tn_text_equal(node->op->item.name, "exp")) return tn_rewrite_copy(r, node);
  r->map[node->first_out] = tn_neg(r->b, tn_neg(r->b, r->map[node->in[0]]));
  return TN_OK;
}

static void a_replacement_takes_name_and_layer(void **state) {
  (void)state;
  assert_rewritten("x: f32[2] = input(name=x)\n"
                   "y: f32[2] = exp(x) in fc1\n"
                   "output y = y\n",
                   negate_twice,
                   "x: f32[2] = input(name=x)\n"
                   "%2: f32[2] = neg(x) in fc1\n"
                   "y: f32[2] = neg(%2) in fc1\n"
                   "output y = y\n");
}

static tn_status drop_exp(tn_rewrite *r, const tn_gnode *node, void *context) {
  (void)context;
  if (!tn_text_equal(node->op->item.name, "exp")) return tn_rewrite_copy(r, node);
  r->map[node->first_out] = r->map[node->in[0]];
  return TN_OK;
}

static void a_node_may_be_left_out(void **state) {
  (void)state;
  assert_rewritten("x: f32[2] = input(name=x)\n"
                   "y: f32[2] = exp(x)\n"
                   "z: f32[2] = neg(y)\n"
                   "output z = z\n",
                   drop_exp,
                   "x: f32[2] = input(name=x)\n"
                   "z: f32[2] = neg(x)\n"
                   "output z = z\n");
}

static tn_status forget_exp(tn_rewrite *r, const tn_gnode *node, void *context) {
  (void)context;
  return tn_text_equal(node->op->item.name, "exp") ? TN_OK : tn_rewrite_copy(r, node);
}

static tn_status fail_at_exp(tn_rewrite *r, const tn_gnode *node, void *context) {
  (void)context;
  if (tn_text_equal(node->op->item.name, "exp")) tn_neg(r->b, 99);
  return TN_OK;
}

static void a_pass_that_fails_or_forgets_gives_no_graph(void **state) {
  (void)state;
  tn_graph *from = parsed(&R, "x: f32[2] = input(name=x)\ny = exp(x)\nz = neg(y)\noutput z = z\n"), *to;
  assert_error(&R, tn_graph_rewrite(from, forget_exp, NULL, &to), TN_EINTERNAL,
               "neg: the pass gave operand 0 no value in the new graph");
  assert_null(to);
  assert_error(&R, tn_graph_rewrite(from, fail_at_exp, NULL, &to), TN_EINVAL,
               "neg: operand 0 is value 99, which is not of this graph");
  assert_null(to);
  tn_graph_destroy(from);
}

/* ---- merging ---- */

static void equal_expressions_are_merged(void **state) {
  (void)state;
  assert_merged("x: f32[2] = input(name=x)\n"
                "w: f32[2] = state(path=w)\n"
                "a: f32[2] = mul(x, w)\n"
                "b: f32[2] = mul(w, x)\n"
                "c: f32[2] = sub(x, w)\n"
                "d: f32[2] = sub(w, x)\n"
                "e: f32[2] = exp(a)\n"
                "f: f32[2] = exp(b)\n"
                "g: f32[2] = total(c, d, e, f)\n"
                "output g = g\n",
                "x: f32[2] = input(name=x)\n"
                "w: f32[2] = state(path=w)\n"
                "a: f32[2] = mul(x, w)\n"
                "c: f32[2] = sub(x, w)\n"
                "d: f32[2] = sub(w, x)\n"
                "e: f32[2] = exp(a)\n"
                "g: f32[2] = total(c, d, e, e)\n"
                "output g = g\n");
}

static void attributes_must_be_equal(void **state) {
  (void)state;
  assert_merged("a: f32[] = full(value=1)\n"
                "b: f32[] = full(value=1)\n"
                "c: f32[] = full(value=2)\n"
                "d: f32[] = full(value=0)\n"
                "e: f32[] = full(value=-0)\n"
                "y: f32[] = total(a, b, c, d, e)\n"
                "output y = y\n",
                "a: f32[] = full(value=1)\n"
                "c: f32[] = full(value=2)\n"
                "d: f32[] = full()\n"
                "e: f32[] = full(value=-0)\n"
                "y: f32[] = total(a, a, c, d, e)\n"
                "output y = y\n");
}

static void random_ops_merge_within_one_stream_only(void **state) {
  (void)state;
  assert_merged("iteration: i64[] = input(name=iteration)\n"
                "a: f64[2] = noise(iteration, dims=[2], stream=1)\n"
                "b: f64[2] = noise(iteration, dims=[2], stream=2)\n"
                "c: f64[2] = noise(iteration, dims=[2], stream=1)\n"
                "y: f64[2] = total(a, b, c)\n"
                "output y = y\n",
                "iteration: i64[] = input(name=iteration)\n"
                "a: f64[2] = noise(iteration, dims=[2], stream=1)\n"
                "b: f64[2] = noise(iteration, dims=[2], stream=2)\n"
                "y: f64[2] = total(a, b, a)\n"
                "output y = y\n");
}

static void every_result_of_a_merged_node_is_mapped(void **state) {
  (void)state;
  assert_merged("x: f32[2] = input(name=x)\n"
                "s: f32[2], c: f32[2] = sincos(x)\n"
                "t: f32[2], d: f32[2] = sincos(x)\n"
                "y: f32[2] = sub(d, t)\n"
                "output y = y\n"
                "output s = s\n",
                "x: f32[2] = input(name=x)\n"
                "s: f32[2], c: f32[2] = sincos(x)\n"
                "y: f32[2] = sub(c, s)\n"
                "output y = y\n"
                "output s = s\n");
}

static void effects_are_never_merged(void **state) {
  (void)state;
  const char *text = "x: f32[2] = input(name=x)\n"
                     "report(x)\n"
                     "report(x)\n";
  assert_merged(text, text);
}

/* ---- decomposition ---- */

static const tn_op_def *find_op(const char *name) {
  const tn_op_def *def;
  assert_ok(&R, tn_op_table_find(R.ops, &R, name, &def));
  return def;
}

static void a_composite_becomes_its_parts_in_the_same_layer(void **state) {
  (void)state;
  tn_build_frame frame = {.prefix = "fc1", .where = "net.ini:3"};
  tn_val x = param(&R, "x", TYPE(TN_F32, 2)), out;
  tn_builder_push(R.b, &frame);
  assert_ok(&R, tn_decompose(R.b, find_op("square"), "", &x, 1, 1, &out));
  tn_builder_pop(R.b);
  assert_prints(&R, R.graph,
                "x: f32[2] = state(path=x, init=zeros)\n"
                "%2: f32[2] = mul(x, x) in fc1\n");
}

static void a_primitive_cannot_be_decomposed(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 2)), out;
  tn_status status = tn_decompose(R.b, find_op("neg"), "", &x, 1, 1, &out);
  assert_error(&R, status, TN_EINVAL, "decomposition of neg: the op is primitive: it has no decomposition");
  assert_stuck(&R, tn_error_text(&R.env));
}

static void crooked(int32_t fault, tn_status want, const char *message) {
  tn_build_frame frame = {.prefix = "fc1", .where = "net.ini:3"};
  tn_val x = param(&R, "x", TYPE(TN_F32, 2)), out;
  tn_builder_push(R.b, &frame);
  tn_status status = tn_decompose(R.b, find_op("crooked"), &fault, &x, 1, 1, &out);
  tn_builder_pop(R.b);
  assert_error(&R, status, want, message);
  assert_stuck(&R, message);
}

static void a_decomposition_yields_the_inferred_types(void **state) {
  (void)state;
  crooked(0, TN_EINTERNAL,
          "net.ini:3: decomposition of crooked: result y was yielded as f32[], expected f32[2]");
}
static void a_decomposition_yields_every_result(void **state) {
  (void)state;
  crooked(1, TN_EINTERNAL, "net.ini:3: decomposition of crooked: result y was not yielded");
}
static void a_decomposition_yields_no_result_that_is_not_there(void **state) {
  (void)state;
  crooked(2, TN_EINVAL, "net.ini:3: decomposition of crooked: tn_build_yield(b, 1): expected 0 to 0");
}
static void a_decomposition_yields_each_result_once(void **state) {
  (void)state;
  crooked(3, TN_EINVAL, "net.ini:3: decomposition of crooked: tn_build_yield(b, 0): it was yielded already");
}
static void a_decomposition_ends_what_it_begins(void **state) {
  (void)state;
  crooked(4, TN_EINVAL, "net.ini:3: neg: tn_op_begin without tn_op_end");
}
static void a_decomposition_may_refuse(void **state) {
  (void)state;
  crooked(5, TN_EUNSUPPORTED, "net.ini:3: decomposition of crooked: not for this fault");
  assert_string_equal(R.record.option, "fault");
}

/* ---- analyses ---- */

static void uses_are_counted_by_nodes_commits_and_outputs(void **state) {
  (void)state;
  tn_graph *g = parsed(&R, "x: f32[2] = state(path=x)\n"
                           "y: f32[2] = fuse(x, _, x)\n"
                           "p: bool[] = full(dtype=bool)\n"
                           "commit x = y if p\n"
                           "output y = y\n");
  tn_arena arena = tn_arena_new(&R);
  tn_uses uses;
  assert_ok(&R, tn_uses_create(&arena, g, &uses));
  const int32_t by_nodes[] = {0, 2, 0, 0}, outside[] = {0, 0, 2, 1};
  for (tn_val v = 0; v < 4; v++) assert_int_equal(uses.start[v + 1] - uses.start[v], by_nodes[v]);
  assert_memory_equal(uses.outside, outside, sizeof outside);
  assert_int_equal(uses.node[0], 1);
  assert_int_equal(uses.node[1], 1);
  tn_arena_free(&arena);
  tn_graph_destroy(g);
}

static void nodes_without_uses_are_dead(void **state) {
  (void)state;
  tn_graph *g = parsed(&R, "x: f32[2] = state(path=x)\n"
                           "a: f32[2] = neg(x)\n"
                           "b: f32[2] = neg(a)\n"
                           "c: f32[2] = exp(x)\n"
                           "report(c)\n"
                           "p: bool[] = full(dtype=bool)\n"
                           "commit x = x if p\n");
  bool *live;
  assert_ok(&R, tn_graph_live(g, &live));
  const bool expected[] = {true, false, false, true, true, true};
  assert_memory_equal(live, expected, sizeof expected);
  tn_release(&R, live);
  tn_graph_destroy(g);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_copy_is_equal_without_dead_nodes),
      CASE(a_replacement_takes_name_and_layer),
      CASE(a_node_may_be_left_out),
      CASE(a_pass_that_fails_or_forgets_gives_no_graph),
      CASE(equal_expressions_are_merged),
      CASE(attributes_must_be_equal),
      CASE(random_ops_merge_within_one_stream_only),
      CASE(every_result_of_a_merged_node_is_mapped),
      CASE(effects_are_never_merged),
      CASE(a_composite_becomes_its_parts_in_the_same_layer),
      CASE(a_primitive_cannot_be_decomposed),
      CASE(a_decomposition_yields_the_inferred_types),
      CASE(a_decomposition_yields_every_result),
      CASE(a_decomposition_yields_no_result_that_is_not_there),
      CASE(a_decomposition_yields_each_result_once),
      CASE(a_decomposition_ends_what_it_begins),
      CASE(a_decomposition_may_refuse),
      CASE(uses_are_counted_by_nodes_commits_and_outputs),
      CASE(nodes_without_uses_are_dead),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
