/* [optimizer] ema and swa_from: the graphs that make averages and read them. */
#include "tests/unit/run/rig.h"

#include <string.h>

#include "core/graph/input_state.h"
#include "core/step/graphs/low_precision_copies.h"
#include "core/step/graphs/training_graph.h"
#include "core/step/update/averages.h"
#include "tenon/ops.h"

/* p - g */
static tn_status take_step(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_sub(b, tn_build_in(b, 0), tn_build_in(b, 1)));
  return TN_OK;
}

typedef struct step_options {
  double unused;
} step_options;
static const tn_option step_rows[] = {TN_OPT_END};

#define OPTIMIZER(id, how)                                                                                   \
  static const tn_optimizer id = {                                                                           \
      .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, #id, "made up", step_options, step_rows),                  \
      .granularity = how,                                                                                    \
      .update = take_step}
OPTIMIZER(flat, TN_UPDATE_ELEMENTWISE);
OPTIMIZER(each, TN_UPDATE_PER_PARAMETER);

static tn_arena arena;
static tn_model model;
static tn_state_map *map;
static tn_update_info info;
static tn_settings settings;
static const step_options options;

static int set_up(void **state) {
  rig_open(state);
  arena = tn_arena_new(&R.env);
  settings =
      (tn_settings){.model_where = "net.ini:1", .optimizer_kind = &flat, .optimizer_options = &options};
  rig_expect_ok(tn_state_map_create(&R.env, &map));
  return 0;
}

static int tear_down(void **state) {
  tn_graph_destroy(model.graph);
  memset(&model, 0, sizeof model);
  tn_state_map_destroy(map);
  tn_arena_free(&arena);
  return rig_close(state);
}

/* A parameter and a running statistic. */
#define NET                                                                                                  \
  "x: f32[1, 4] = input(name=x)\n"                                                                           \
  "w: f32[4, 3] = state(path=w)\n"                                                                           \
  "m: f32[4] = state(path=m, what=buffer)\n"                                                                 \
  "%3: f32[4] = reduce_sum(x, axes=[0])\n"                                                                   \
  "%4: f32[4] = add(m, %3)\n"                                                                                \
  "commit m = %4\n"                                                                                          \
  "%5: f32[1, 3] = matmul(x, w)\n"                                                                           \
  "%6: f32[] = reduce_sum(%5)\n"                                                                             \
  "output loss = %6\n"

static void emit(void) {
  model.graph = rig_parse(NET);
  tn_training_graph t = {
      .env = &R.env, .arena = &arena, .settings = &settings, .seed = 7, .model = &model, .map = map};
  rig_expect_ok(tn_gradients_emit(&t));
  rig_expect_ok(tn_update_emit(&t, &info));
  rig_expect_ok(tn_graph_verify(model.graph));
  rig_expect_ok(tn_state_map_add_rest(map, model.graph));
}

static const tn_gcommit *commit_of(const tn_graph *graph, const char *path) {
  for (size_t i = 0; i < graph->commits.n; i++)
    if (strcmp(graph->commits.v[i].path, path) == 0) return &graph->commits.v[i];
  return NULL;
}

/* Whether `v` depends on `on`. */
static bool depends(const tn_graph *g, tn_val v, tn_val on) {
  if (v == 0 || v == on) return v == on;
  for (int32_t i = 0; i < tn_graph_maker(g, v)->n_in; i++)
    if (depends(g, tn_graph_maker(g, v)->in[i], on)) return true;
  return false;
}

static void expect_average(const char *average, const char *of) {
  const tn_graph *g = model.graph;
  const tn_gcommit *to = commit_of(g, average), *from = commit_of(g, of);
  if (to == NULL || from == NULL) fail_msg("'%s' or '%s' is not committed", average, of);
  assert_true(depends(g, to->value, from->value));
  assert_true(depends(g, to->value, tn_graph_find_state(g, average)->value));
  assert_true(depends(g, to->value, tn_graph_find_state(g, TN_AVERAGE_DECAY)->value));
}

/* Each update makes the decay of the next one from the number of updates. */
static void expect_decay(void) {
  const tn_gcommit *decay = commit_of(model.graph, TN_AVERAGE_DECAY);
  assert_non_null(decay);
  assert_true(depends(model.graph, decay->value, tn_graph_find_state(model.graph, TN_UPDATES_STATE)->value));
  assert_false(depends(model.graph, decay->value, tn_graph_find_state(model.graph, TN_AVERAGE_DECAY)->value));
}

static void without_the_keys_there_is_no_average(void **state) {
  tn_graph *mean = NULL;
  (void)state;
  emit();
  assert_null(tn_state_map_find(map, "w.average"));
  rig_expect_ok(tn_mean_graph(&R.env, R.ops, &settings, map, &mean));
  assert_null(mean);
}

