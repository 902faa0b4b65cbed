/* Tests of the op `loop`: its text, the types of its results, and the body of its gradient. */
#include "tests/unit/graph/rig.h"

#include "core/graph/loop/loop.h"

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

#define BODY                                                                                                 \
  "x0: f64[2] = input(name=x0); h1: f64[2] = input(name=h1); c0: f64[2] = state(path=c0, what=buffer); "     \
  "%4: f64[2] = mul(x0, c0); %5: f64[2] = add(%4, h1); output next0 = %5"
#define OPERANDS                                                                                             \
  "x: f64[3, 2] = input(name=x)\n"                                                                           \
  "h: f64[2] = input(name=h)\n"                                                                              \
  "c: f64[2] = input(name=c)\n"

/* A sequence, a state and a constant. */
static const char loop_text[] =
    OPERANDS "%4: f64[3, 2] = loop(x, h, c, body=\"" BODY "\", steps=3, sequences=1, states=1, stacked=1)\n"
             "output y = %4\n";

static void text_is_read_again(void **state) {
  (void)state;
  tn_graph *graph = parsed(&R, loop_text);
  assert_verified(&R, graph);
  assert_prints(&R, graph, loop_text);
  tn_graph_destroy(graph);
}

static void refuse(const char *call, const char *text) {
  char graph[2048];
  tn_graph *none = NULL;
  snprintf(graph, sizeof graph, "%s%%4 = loop(%s)\n", OPERANDS, call);
  tn_status status = tn_graph_parse(&R.env, R.ops, graph, "g", &none);
  assert_null(none);
  assert_error(&R, status, TN_EINVAL, text);
}

static void operands_have_the_types_of_the_body(void **state) {
  (void)state;
  refuse("x, h, body=\"" BODY "\", steps=3, sequences=1, states=1",
         "g:4: loop: the body has 2 inputs, 1 states and 1 outputs, expected 2, 0 and 1, as the operands and "
         "attributes say");
  refuse("x, h, c, body=\"" BODY "\", steps=4, sequences=1, states=1",
         "g:4: loop: operand 0 is f64[3, 2], expected f64[4, 2] for the body");
  refuse("x, h, x, body=\"" BODY "\", steps=3, sequences=1, states=1",
         "g:4: loop: operand 2 is f64[3, 2], expected f64[2] for the body");
  refuse(
      "x, h, body=\"x0: f64[2] = input(name=x0); h1: f64[2] = input(name=h1); output next0 = y\", steps=3, "
      "sequences=1, states=1",
      "g:4: loop: body:1: y is not defined above");
}

/* A body that is a part of the graph: what it reads from outside becomes a constant, and what it does not
 * read is left out. */
static tn_val emit_loop(tn_val x, tn_val h, tn_val w) {
  const tn_type step = TYPE(TN_F64, 2);
  tn_val part = tn_full(R.b, &step, 1), state = tn_full(R.b, &step, 2), unread = tn_full(R.b, &step, 3);
  tn_loop_parts parts = {.from = R.graph, .steps = 3, .stacked = 1};
  uint32_t first = (uint32_t)R.graph->nodes.n;
  tn_val next = tn_add(R.b, tn_mul(R.b, part, w), state);
  tn_loop_value sequences[] = {{part, x, 0}, {unread, x, 0}}, states[] = {{state, h, 0}};
  for (int i = 0; i < 2; i++) assert_ok(&R, tn_vec_push(&R.env, &parts.sequences, sequences[i]));
  assert_ok(&R, tn_vec_push(&R.env, &parts.states, states[0]));
  assert_ok(&R, tn_vec_push(&R.env, &parts.next, next));
  assert_ok(&R, tn_loop_capture(&parts, first));
  tn_val made = tn_loop_emit(R.b, &parts);
  tn_loop_parts_free(&R.env, &parts);
  assert_ok(&R, tn_build_status(R.b));
  return made;
}

static void a_body_is_taken_out_of_a_graph(void **state) {
  (void)state;
  tn_val w = param(&R, "w", TYPE(TN_F64, 2)), h = param(&R, "h", TYPE(TN_F64, 2));
  tn_val y = emit_loop(param(&R, "x", TYPE(TN_F64, 3, 2)), h, w);
  const tn_gnode *node = tn_graph_maker(R.graph, y);
  const tn_loop_attributes *a = node->attributes;
  assert_string_equal(a->body, BODY);
  assert_int_equal(node->n_in, 3);
  assert_int_equal(node->in[2], w);
  assert_verified(&R, R.graph);
}

/* d loss / d w is a sum of products of x and the gradient of the state, which goes from step to step. */
static void the_gradient_is_a_loop_in_the_other_direction(void **state) {
  (void)state;
  tn_val wrt[] = {param(&R, "w", TYPE(TN_F64, 2)), param(&R, "h", TYPE(TN_F64, 2))}, gradient[2];
  tn_val y = emit_loop(param(&R, "x", TYPE(TN_F64, 3, 2)), wrt[1], wrt[0]);
  assert_ok(&R, tn_differentiate(R.b, tn_reduce_sum(R.b, y, 0, NULL, 0), 0, wrt, 2, gradient, NULL));
  assert_verified(&R, R.graph);
  const tn_loop_attributes *a = tn_graph_maker(R.graph, gradient[1])->attributes;
  assert_string_equal(tn_graph_maker(R.graph, gradient[1])->op->item.name, "loop");
  assert_true(a->reverse);
  assert_int_equal(a->steps, 3);
  assert_int_equal(a->before, 0);
  assert_int_equal(a->states, 2);
  assert_int_equal(a->stacked, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(text_is_read_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown(operands_have_the_types_of_the_body, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_body_is_taken_out_of_a_graph, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_gradient_is_a_loop_in_the_other_direction, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
