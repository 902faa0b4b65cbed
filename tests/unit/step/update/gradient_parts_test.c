/* Gradients in low precision: the parts of the parameters, and what each stage of the update makes of them.
 */
#include "tests/unit/run/rig.h"

#include <string.h>

#include "core/step/graphs/low_precision_copies.h"
#include "core/step/graphs/training_graph.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

/* ---- plugins ---- */

typedef struct step_options {
  double rate;
} step_options;

static const tn_option step_rows[] = {
    TN_OPT_WITH(step_options, rate, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.5", ">= 0", "how far to go"),
    TN_OPT_END};

/* p - rate * (g + kept), kept = g. Notes the random streams that it would draw from. */
static uint64_t streams[8];
static int n_streams;
static tn_status take_step(tn_build *b, const void *options) {
  tn_val gradient = tn_build_in(b, 1);
  tn_val kept = tn_build_state(b, "kept", tn_val_type(b, tn_build_in(b, 0)), "zeros");
  (void)options;
  if (n_streams < 8) streams[n_streams++] = tn_build_random_stream(b, "noise");
  tn_build_commit(b, kept, gradient);
  tn_build_yield(
      b, 0,
      tn_sub(b, tn_build_in(b, 0), tn_mul(b, tn_add(b, gradient, kept), tn_build_option_value(b, "rate"))));
  return TN_OK;
}

#define OPTIMIZER(id, how)                                                                                   \
  static const tn_optimizer id = {                                                                           \
      .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, #id, "made up", step_options, step_rows),                  \
      .granularity = how,                                                                                    \
      .update = take_step}
OPTIMIZER(flat, TN_UPDATE_ELEMENTWISE);
OPTIMIZER(each, TN_UPDATE_PER_PARAMETER);

static int32_t products_in(const tn_precision_site *site, int32_t dtype) {
  if (site->op_class == TN_CLASS_MOVE) return TN_ANY;
  return site->op_class == TN_CLASS_MATMUL ? dtype : site->dtype;
}
static int32_t products_in_f16(const void *options, const tn_precision_site *site) {
  (void)options;
  return products_in(site, TN_F16);
}
static int32_t products_in_bf16(const void *options, const tn_precision_site *site) {
  (void)options;
  return products_in(site, TN_BF16);
}
static const tn_precision half = {.item = {.name = "half"}, .decide = products_in_f16},
                          brain = {.item = {.name = "brain"}, .decide = products_in_bf16};

/* ---- an update in the making ---- */

static tn_arena arena;
static tn_model model;
static tn_state_map *map;
static tn_update_info info;
static tn_settings settings;
static int64_t epoch; /* of the step */
static const step_options rate = {0.5}, slow = {0.1};

static int set_up(void **state) {
  rig_open(state);
  arena = tn_arena_new(&R.env);
  n_streams = 0;
  epoch = 1;
  settings = (tn_settings){
      .model_where = "net.ini:1", .optimizer_kind = &flat, .optimizer_options = &rate, .precision = &half};
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

/* A convolution in front of a linear layer. Gradients become ready in the order w, b, k. */
#define HEAD                                                                                                 \
  "x: f32[1, 1, 4, 4] = input(name=x)\n"                                                                     \
  "k: f32[2, 1, 3, 3] = state(path=k)\n"                                                                     \
  "w: f32[8, 3] = state(path=w)\n"                                                                           \
  "b: f32[3] = state(path=b)\n"
#define TAIL                                                                                                 \
  "%6: f32[1, 8] = reshape(%5, dims=[1, 8])\n"                                                               \
  "%7: f32[1, 3] = matmul(%6, w, b)\n"                                                                       \
  "%8: f32[] = reduce_sum(%7)\n"                                                                             \
  "output loss = %8\n"
#define NET HEAD "%5: f32[1, 2, 2, 2] = conv2d(x, k)\n" TAIL

static void emit(const char *before, int32_t ranks, int32_t micro_batches, bool accumulates) {
  model.graph = rig_parse(before);
  model.graph->ranks = ranks;
  model.graph->micro_batches = micro_batches;
  tn_training_graph t = {.env = &R.env,
                         .arena = &arena,
                         .settings = &settings,
                         .epoch = epoch,
                         .seed = 7,
                         .model = &model,
                         .map = map};
  rig_expect_ok(tn_gradients_emit(&t));
  rig_expect_ok(tn_training_precision(&t));
  rig_expect_ok(accumulates ? tn_accumulate_emit(&t) : tn_update_emit(&t, &info));
  rig_expect_ok(tn_graph_verify(model.graph));
}

/* ---- questions about the graph ---- */

static const tn_type *type_of(tn_val v) { return tn_graph_type(model.graph, v); }

/* The result of the n-th node of an op, from 0; 0: there are fewer. */
static tn_val result_of(const char *op, int n) {
  for (size_t i = 0; i < model.graph->nodes.n; i++) {
    const tn_gnode *node = &model.graph->nodes.v[i];
    if (strcmp(node->op->item.name, op) == 0 && n-- == 0) return node->first_out;
  }
  return 0;
}

static const tn_gnode *maker_of(tn_val v) { return tn_graph_maker(model.graph, v); }

static int count_of(const char *op) {
  int n = 0;
  while (result_of(op, n)) n++;
  return n;
}

static const tn_gcommit *commit_of(const char *path) {
  for (size_t i = 0; i < model.graph->commits.n; i++)
    if (strcmp(model.graph->commits.v[i].path, path) == 0) return &model.graph->commits.v[i];
  return NULL;
}

static void expect_place(const char *path, const char *region, int64_t offset) {
  const tn_placement *place = tn_state_map_find(map, path);
  if (place == NULL) fail_msg("%s has no place", path);
  assert_string_equal(map->regions.v[place->region].name, region);
  assert_int_equal(place->offset, offset);
}

static void expect_pack(int n, int32_t dtype, int32_t operands, int64_t count, const char *region) {
  tn_val v = result_of("pack", n);
  assert_int_not_equal(v, 0);
  assert_int_equal(type_of(v)->dtype, dtype);
  assert_int_equal(type_of(v)->dims[0], count);
  assert_int_equal(maker_of(v)->n_in, operands);
  assert_string_equal(((const tn_pack_attributes *)maker_of(v)->attributes)->region, region);
}

/* Whether `v` depends on `on`. */
static bool depends(tn_val v, tn_val on) {
  if (v == 0 || v == on) return v == on;
  for (int32_t i = 0; i < maker_of(v)->n_in; i++)
    if (depends(maker_of(v)->in[i], on)) return true;
  return false;
}

/* ---- cases ---- */

/* The gradient of `k` is packed as the convolution writes it. Those of `w` and `b` are f32: the first by a
 * cast behind its product, the second because the policy leaves sums in f32. */
static void gradients_of_convolutions_are_packed_as_they_are(void **state) {
  (void)state;
  emit(NET, 1, 1, false);
  assert_int_equal(count_of("pack"), 2);
  expect_pack(0, TN_F16, 1, 32, "param.f32.f16");
  expect_pack(1, TN_F32, 2, 48, "param.f32");
  assert_int_equal(maker_of(result_of("pack", 0))->in[0], result_of("conv2d_grad_weight", 0));
  expect_place("k", "param.f32.f16", 0);
  expect_place("w", "param.f32", 0);
  expect_place("b", "param.f32", 32);
}

static void each_part_is_updated_from_f32(void **state) {
  (void)state;
  emit(NET, 1, 1, false);
  const tn_gcommit *low = commit_of("@param.f32.f16"), *full = commit_of("@param.f32");
  assert_non_null(low);
  assert_non_null(full);
  assert_int_equal(type_of(low->value)->dtype, TN_F32);
  assert_true(depends(low->value, result_of("pack", 0)) && !depends(low->value, result_of("pack", 1)));
  assert_true(depends(full->value, result_of("pack", 1)) && !depends(full->value, result_of("pack", 0)));
  tn_val kept = commit_of("@kept.f32.f16")->value;
  assert_true(tn_graph_is(model.graph, kept, "cast"));
  assert_int_equal(type_of(kept)->dtype, TN_F32);
  assert_int_equal(maker_of(kept)->in[0], result_of("pack", 0));
}

static void optimizer_state_lies_beside_its_part(void **state) {
  (void)state;
  emit(NET, 1, 1, false);
  expect_place("k.kept", "kept.f32.f16", 0);
  expect_place("w.kept", "kept.f32", 0);
  expect_place("b.kept", "kept.f32", 32);
  assert_true(tn_state_map_are_parallel(map, tn_state_map_find(map, "k"), tn_state_map_find(map, "k.kept")));
  assert_false(tn_state_map_are_parallel(map, tn_state_map_find(map, "k"), tn_state_map_find(map, "w.kept")));
  assert_int_equal(tn_state_map_find(map, "@kept.f32")->type.dims[0], 48);
}

static void bf16_has_a_part_as_well(void **state) {
  (void)state;
  settings.precision = &brain;
  emit(NET, 1, 1, false);
  expect_pack(0, TN_BF16, 1, 32, "param.f32.bf16");
  expect_place("k.kept", "kept.f32.bf16", 0);
}

static void without_a_policy_there_is_one_part(void **state) {
  (void)state;
  settings.precision = NULL;
  emit(NET, 1, 1, false);
  assert_int_equal(count_of("pack"), 1);
  assert_int_equal(count_of("cast"), 0);
  expect_pack(0, TN_F32, 3, 80, "param.f32");
  assert_int_equal(n_streams, 1);
}

/* A view of the parameter is a view of its gradient. */
static void a_view_of_a_gradient_stays_low(void **state) {
  (void)state;
  emit("x: f32[1, 1, 4, 4] = input(name=x)\n"
       "k: f32[18] = state(path=k)\n"
       "w: f32[8, 3] = state(path=w)\n"
       "b: f32[3] = state(path=b)\n"
       "%4: f32[2, 1, 3, 3] = reshape(k, dims=[2, 1, 3, 3])\n"
       "%5: f32[1, 2, 2, 2] = conv2d(x, %4)\n" TAIL,
       1, 1, false);
  expect_pack(0, TN_F16, 1, 32, "param.f32.f16");
  assert_true(tn_graph_is(model.graph, maker_of(result_of("pack", 0))->in[0], "reshape"));
}

/* The sum is a launch of its own, and casts. */
static void the_sum_of_two_gradients_is_f32(void **state) {
  (void)state;
  emit(HEAD "%4: f32[1, 2, 2, 2] = conv2d(x, k)\n"
            "%9: f32[1, 2, 2, 2] = conv2d(x, k)\n"
            "%5: f32[1, 2, 2, 2] = mul(%4, %9)\n" TAIL,
       1, 1, false);
  assert_int_equal(count_of("pack"), 1);
  expect_pack(0, TN_F32, 3, 80, "param.f32");
}

/* An infinite gradient of either part keeps the update from being applied. */
static void both_parts_are_checked(void **state) {
  (void)state;
  settings.optimizer.check_finite = 1;
  emit(NET, 1, 1, false);
  assert_int_equal(count_of("all_finite"), 2);
  tn_val applied = commit_of("@param.f32")->predicate;
  assert_int_equal(commit_of("@param.f32.f16")->predicate, applied);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(maker_of(result_of("all_finite", i))->in[0], result_of("pack", i));
    assert_true(depends(applied, result_of("all_finite", i)));
  }
}

/* The norm is that of all gradients, and its squares are f32. */
static void clipping_has_one_norm(void **state) {
  (void)state;
  settings.optimizer.clip = 2;
  emit(NET, 1, 1, false);
  tn_val norm = tn_graph_find_output(model.graph, "grad_norm");
  for (int i = 0; i < 2; i++) {
    tn_val pack = result_of("pack", i);
    assert_true(depends(norm, pack));
    assert_true(depends(commit_of(i == 0 ? "@param.f32.f16" : "@param.f32")->value, norm));
  }
  for (int i = 0; result_of("reduce_sum", i); i++)
    assert_int_equal(type_of(result_of("reduce_sum", i))->dtype, TN_F32);
}

static void groups_spread_over_each_part(void **state) {
  (void)state;
  tn_group_setting group = {.name = "slow", .match = "k, b", .options = &slow, .where = "net.ini:9"};
  rig_expect_ok(tn_words_split(&arena, group.match, &group.patterns));
  settings.groups = &group;
  settings.n_groups = 1;
  emit(NET, 1, 1, false);
  const tn_spread_attributes *low = maker_of(result_of("spread", 0))->attributes,
                             *full = maker_of(result_of("spread", 1))->attributes;
  assert_int_equal(low->count, 32);
  assert_int_equal(low->index.n, 1);
  assert_int_equal(low->index.v[0], 1);
  assert_int_equal(full->count, 48);
  assert_int_equal(full->index.n, 2);
  assert_true(full->index.v[0] == 0 && full->starts.v[0] == 0);  /* w */
  assert_true(full->index.v[1] == 1 && full->starts.v[1] == 32); /* b */
  assert_int_equal(info.n_scheduled, 1);
}

/* An optimizer that sees one parameter at a time gets f32, too. */
static void parameters_are_updated_one_by_one(void **state) {
  static const char *const paths[] = {"k", "w", "b"};
  (void)state;
  settings.optimizer_kind = &each;
  emit(NET, 1, 1, false);
  expect_pack(0, TN_F16, 1, 32, "");
  expect_pack(1, TN_F32, 2, 48, "");
  for (int i = 0; i < 3; i++) {
    assert_non_null(commit_of(paths[i]));
    assert_true(depends(commit_of(paths[i])->value, result_of("pack", i != 0)));
    assert_int_equal(type_of(commit_of(paths[i])->value)->dtype, TN_F32);
  }
}

/* [group.NAME] freeze = 2 for `k` and `b`. */
static void freeze_until_epoch_2(void) {
  tn_words patterns;
  rig_expect_ok(tn_words_split(&arena, "k, b", &patterns));
  rig_expect_ok(tn_freeze_add(&arena, &settings.freeze, &patterns, 2));
}

/* The step of the last phase chooses the locations; that of the first one leaves the other parts alone. */
static void parameters_that_thaw_have_parts_of_their_own(void **state) {
  (void)state;
  freeze_until_epoch_2();
  epoch = 3;
  emit(NET, 1, 1, false);
  assert_int_equal(count_of("pack"), 3);
  expect_pack(0, TN_F32, 1, 32, "param.f32");
  expect_pack(1, TN_F16, 1, 32, "param.f32.f16.3");
  expect_pack(2, TN_F32, 1, 16, "param.f32.3");
  expect_place("k", "param.f32.f16.3", 0);
  expect_place("b", "param.f32.3", 0);
  expect_place("b.kept", "kept.f32.3", 0);
  assert_non_null(commit_of("@param.f32.3"));
  assert_non_null(commit_of("run.updates"));
  assert_non_null(commit_of("run.updates.3"));
  assert_int_equal(n_streams, 3);
  tn_graph_destroy(model.graph);
  epoch = 1;
  emit(NET, 1, 1, false);
  assert_int_equal(count_of("pack"), 1);
  assert_int_equal(count_of("conv2d_grad_weight"), 0);
  expect_pack(0, TN_F32, 1, 32, "param.f32");
  assert_non_null(commit_of("@kept.f32"));
  assert_non_null(commit_of("run.updates"));
  assert_null(commit_of("@param.f32.3"));
  assert_null(commit_of("@kept.f32.f16.3"));
  assert_null(commit_of("run.updates.3"));
  assert_true(streams[3] == streams[0]);
}

static void parameters_thaw_one_by_one(void **state) {
  (void)state;
  settings.optimizer_kind = &each;
  freeze_until_epoch_2();
  epoch = 3;
  emit(NET, 1, 1, false);
  assert_true(commit_of("k.kept") != NULL && commit_of("w.kept") != NULL && commit_of("b") != NULL);
  tn_graph_destroy(model.graph);
  epoch = 2;
  emit(NET, 1, 1, false);
  assert_true(commit_of("k.kept") == NULL && commit_of("w.kept") != NULL && commit_of("b") == NULL);
}

/* Another step has chosen the locations, for which the gradients were ready in another order. */
static void locations_decide_the_order_in_a_part(void **state) {
  (void)state;
  const tn_gstate b = {.path = "b", .type = {TN_F32, 1, {3}}, .what = TN_STATE_PARAM},
                  w = {.path = "w", .type = {TN_F32, 2, {8, 3}}, .what = TN_STATE_PARAM};
  int32_t region;
  rig_expect_ok(tn_state_map_region(map, "param.f32", TN_F32, &region));
  rig_expect_ok(tn_state_map_add(map, &b, region, -1));
  rig_expect_ok(tn_state_map_add(map, &w, region, -1));
  emit(NET, 1, 1, false);
  const tn_gnode *pack = maker_of(result_of("pack", 1));
  const tn_pack_attributes *a = pack->attributes;
  assert_true(a->offsets.v[0] == 0 && a->offsets.v[1] == 16);
  assert_int_equal(type_of(pack->in[0])->rank, 1);
  assert_int_equal(type_of(pack->in[1])->rank, 2);
}

/* Noise of an optimizer is not the same for both parts. */
static void parts_have_random_streams_of_their_own(void **state) {
  (void)state;
  emit(NET, 1, 1, false);
  assert_int_equal(n_streams, 2);
  assert_true(streams[0] != streams[1]);
}

/* Sums over micro-batches are f32, and the cast is an operand of the addition. */
static void micro_batches_accumulate_in_f32(void **state) {
  (void)state;
  emit(NET, 1, 2, true);
  const tn_gcommit *low = commit_of("run.gradient.0"), *full = commit_of("run.gradient.1");
  assert_true(depends(low->value, result_of("pack", 0)) && depends(full->value, result_of("pack", 1)));
  assert_int_equal(type_of(low->value)->dtype, TN_F32);
  assert_true(tn_graph_is(model.graph, maker_of(low->value)->in[1], "cast"));
  expect_place("run.gradient.0", "grad.f32", 0);
  expect_place("run.gradient.1", "grad.f32", 32);
}

static void the_last_micro_batch_adds_in_f32(void **state) {
  (void)state;
  emit(NET, 1, 2, false);
  tn_val kept = commit_of("@kept.f32.f16")->value;
  assert_true(tn_graph_is(model.graph, kept, "add"));
  assert_true(depends(kept, tn_graph_find_state(model.graph, "run.gradient.0")->value));
  assert_true(depends(kept, result_of("pack", 0)));
}

/* Ranks exchange reduce_dtype, f32 unless it is asked for. */
static void ranks_sum_in_the_reduce_dtype(void **state) {
  static const int32_t asked[] = {TN_REDUCE_F32, TN_REDUCE_BF16, TN_REDUCE_F16},
                       dtypes[] = {TN_F32, TN_BF16, TN_F16};
  (void)state;
  for (int i = 0; i < 3; i++) {
    settings.distributed.reduce_dtype = asked[i];
    settings.optimizer.check_finite = 1;
    emit(NET, 2, 1, false);
    assert_int_equal(count_of("all_reduce"), 2);
    for (int k = 0; k < 2; k++) {
      tn_val sum = result_of("all_reduce", k);
      assert_int_equal(type_of(sum)->dtype, dtypes[i]);
      assert_int_equal(maker_of(result_of("all_finite", k))->in[0], sum);
    }
    assert_int_equal(type_of(commit_of("@kept.f32")->value)->dtype, TN_F32);
    assert_int_equal(type_of(commit_of("@kept.f32.f16")->value)->dtype, TN_F32);
    tn_graph_destroy(model.graph);
    model.graph = NULL;
  }
}

/* A bucket holds gradients of one part. */
static void buckets_do_not_cross_parts(void **state) {
  (void)state;
  settings.bucket = 64;
  emit(NET, 2, 1, false);
  assert_int_equal(count_of("all_reduce"), 3);
  assert_int_equal(type_of(result_of("all_reduce", 0))->dims[0], 32);
  assert_int_equal(type_of(result_of("all_reduce", 1))->dims[0], 32);
  assert_int_equal(type_of(result_of("all_reduce", 2))->dims[0], 16);
}

/* Both regions have low-precision copies, since the operands of all products are f16. */
static void copies_follow_each_part(void **state) {
  (void)state;
  emit(NET, 1, 1, false);
  rig_expect_ok(tn_state_map_add_rest(map, model.graph));
  rig_expect_ok(tn_low_precision_allocate(map, model.graph));
  rig_expect_ok(tn_low_precision_commit(map, model.graph));
  rig_expect_ok(tn_graph_verify(model.graph));
  expect_place("k:f16", "param.f32.f16:f16", 0);
  expect_place("w:f16", "param.f32:f16", 0);
  assert_int_equal(maker_of(commit_of("@param.f32.f16:f16")->value)->in[0],
                   commit_of("@param.f32.f16")->value);
  assert_int_equal(maker_of(commit_of("@param.f32:f16")->value)->in[0], commit_of("@param.f32")->value);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(gradients_of_convolutions_are_packed_as_they_are),
      CASE(each_part_is_updated_from_f32),
      CASE(optimizer_state_lies_beside_its_part),
      CASE(bf16_has_a_part_as_well),
      CASE(without_a_policy_there_is_one_part),
      CASE(a_view_of_a_gradient_stays_low),
      CASE(the_sum_of_two_gradients_is_f32),
      CASE(both_parts_are_checked),
      CASE(clipping_has_one_norm),
      CASE(groups_spread_over_each_part),
      CASE(parameters_are_updated_one_by_one),
      CASE(parameters_that_thaw_have_parts_of_their_own),
      CASE(parameters_thaw_one_by_one),
      CASE(locations_decide_the_order_in_a_part),
      CASE(parts_have_random_streams_of_their_own),
      CASE(micro_batches_accumulate_in_f32),
      CASE(the_last_micro_batch_adds_in_f32),
      CASE(ranks_sum_in_the_reduce_dtype),
      CASE(buckets_do_not_cross_parts),
      CASE(copies_follow_each_part),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