static void ema_moves_with_the_update(void **state) {
  (void)state;
  settings.optimizer.ema = 0.9;
  emit();
  expect_average("@average.f32", "@param.f32");
  expect_average("m.average", "m");
  expect_decay();
  assert_true(
      tn_state_map_are_parallel(map, tn_state_map_find(map, "w"), tn_state_map_find(map, "w.average")));
}

static void ema_of_parameters_one_by_one(void **state) {
  (void)state;
  settings.optimizer.ema = 0.9;
  settings.optimizer_kind = &each;
  emit();
  expect_average("w.average", "w");
}

/* The averages and the update have one predicate. */
static void skipped_updates_skip_averages(void **state) {
  (void)state;
  settings.optimizer.ema = 0.9;
  settings.optimizer.check_finite = 1;
  emit();
  tn_val applied = commit_of(model.graph, "@param.f32")->predicate;
  assert_int_not_equal(applied, 0);
  assert_int_equal(commit_of(model.graph, "@average.f32")->predicate, applied);
  assert_int_equal(commit_of(model.graph, "m.average")->predicate, applied);
  assert_int_equal(commit_of(model.graph, TN_AVERAGE_DECAY)->predicate, applied);
}

static void swa_leaves_the_update_alone(void **state) {
  tn_graph *mean = NULL;
  (void)state;
  settings.optimizer.swa_from = 2;
  emit();
  assert_null(commit_of(model.graph, "@average.f32"));
  assert_null(commit_of(model.graph, "m.average"));
  rig_expect_ok(tn_mean_graph(&R.env, R.ops, &settings, map, &mean));
  rig_expect_ok(tn_graph_verify(mean));
  assert_non_null(commit_of(mean, "w.average"));
  assert_non_null(commit_of(mean, "m.average"));
  tn_val goal = tn_graph_find_state(mean, TN_AVERAGE_GOAL)->value;
  assert_int_equal(commit_of(mean, TN_AVERAGE_COUNT)->value, goal);
  assert_int_not_equal(commit_of(mean, "w.average")->predicate, 0);
  tn_graph_destroy(mean);
}

/* Averages of ema begin as copies. */
static void the_graph_of_ema_copies(void **state) {
  tn_graph *mean = NULL;
  (void)state;
  settings.optimizer.ema = 0.9;
  emit();
  rig_expect_ok(tn_mean_graph(&R.env, R.ops, &settings, map, &mean));
  assert_int_equal(commit_of(mean, "w.average")->value, tn_graph_find_state(mean, "w")->value);
  assert_int_equal(commit_of(mean, "w.average")->predicate, 0);
  tn_graph_destroy(mean);
}

/* Another program reads averages in place of states, and copies of averages in place of copies. */
static void other_programs_read_averages(void **state) {
  (void)state;
  settings.optimizer.ema = 0.9;
  emit();
  tn_graph *g = rig_parse("x: f32[1, 4] = input(name=x)\n"
                          "w: f32[4, 3] = state(path=w)\n"
                          "m: f32[4] = state(path=m, what=buffer)\n"
                          "%4: f32[1, 4] = add(x, m)\n"
                          "%5: f32[1, 3] = matmul(%4, w)\n"
                          "output output = %5\n");
  const tn_type type = {TN_F16, 2, {4, 3}};
  tn_val copy = tn_graph_state(g, "w:f16", &type, TN_STATE_DERIVED, "", "");
  rig_expect_ok(tn_graph_output(g, "copy", copy));
  rig_expect_ok(tn_read_averages(map, &g));
  rig_expect_ok(tn_graph_verify(g));
  tn_val output = tn_graph_find_output(g, "output");
  assert_true(depends(g, output, tn_graph_find_state(g, "w.average")->value));
  assert_true(depends(g, output, tn_graph_find_state(g, "m.average")->value));
  assert_int_equal(tn_graph_find_state(g, "w")->value, 0);
  assert_int_equal(tn_graph_find_state(g, "w.average:f16")->value, tn_graph_find_output(g, "copy"));
  tn_graph_destroy(g);
}

static void names_lead_both_ways(void **state) {
  const tn_placement *found;
  (void)state;
  settings.optimizer.ema = 0.9;
  emit();
  const tn_placement *w = tn_state_map_find(map, "w"), *average = tn_state_map_find(map, "w.average");
  rig_expect_ok(tn_average_of(map, w, &found));
  assert_ptr_equal(found, average);
  rig_expect_ok(tn_averaged_state(map, average, &found));
  assert_ptr_equal(found, w);
  rig_expect_ok(tn_average_of(map, average, &found));
  assert_null(found);
  rig_expect_ok(tn_averaged_state(map, w, &found));
  assert_null(found);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(without_the_keys_there_is_no_average), CASE(ema_moves_with_the_update),
      CASE(ema_of_parameters_one_by_one),         CASE(skipped_updates_skip_averages),
      CASE(swa_leaves_the_update_alone),          CASE(the_graph_of_ema_copies),
      CASE(other_programs_read_averages),         CASE(names_lead_both_ways),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
