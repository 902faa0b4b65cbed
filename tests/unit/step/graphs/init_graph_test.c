/* The graph of the init program, which commits every state's initializer. */
#include "tests/unit/run/rig.h"

#include <string.h>

#include "core/step/graphs/training_graph.h"

static tn_state_map *map;

static int set_up(void **state) {
  rig_open(state);
  rig_expect_ok(tn_state_map_create(&R.env, &map));
  return 0;
}

static int tear_down(void **state) {
  tn_state_map_destroy(map);
  return rig_close(state);
}

/* The init graph of the states that a graph names. */
static tn_graph *init_of(uint64_t seed, const char *states) {
  tn_graph *graph = rig_parse(states), *init = NULL;
  rig_expect_ok(tn_state_map_add_rest(map, graph));
  tn_graph_destroy(graph);
  rig_expect_ok(tn_init_graph(&R.env, R.ops, seed, map, &init));
  return init;
}

static uint64_t hash_of_init(uint64_t seed, const char *states) {
  tn_graph *init = init_of(seed, states);
  uint64_t hash;
  rig_expect_ok(tn_graph_hash(init, &hash));
  tn_graph_destroy(init);
  return hash;
}

static void every_state_with_an_initializer_is_committed(void **state) {
  (void)state;
  tn_graph *init = init_of(7, "unread f32[2, 3] = state(path=fc.weight, init=\"normal(0, 0.02)\")\n"
                              "unread f32[3] = state(path=bn.running_var, what=buffer, init=ones)\n"
                              "unread f32[3] = state(path=fc.bias, init=zeros)\n");
  rig_expect_text(init, "fc.weight: f32[2, 3] = state(path=fc.weight, init=\"normal(0, 0.02)\")\n"
                        "%2: i64[] = full(dtype=i64)\n"
                        "%3: f32[2, 3] = random_normal(%2, dims=[2, 3], stream=2056740607309846401, b=0.02)\n"
                        "bn.running_var: f32[3] = state(path=bn.running_var, what=buffer, init=ones)\n"
                        "%5: f32[3] = full(dims=[3], value=1)\n"
                        "fc.bias: f32[3] = state(path=fc.bias, init=zeros)\n"
                        "%7: f32[3] = full(dims=[3])\n"
                        "commit fc.weight = %3\n"
                        "commit bn.running_var = %5\n"
                        "commit fc.bias = %7\n");
  tn_graph_destroy(init);
}

static void a_state_without_an_initializer_stays_as_it_is(void **state) {
  (void)state;
  tn_graph *init = init_of(7, "unread f32[3] = state(path=kept, what=slot)\n");
  rig_expect_text(init, "");
  tn_graph_destroy(init);
}

static void the_seed_decides_the_numbers(void **state) {
  (void)state;
  static const char one[] = "unread f32[4] = state(path=w, init=\"uniform(-1, 1)\")\n";
  assert_true(hash_of_init(1, one) == hash_of_init(1, one));
  assert_true(hash_of_init(1, one) != hash_of_init(2, one));
}

static void a_wrong_initializer_is_reported_with_its_location(void **state) {
  (void)state;
  const tn_gstate wrong = {.path = "fc.weight",
                           .type = {TN_F32, 1, {4}},
                           .what = TN_STATE_PARAM,
                           .init = "gaussian(0, 1)",
                           .where = "net.ini:12"};
  tn_graph *init = NULL;
  int32_t region;
  rig_expect_ok(tn_state_map_region(map, "state.f32", TN_F32, &region));
  rig_expect_ok(tn_state_map_add(map, &wrong, region, -1));
  rig_expect_error(tn_init_graph(&R.env, R.ops, 7, map, &init), TN_EINVAL, "net.ini:12: 'fc.weight': ");
  assert_null(init);
  assert_non_null(strstr(tn_error_text(&R.env), "gaussian"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(every_state_with_an_initializer_is_committed),
      CASE(a_state_without_an_initializer_stays_as_it_is),
      CASE(the_seed_decides_the_numbers),
      CASE(a_wrong_initializer_is_reported_with_its_location),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
