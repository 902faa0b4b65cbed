/* Fails every single request for memory in turn: each time there is an error, no leak, and a valid graph. */
#include "tests/unit/graph/rig.h"

static const char text[] = "x: f32[2] = input(name=x)\n"
                           "w: f32[2] = state(path=w, init=\"normal(0, 1)\")\n"
                           "a: f32[2] = tagged(x, ints=[1, 2], text=\"a b\") in fc1\n"
                           "s: f32[2], c: f32[2] = sincos(a)\n"
                           "y: f32[2] = fourth(w)\n"
                           "z: f32[2] = total(s, c, y)\n"
                           "%8: f32[] = reduce_sum(y)\n"
                           "commit w = z\n"
                           "output z = z\n"
                           "output loss = %8\n";

static tn_status differentiate(rig *r, tn_graph *graph) {
  tn_builder *builder;
  tn_val w = tn_graph_find_state(graph, "w")->value, gradient;
  int32_t order;
  TN_TRY(tn_builder_create(graph, &builder));
  tn_build_frame frame = {.prefix = "outer", .where = "net.ini:1"};
  tn_builder_push(tn_builder_handle(builder), &frame);
  tn_status status = tn_differentiate(tn_builder_handle(builder), tn_graph_find_output(graph, "loss"), 0, &w,
                                      1, &gradient, &order);
  tn_builder_pop(tn_builder_handle(builder));
  tn_builder_destroy(builder);
  return status == TN_OK ? tn_graph_output(graph, "gradient", gradient) : tn_wrap(r, status, "differentiate");
}

static tn_status merge_and_print(rig *r, const tn_graph *graph) {
  tn_graph *merged;
  tn_text printed = tn_text_new(r);
  TN_TRY(tn_graph_merge(graph, &merged));
  tn_status status = tn_graph_verify(merged);
  if (status == TN_OK) status = tn_graph_print(merged, &printed);
  tn_text_free(&printed);
  tn_graph_destroy(merged);
  return status;
}

static tn_status everything(rig *r) {
  tn_graph *graph;
  TN_TRY(rig_open(r));
  TN_TRY(tn_graph_parse(&r->env, r->ops, text, "text", &graph));
  tn_status status = differentiate(r, graph);
  if (status == TN_OK) status = merge_and_print(r, graph);
  tn_graph_destroy(graph);
  return status;
}

static void every_failed_request_is_reported_and_nothing_is_lost(void **state) {
  (void)state;
  tn_status status = TN_ENOMEM;
  long left = 0;
  for (; status == TN_ENOMEM && left < 10000; left++) {
    rig r;
    rig_start(&r, left);
    status = everything(&r);
    rig_close(&r);
    assert_int_equal(r.blocks, 0);
    if (status == TN_ENOMEM) assert_non_null(strstr(tn_error_text(&r.env), "memory"));
    if (status != TN_ENOMEM) assert_ok(&r, status);
  }
  assert_int_equal(status, TN_OK);
  assert_true(left > 100); /* the sweep covered many requests */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_failed_request_is_reported_and_nothing_is_lost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
