/* Loss scaling and skipped updates as graphs, with a policy and an optimizer made for these tests; and
 * low-precision copies of parameters: their locations and commits. */
#include "tests/unit/run/rig.h"

#include <string.h>

#include "core/step/graphs/low_precision_copies.h"
#include "core/step/graphs/training_graph.h"
#include "tenon/ops.h"

/* ---- plugins ---- */

static tn_status step_down(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_sub(b, tn_build_in(b, 0), tn_build_in(b, 1)));
  return TN_OK;
}

static const tn_optimizer descent = {
    .item = {.name = "descent"}, .granularity = TN_UPDATE_ELEMENTWISE, .update = step_down};
static const tn_optimizer descent_of_each = {
    .item = {.name = "descent_of_each"}, .granularity = TN_UPDATE_PER_PARAMETER, .update = step_down};

static const tn_type scalar = {.dtype = TN_F32};

static int32_t matmul_in_bf16(const void *options, const tn_precision_site *site) {
  (void)options;
  return strcmp(site->op, "matmul") == 0 ? TN_BF16 : site->dtype;
}

static tn_status scale_state(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_build_state(b, "scale", &scalar, "constant(8)"));
  return TN_OK;
}

/* Halves the scale after a step that was not applied. */
static tn_status halve(tn_build *b, const void *options) {
  (void)options;
  tn_val scale = tn_build_state(b, "scale", &scalar, "constant(8)");
  tn_build_commit(b, scale, tn_where(b, tn_build_in(b, 0), scale, tn_affine(b, scale, 0.5, 0)));
  return TN_OK;
}

static tn_status no_scale(tn_build *b, const void *options) {
  (void)b, (void)options;
  return TN_OK;
}

static tn_status vector_scale(tn_build *b, const void *options) {
  static const tn_type three = {TN_F32, 1, {3}};
  (void)options;
  tn_build_yield(b, 0, tn_full(b, &three, 2));
  return TN_OK;
}

static tn_status refuse(tn_build *b, const void *options) {
  (void)options;
  return tn_fail(b, TN_EINVAL, NULL, "no scale today");
}

/* ---- an update in the making ---- */

static tn_arena arena;
static tn_model model;
static tn_state_map *map;
static tn_update_info info;

