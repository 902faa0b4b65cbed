/* The match of a kernel with a prologue, taken apart. */
#include "tests/unit/backends/cpu/rig.h"

#include "backends/shared/prologue.h"

static const tn_type wide = {TN_F32, 2, {4, 8}}, narrow = {TN_F32, 1, {4}};
enum { REGION = 2 };

static void assert_numbers(const tn_match_node *n, int32_t first, int32_t second, int32_t out) {
  assert_int_equal(n->in[0], first);
  if (n->node->n_in > 1) assert_int_equal(n->in[1], second);
  assert_int_equal(n->first_out, out);
}

static void assert_source(const tn_epilogue_source *s, tn_epilogue_place place, int64_t at) {
  assert_int_equal(s->place, place);
  assert_int_equal(s->at, at);
}

static tn_status drop_and_offer(tn_query *q, tn_prologue *p) {
  tn_variant v = {.struct_size = sizeof v, .deterministic = 1, .capturable = 1};
  tn_prologue_drop(q, p);
  tn_add_variant(q, &v);
  return TN_OK;
}

/* c = mul(a, b); d = exp(c); s = reduce_sum(d); y = mul(s, t), with the results c and y: d is taken by the
 * sum and not stored, c is stored and not taken. */
static tn_status split_a_chain(tn_query *q) {
  tn_prologue p;
  assert_int_equal(tn_prologue_split(q, q->match, REGION, &p), TN_OK);
  const tn_match *r = &p.region.match, *rest = &p.rest.match;
  assert_int_equal(p.n_taken, 1);
  assert_int_equal(r->n_in, 2);
  assert_source(&p.region.source[0], TN_EPILOGUE_OPERAND, 2);
  assert_source(&p.region.source[1], TN_EPILOGUE_OPERAND, 1);
  assert_int_equal(r->n_nodes, 2);
  assert_numbers(&r->nodes[0], 0, 1, 2);
  assert_numbers(&r->nodes[1], 2, 0, 3);
  assert_int_equal(r->n_out, 2);
  assert_int_equal(r->out_number[0], 3);
  assert_source(&p.region.source[2], TN_EPILOGUE_INNER, -1);
  assert_int_equal(r->out_number[1], 2);
  assert_source(&p.region.source[3], TN_EPILOGUE_RESULT, 0);
  assert_int_equal(rest->n_in, 2);
  assert_source(&p.rest.source[0], TN_EPILOGUE_INNER, 0);
  assert_source(&p.rest.source[1], TN_EPILOGUE_OPERAND, 0);
  assert_true(tn_type_equal(rest->in[0], &wide));
  assert_null(rest->constant_node[0]);
  assert_numbers(&rest->nodes[0], 0, 0, 2);
  assert_numbers(&rest->nodes[1], 2, 1, 3);
  assert_int_equal(rest->n_out, 1);
  assert_int_equal(rest->out_number[0], 3);
  const tn_epilogue_source operand = {TN_EPILOGUE_OPERAND, 1}, result = {TN_EPILOGUE_RESULT, 0};
  tn_epilogue_source found = tn_prologue_source(&p, operand);
  assert_source(&found, TN_EPILOGUE_OPERAND, 0);
  found = tn_prologue_source(&p, result);
  assert_source(&found, TN_EPILOGUE_RESULT, 1);
  return drop_and_offer(q, &p);
}

/* c = mul(a, a); d = exp(c); y = add(d, c): both values are taken, d is stored as well. */
static tn_status split_two_values(tn_query *q) {
  tn_prologue p;
  assert_int_equal(tn_prologue_split(q, q->match, REGION, &p), TN_OK);
  assert_int_equal(p.n_taken, 2);
  assert_int_equal(p.region.match.n_in, 1);
  assert_int_equal(p.region.match.n_out, 2);
  assert_source(&p.region.source[1], TN_EPILOGUE_RESULT, 0);
  assert_source(&p.region.source[2], TN_EPILOGUE_INNER, -1);
  assert_int_equal(p.rest.match.n_in, 2);
  assert_source(&p.rest.source[0], TN_EPILOGUE_INNER, 0);
  assert_source(&p.rest.source[1], TN_EPILOGUE_INNER, 1);
  assert_numbers(&p.rest.match.nodes[0], 0, 1, 2);
  return drop_and_offer(q, &p);
}

static void split(tn_status (*query)(tn_query *), const rig_match *m) {
  const tn_kernel kernel = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "split", "takes a match apart"),
                            .family = "cpu",
                            .pattern = "pointwise+; y = reduce_sum(x); pointwise+",
                            .query = query};
  assert_int_equal(rig_query(&kernel, m).status, TN_OK);
}

static void a_match_is_region_and_rest(void **state) {
  static rig_match m;
  (void)state;
  rig_start(&m);
  int32_t t = rig_in(&m, &narrow), b = rig_in(&m, &wide), a = rig_in(&m, &wide);
  int32_t c = rig_node(&m, "mul", NULL, (int32_t[]){a, b}, 2, &wide, 1);
  int32_t d = rig_node(&m, "exp", NULL, &c, 1, &wide, 1);
  int32_t s = rig_node(&m, "reduce_sum", NULL, &d, 1, &narrow, 1);
  int32_t y = rig_node(&m, "mul", NULL, (int32_t[]){s, t}, 2, &narrow, 1);
  rig_out(&m, c);
  rig_out(&m, y);
  split(split_a_chain, &m);
}

static void several_values_are_taken(void **state) {
  static rig_match m;
  (void)state;
  rig_start(&m);
  int32_t a = rig_in(&m, &wide), c = rig_node(&m, "mul", NULL, (int32_t[]){a, a}, 2, &wide, 1);
  int32_t d = rig_node(&m, "exp", NULL, &c, 1, &wide, 1);
  int32_t y = rig_node(&m, "add", NULL, (int32_t[]){d, c}, 2, &wide, 1);
  rig_out(&m, d);
  rig_out(&m, y);
  split(split_two_values, &m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_match_is_region_and_rest),
      cmocka_unit_test(several_values_are_taken),
  };
  return cmocka_run_group_tests_name("shared: prologue", tests, NULL, NULL);
}