static int set_up(void **state) {
  rig_open(state);
  arena = tn_arena_new(&R.env);
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

static tn_settings with(const tn_precision *policy) {
  return (tn_settings){
      .model_where = "net.ini:1", .optimizer_kind = &descent, .precision = policy, .precision_options = NULL};
}

static tn_status emit(const tn_settings *settings, const char *before) {
  model.graph = rig_parse(before);
  tn_training_graph t = {
      .env = &R.env, .arena = &arena, .settings = settings, .seed = 7, .model = &model, .map = map};
  tn_status status = tn_gradients_emit(&t);
  if (status == TN_OK) status = tn_training_precision(&t);
  return status == TN_OK ? tn_update_emit(&t, &info) : status;
}

/* A model with statistics: `m` is committed beside the loss. */
#define WITH_STATISTICS                                                                                      \
  "x: f32[3] = input(name=x)\n"                                                                              \
  "w: f32[3] = state(path=w)\n"                                                                              \
  "n: i64[] = state(path=n, what=buffer)\n"                                                                  \
  "unread f32[] = state(path=m, what=buffer)\n"                                                              \
  "%4: f32[3] = mul(x, w)\n"                                                                                 \
  "%5: f32[] = reduce_sum(%4)\n"                                                                             \
  "commit m = %5\n"                                                                                          \
  "commit n = n\n"                                                                                           \
  "output loss = %5\n"

/* ---- scaling ---- */

static void a_scaled_step(void **state) {
  (void)state;
  const tn_precision policy = {
      .item = {.name = "made-up"}, .decide = matmul_in_bf16, .scale = scale_state, .update = halve};
  tn_settings s = with(&policy);
  rig_expect_ok(emit(&s, WITH_STATISTICS));
  rig_expect_text(model.graph,
                  "x: f32[3] = input(name=x)\n"
                  "w: f32[3] = state(path=w)\n"
                  "n: i64[] = state(path=n, what=buffer)\n"
                  "%4: f32[3] = mul(x, w)\n"
                  "%5: f32[] = reduce_sum(%4)\n"
                  "precision.scale: f32[] = state(path=precision.scale, what=host, init=\"constant(8)\")\n"
                  "%7: f32[1] = reshape(precision.scale, dims=[1])\n"
                  "%8: f32[3] = broadcast(%7, dims=[3])\n"
                  "%9: f32[3] = mul(%8, x)\n"
                  "%10: f32[16] = pack(%9, offsets=[0], count=16, region=param.f32)\n"
                  "m: f32[] = state(path=m, what=buffer)\n"
                  "%12: bool[] = is_finite(%5)\n"
                  "%13: f32[] = where(%12, %5, m)\n"
                  "%14: bool[] = all_finite(%10)\n"
                  "%15: f32[] = reciprocal(precision.scale)\n"
                  "%16: bool[] = is_finite(%15)\n"
                  "%17: bool[] = and(%14, %16)\n"
                  "%18: bool[] = not(%17)\n"
                  "%19: f32[] = cast(%18, to=f32)\n"
                  "%20: f32[] = affine(precision.scale, scale=0.5)\n"
                  "%21: f32[] = where(%17, precision.scale, %20)\n"
                  "%22: f32[16] = mul(%10, %15)\n"
                  "@param.f32: f32[16] = state(path=@param.f32)\n"
                  "%24: f32[16] = sub(@param.f32, %22)\n"
                  "run.updates: i64[] = state(path=run.updates, what=host, init=zeros)\n"
                  "%26: i64[] = full(value=1, dtype=i64)\n"
                  "%27: i64[] = add(run.updates, %26)\n"
                  "commit m = %13\n"
                  "commit n = n\n"
                  "commit precision.scale = %21\n"
                  "commit @param.f32 = %24 if %17\n"
                  "commit run.updates = %27 if %17\n"
                  "output loss = %5\n"
                  "output skipped = %19\n"
                  "output loss_scale = precision.scale\n");
}

static void a_policy_without_a_scale_does_not_scale(void **state) {
  (void)state;
  const tn_precision policy = {.item = {.name = "made-up"}, .decide = matmul_in_bf16, .scale = no_scale};
  tn_settings s = with(&policy);
  rig_expect_ok(emit(&s, WITH_STATISTICS));
  assert_int_equal(tn_graph_find_output(model.graph, TN_OUTPUT_SKIPPED), 0);
  assert_int_equal(tn_graph_find_output(model.graph, TN_OUTPUT_LOSS_SCALE), 0);
  for (size_t i = 0; i < model.graph->commits.n; i++)
    assert_int_equal(model.graph->commits.v[i].predicate, 0);
}

static void check_finite_guards_without_a_scale(void **state) {
  (void)state;
  tn_settings s = with(NULL);
  s.optimizer.check_finite = 1;
  rig_expect_ok(emit(&s, WITH_STATISTICS));
  assert_int_not_equal(tn_graph_find_output(model.graph, TN_OUTPUT_SKIPPED), 0);
  assert_int_equal(tn_graph_find_output(model.graph, TN_OUTPUT_LOSS_SCALE), 0);
  for (size_t i = 0; i < model.graph->commits.n; i++) {
    const tn_gcommit *c = &model.graph->commits.v[i];
    bool statistic = strcmp(c->path, "m") == 0;
    assert_int_equal(c->predicate != 0, !statistic && strcmp(c->path, "n") != 0);
    assert_int_equal(tn_graph_is(model.graph, c->value, "where"), statistic);
  }
}

static void a_scale_must_be_a_number(void **state) {
  (void)state;
  const tn_precision policy = {.item = {.name = "made-up"}, .decide = matmul_in_bf16, .scale = vector_scale};
  tn_settings s = with(&policy);
  rig_expect_error(emit(&s, WITH_STATISTICS), TN_EINVAL,
                   "precision policy 'made-up': the scale is f32[3], expected f32[]");
}

static void a_policy_may_refuse(void **state) {
  (void)state;
  const tn_precision policy = {.item = {.name = "made-up"}, .decide = matmul_in_bf16, .scale = refuse};
  tn_settings s = with(&policy);
  rig_expect_error(emit(&s, WITH_STATISTICS), TN_EINVAL, "precision policy 'made-up': no scale today");
}

/* ---- copies ---- */

#define TWO_WEIGHTS                                                                                          \
  "x: f32[2, 3] = input(name=x)\n"                                                                           \
  "a: f32[3, 4] = state(path=a)\n"                                                                           \
  "b: f32[4, 1] = state(path=b)\n"                                                                           \
  "%4: f32[2, 4] = matmul(x, a)\n"                                                                           \
  "%5: f32[2, 1] = matmul(%4, b)\n"                                                                          \
  "%6: f32[] = reduce_sum(%5)\n"                                                                             \
  "output loss = %6\n"

static void make_step(const tn_optimizer *optimizer) {
  const tn_precision policy = {.item = {.name = "made-up"}, .decide = matmul_in_bf16};
  tn_settings s = with(&policy);
  s.optimizer_kind = optimizer;
  rig_expect_ok(emit(&s, TWO_WEIGHTS));
  rig_expect_ok(tn_state_map_add_rest(map, model.graph));
  rig_expect_ok(tn_low_precision_allocate(map, model.graph));
  rig_expect_ok(tn_low_precision_commit(map, model.graph));
  rig_expect_ok(tn_graph_verify(model.graph));
}

static const tn_gcommit *commit_of(const char *path) {
  for (size_t i = 0; i < model.graph->commits.n; i++)
    if (strcmp(model.graph->commits.v[i].path, path) == 0) return &model.graph->commits.v[i];
  return NULL;
}

static int32_t count_casts(const tn_graph *g, int32_t dtype) {
  int32_t n = 0;
  for (tn_val v = 1; v < g->values.n; v++)
    n += tn_graph_is(g, v, "cast") && tn_graph_type(g, v)->dtype == dtype;
  return n;
}

static void copies_have_the_offsets_of_their_parameters(void **state) {
  (void)state;
  make_step(&descent);
  const tn_placement *a = tn_state_map_find(map, "a"), *low = tn_state_map_find(map, "a:bf16");
  assert_non_null(low);
  assert_int_equal(low->what, TN_STATE_DERIVED);
  assert_int_equal(low->offset, a->offset);
  assert_string_equal(map->regions.v[low->region].name, "param.f32:bf16");
  assert_int_equal(map->regions.v[low->region].count, map->regions.v[a->region].count);
}

/* Casts: x, the gradients at both products, and the region; none of a or b. */
static void one_cast_of_the_region_follows_the_update(void **state) {
  (void)state;
  make_step(&descent);
  const tn_gcommit *whole = commit_of("@param.f32:bf16");
  assert_non_null(whole);
  assert_true(tn_graph_is(model.graph, whole->value, "cast"));
  assert_int_equal(tn_graph_maker(model.graph, whole->value)->in[0], commit_of("@param.f32")->value);
  assert_null(commit_of("a:bf16"));
  assert_int_equal(count_casts(model.graph, TN_BF16), 3);
}

static void each_copy_follows_an_optimizer_of_each(void **state) {
  (void)state;
  make_step(&descent_of_each);
  assert_null(commit_of("@param.f32:bf16"));
  assert_int_equal(tn_graph_maker(model.graph, commit_of("a:bf16")->value)->in[0], commit_of("a")->value);
  assert_int_equal(tn_graph_maker(model.graph, commit_of("b:bf16")->value)->in[0], commit_of("b")->value);
}

static void a_refresh_casts_the_region(void **state) {
  (void)state;
  make_step(&descent);
  tn_graph *refresh = NULL;
  rig_expect_ok(tn_refresh_graph(&R.env, R.ops, map, &refresh));
  rig_expect_text(refresh, "unread bf16[32] = state(path=@param.f32:bf16, what=derived)\n"
                           "@param.f32: f32[32] = state(path=@param.f32, what=slot)\n"
                           "%2: bf16[32] = cast(@param.f32, to=bf16)\n"
                           "commit \"@param.f32:bf16\" = %2\n");
  tn_graph_destroy(refresh);
}

static void without_copies_there_is_no_refresh_program(void **state) {
  (void)state;
  tn_settings s = with(NULL);
  tn_graph *refresh = NULL;
  rig_expect_ok(emit(&s, TWO_WEIGHTS));
  rig_expect_ok(tn_refresh_graph(&R.env, R.ops, map, &refresh));
  assert_null(refresh);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_scaled_step),
      CASE(a_policy_without_a_scale_does_not_scale),
      CASE(check_finite_guards_without_a_scale),
      CASE(a_scale_must_be_a_number),
      CASE(a_policy_may_refuse),
      CASE(copies_have_the_offsets_of_their_parameters),
      CASE(one_cast_of_the_region_follows_the_update),
      CASE(each_copy_follows_an_optimizer_of_each),
      CASE(a_refresh_casts_the_region),
      CASE(without_copies_there_is_no_refresh_program),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
