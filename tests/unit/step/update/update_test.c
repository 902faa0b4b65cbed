/* From a loss to the next parameters, with optimizers made for these tests. */
#include "tests/unit/run/rig.h"

#include <string.h>

#include "core/step/graphs/training_graph.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

/* ---- optimizers ---- */

typedef struct step_options {
  double rate, keep;
} step_options;

static const tn_option step_rows[] = {
    TN_OPT_WITH(step_options, rate, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.5", ">= 0", "how far to go"),
    TN_OPT(step_options, keep, TN_OPT_FLOAT, "0", "[0, 1)", "share of the last step"), TN_OPT_END};

/* p - rate * g, and with `keep` a state that holds the gradient. */
static tn_status take_step(tn_build *b, const void *given) {
  const step_options *o = given;
  tn_val param = tn_build_in(b, 0), gradient = tn_build_in(b, 1);
  if (o->keep > 0) {
    tn_val kept = tn_build_state(b, "kept", tn_val_type(b, param), "zeros");
    gradient = tn_add(b, gradient, tn_affine(b, kept, o->keep, 0));
    tn_build_commit(b, kept, gradient);
  }
  tn_build_yield(b, 0, tn_sub(b, param, tn_mul(b, gradient, tn_build_option_value(b, "rate"))));
  return TN_OK;
}

static tn_status yield_nothing(tn_build *b, const void *options) {
  (void)b, (void)options;
  return TN_OK;
}

static tn_status ask_for_a_constant(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_mul(b, tn_build_in(b, 0), tn_build_option_value(b, "keep")));
  return TN_OK;
}

static tn_status start_with_ones(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(
      b, 0,
      tn_add(b, tn_build_in(b, 0), tn_build_state(b, "kept", tn_val_type(b, tn_build_in(b, 0)), "ones")));
  return TN_OK;
}

static tn_status keep_one_element(tn_build *b, const void *options) {
  const tn_type one = {TN_F32, 1, {1}};
  (void)options;
  tn_build_yield(b, 0, tn_add(b, tn_build_in(b, 0), tn_build_state(b, "kept", &one, "zeros")));
  return TN_OK;
}

#define OPTIMIZER(id, how, function)                                                                         \
  static const tn_optimizer id = {                                                                           \
      .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, #id, "made up", step_options, step_rows),                  \
      .granularity = how,                                                                                    \
      .update = function}
OPTIMIZER(flat, TN_UPDATE_ELEMENTWISE, take_step);
OPTIMIZER(each, TN_UPDATE_PER_PARAMETER, take_step);
OPTIMIZER(lazy, TN_UPDATE_ELEMENTWISE, yield_nothing);
OPTIMIZER(curious, TN_UPDATE_ELEMENTWISE, ask_for_a_constant);
OPTIMIZER(eager, TN_UPDATE_ELEMENTWISE, start_with_ones);
OPTIMIZER(narrow, TN_UPDATE_ELEMENTWISE, keep_one_element);
static const tn_optimizer_state counted_states[] = {{"count", .scalar = 1}, {NULL}};
static const tn_optimizer counted = {
    .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, "counted", "made up", step_options, step_rows),
    .states = counted_states,
    .formula = "next_count = count + updates; next_param = param - rate * next_count"};

/* ---- an update in the making ---- */

static tn_arena arena;
static tn_model model;
static tn_state_map *map;
static tn_update_info info;
static const step_options half = {0.5, 0}, tenth = {0.1, 0}, keeping = {0.5, 0.9};

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

static tn_status emit(const tn_settings *settings, const char *before) {
  model.graph = rig_parse(before);
  tn_training_graph t = {
      .env = &R.env, .arena = &arena, .settings = settings, .seed = 7, .model = &model, .map = map};
  tn_status status = tn_gradients_emit(&t);
  if (status == TN_OK) status = tn_training_precision(&t);
  return status == TN_OK ? tn_update_emit(&t, &info) : status;
}

static tn_settings with(const tn_optimizer *kind, const step_options *options) {
  return (tn_settings){.model_where = "net.ini:1", .optimizer_kind = kind, .optimizer_options = options};
}

static void expect(const tn_settings *settings, const char *before, const char *after) {
  rig_expect_ok(emit(settings, before));
  rig_expect_text(model.graph, after);
}

static void expect_place(const char *path, const char *region, int64_t offset) {
  const tn_placement *place = tn_state_map_find(map, path);
  assert_non_null(place);
  assert_string_equal(map->regions.v[place->region].name, region);
  assert_int_equal(place->offset, offset);
}

/* y = (x a) b, so b's gradient is ready before a's. */
#define TWO_LAYERS                                                                                           \
  "x: f32[2, 3] = input(name=x)\n"                                                                           \
  "a: f32[3, 4] = state(path=a)\n"                                                                           \
  "b: f32[4, 1] = state(path=b)\n"                                                                           \
  "%4: f32[2, 4] = matmul(x, a)\n"                                                                           \
  "%5: f32[2, 1] = matmul(%4, b)\n"                                                                          \
  "%6: f32[] = reduce_sum(%5)\n"                                                                             \
  "output loss = %6\n"

/* The smallest model: the loss is the sum of a parameter times the input. */
#define ONE_PARAMETER                                                                                        \
  "x: f32[3] = input(name=x)\n"                                                                              \
  "w: f32[3] = state(path=w)\n"                                                                              \
  "%3: f32[3] = mul(x, w)\n"                                                                                 \
  "%4: f32[] = reduce_sum(%3)\n"                                                                             \
  "output loss = %4\n"

/* ---- cases ---- */

static void the_whole_update_of_one_parameter(void **state) {
  (void)state;
  const tn_settings s = with(&flat, &half);
  expect(&s, ONE_PARAMETER,
         "x: f32[3] = input(name=x)\n"
         "w: f32[3] = state(path=w)\n"
         "%3: f32[3] = mul(x, w)\n"
         "%4: f32[] = reduce_sum(%3)\n"
         "%5: f32[] = full(value=1)\n"
         "%6: f32[1] = reshape(%5, dims=[1])\n"
         "%7: f32[3] = broadcast(%6, dims=[3])\n"
         "%8: f32[3] = mul(%7, x)\n"
         "%9: f32[16] = pack(%8, offsets=[0], count=16, region=param.f32)\n"
         "@param.f32: f32[16] = state(path=@param.f32)\n"
         "control.rate: f32[] = input(name=control.rate)\n"
         "%12: f32[16] = mul(%9, control.rate)\n"
         "%13: f32[16] = sub(@param.f32, %12)\n"
         "run.updates: i64[] = state(path=run.updates, what=host, init=zeros)\n"
         "%15: i64[] = full(value=1, dtype=i64)\n"
         "%16: i64[] = add(run.updates, %15)\n"
         "commit @param.f32 = %13\n"
         "commit run.updates = %16\n"
         "output loss = %4\n");
  assert_int_equal(info.n_groups, 1);
  assert_int_equal(info.n_scheduled, 1);
  assert_string_equal(info.scheduled[0].name, "rate");
  assert_true(info.scheduled[0].values[0] == 0.5);
}

static void parameters_lie_in_the_order_in_which_gradients_become_ready(void **state) {
  (void)state;
  const tn_settings s = with(&flat, &half);
  rig_expect_ok(emit(&s, TWO_LAYERS));
  rig_expect_ok(tn_graph_verify(model.graph));
  expect_place("b", "param.f32", 0);
  expect_place("a", "param.f32", 16);
}

static void optimizer_state_has_the_offsets_of_its_parameters(void **state) {
  (void)state;
  const tn_settings s = with(&flat, &keeping);
  rig_expect_ok(emit(&s, TWO_LAYERS));
  rig_expect_ok(tn_graph_verify(model.graph));
  expect_place("b.kept", "kept.f32", 0);
  expect_place("a.kept", "kept.f32", 16);
  assert_int_equal(tn_state_map_find(map, "a.kept")->what, TN_STATE_OPTIMIZER);
  assert_int_equal(tn_state_map_find(map, "@kept.f32")->type.dims[0],
                   tn_state_map_find(map, "@param.f32")->type.dims[0]);
}

/* Each number to -2 .. 2, then the norm of these; updates are skipped where a gradient is not finite. */
static void clipping_by_value_comes_before_the_norm(void **state) {
  (void)state;
  tn_settings s = with(&flat, &half);
  s.optimizer.clip_value = 2;
  s.optimizer.clip = 3;
  rig_expect_ok(emit(&s, ONE_PARAMETER));
  tn_text printed = tn_text_new(&R.env);
  rig_expect_ok(tn_graph_print(model.graph, &printed));
  const char *clipped = strstr(printed.v, "%9: f32[16] = pack(%8, offsets=[0], count=16, region=param.f32)\n"
                                          "%10: bool[] = all_finite(%9)\n"
                                          "%11: bool[] = not(%10)\n"
                                          "%12: f32[] = cast(%11, to=f32)\n"
                                          "%13: f32[] = full(value=-2)\n"
                                          "%14: f32[16] = maximum(%9, %13)\n"
                                          "%15: f32[] = full(value=2)\n"
                                          "%16: f32[16] = minimum(%14, %15)\n"
                                          "%17: f32[16] = mul(%16, %16)\n");
  if (clipped == NULL) fail_msg("%s", printed.v);
  tn_text_free(&printed);
}

static void clipping_scales_the_packed_gradient(void **state) {
  (void)state;
  tn_settings s = with(&flat, &half);
  s.optimizer.clip = 2;
  expect(&s, ONE_PARAMETER,
         "x: f32[3] = input(name=x)\n"
         "w: f32[3] = state(path=w)\n"
         "%3: f32[3] = mul(x, w)\n"
         "%4: f32[] = reduce_sum(%3)\n"
         "%5: f32[] = full(value=1)\n"
         "%6: f32[1] = reshape(%5, dims=[1])\n"
         "%7: f32[3] = broadcast(%6, dims=[3])\n"
         "%8: f32[3] = mul(%7, x)\n"
         "%9: f32[16] = pack(%8, offsets=[0], count=16, region=param.f32)\n"
         "%10: bool[] = all_finite(%9)\n"
         "%11: bool[] = not(%10)\n"
         "%12: f32[] = cast(%11, to=f32)\n"
         "%13: f32[16] = mul(%9, %9)\n"
         "%14: f32[] = reduce_sum(%13)\n"
         "%15: f32[] = sqrt(%14)\n"
         "%16: f32[] = affine(%15, shift=1e-06)\n"
         "%17: f32[] = full(value=2)\n"
         "%18: f32[] = div(%17, %16)\n"
         "%19: f32[] = full(value=1)\n"
         "%20: f32[] = minimum(%18, %19)\n"
         "%21: f32[16] = mul(%9, %20)\n"
         "@param.f32: f32[16] = state(path=@param.f32)\n"
         "control.rate: f32[] = input(name=control.rate)\n"
         "%24: f32[16] = mul(%21, control.rate)\n"
         "%25: f32[16] = sub(@param.f32, %24)\n"
         "run.updates: i64[] = state(path=run.updates, what=host, init=zeros)\n"
         "%27: i64[] = full(value=1, dtype=i64)\n"
         "%28: i64[] = add(run.updates, %27)\n"
         "commit @param.f32 = %25 if %10\n"
         "commit run.updates = %28 if %10\n"
         "output loss = %4\n"
         "output skipped = %12\n"
         "output grad_norm = %15\n");
}

static tn_group_setting group(const char *name, const char *match, const step_options *options) {
  tn_group_setting g = {.name = name, .match = match, .options = options, .where = "net.ini:9"};
  rig_expect_ok(tn_words_split(&arena, match, &g.patterns));
  return g;
}

static void a_group_spreads_its_options_over_its_range(void **state) {
  (void)state;
  tn_group_setting groups[] = {group("head", "b", &tenth)};
  tn_settings s = with(&flat, &half);
  s.groups = groups;
  s.n_groups = 1;
  expect(&s, TWO_LAYERS,
         "x: f32[2, 3] = input(name=x)\n"
         "a: f32[3, 4] = state(path=a)\n"
         "b: f32[4, 1] = state(path=b)\n"
         "%4: f32[2, 4] = matmul(x, a)\n"
         "%5: f32[2, 1] = matmul(%4, b)\n"
         "%6: f32[] = reduce_sum(%5)\n"
         "%7: f32[] = full(value=1)\n"
         "%8: f32[1, 1] = reshape(%7, dims=[1, 1])\n"
         "%9: f32[2, 1] = broadcast(%8, dims=[2, 1])\n"
         "%10: f32[2, 4] = matmul(%9, b, transpose_b=yes)\n"
         "%11: f32[4, 1] = matmul(%4, %9, transpose_a=yes)\n"
         "%12: f32[3, 4] = matmul(x, %10, transpose_a=yes)\n"
         "%13: f32[32] = pack(%11, %12, offsets=[0, 16], count=32, region=param.f32)\n"
         "@param.f32: f32[32] = state(path=@param.f32)\n"
         "control.rate: f32[2] = input(name=control.rate)\n"
         "%16: f32[32] = spread(control.rate, starts=[0, 16], index=[1, 0], count=32)\n"
         "%17: f32[32] = mul(%13, %16)\n"
         "%18: f32[32] = sub(@param.f32, %17)\n"
         "run.updates: i64[] = state(path=run.updates, what=host, init=zeros)\n"
         "%20: i64[] = full(value=1, dtype=i64)\n"
         "%21: i64[] = add(run.updates, %20)\n"
         "commit @param.f32 = %18\n"
         "commit run.updates = %21\n"
         "output loss = %6\n");
  assert_int_equal(info.n_groups, 2);
  assert_true(info.scheduled[0].values[0] == 0.5 && info.scheduled[0].values[1] == 0.1);
}

static void the_first_group_that_matches_wins(void **state) {
  (void)state;
  tn_group_setting groups[] = {group("head", "b", &tenth), group("all", "a, b", &half)};
  tn_settings s = with(&each, &half);
  s.groups = groups;
  s.n_groups = 2;
  rig_expect_ok(emit(&s, TWO_LAYERS));
  rig_expect_ok(tn_graph_verify(model.graph));
  assert_int_equal(info.n_groups, 3);
}

static void a_group_without_a_match_is_an_error(void **state) {
  (void)state;
  tn_group_setting groups[] = {group("tail", "c*", &tenth)};
  tn_settings s = with(&flat, &half);
  s.groups = groups;
  s.n_groups = 1;
  rig_expect_error(emit(&s, TWO_LAYERS), TN_EINVAL,
                   "net.ini:9: [group.tail] match: 'c*' matches no parameter that the loss depends on");
}

static void a_group_with_parameters_of_earlier_groups_alone_is_an_error(void **state) {
  (void)state;
  tn_group_setting groups[] = {group("all", "*", &half), group("head", "b", &tenth)};
  tn_settings s = with(&flat, &half);
  s.groups = groups;
  s.n_groups = 2;
  rig_expect_error(
      emit(&s, TWO_LAYERS), TN_EINVAL,
      "[group.head] match: 'b' matches no parameter that the loss depends on, or only parameters of "
      "earlier groups");
}

static void an_optimizer_may_see_every_parameter_with_its_shape(void **state) {
  (void)state;
  const tn_settings s = with(&each, &keeping);
  expect(&s, ONE_PARAMETER,
         "x: f32[3] = input(name=x)\n"
         "w: f32[3] = state(path=w)\n"
         "%3: f32[3] = mul(x, w)\n"
         "%4: f32[] = reduce_sum(%3)\n"
         "%5: f32[] = full(value=1)\n"
         "%6: f32[1] = reshape(%5, dims=[1])\n"
         "%7: f32[3] = broadcast(%6, dims=[3])\n"
         "%8: f32[3] = mul(%7, x)\n"
         "%9: f32[16] = pack(%8, offsets=[0], count=16)\n"
         "%10: f32[3] = slice(%9, starts=[0], stops=[3])\n"
         "%11: f32[3] = reshape(%10, dims=[3])\n"
         "w.kept: f32[3] = state(path=w.kept, what=slot, init=zeros)\n"
         "%13: f32[3] = affine(w.kept, scale=0.9) in w\n"
         "%14: f32[3] = add(%11, %13) in w\n"
         "control.rate: f32[] = input(name=control.rate)\n"
         "%16: f32[3] = mul(%14, control.rate) in w\n"
         "%17: f32[3] = sub(w, %16) in w\n"
         "run.updates: i64[] = state(path=run.updates, what=host, init=zeros)\n"
         "%19: i64[] = full(value=1, dtype=i64)\n"
         "%20: i64[] = add(run.updates, %19)\n"
         "commit w.kept = %14\n"
         "commit w = %17\n"
         "commit run.updates = %20\n"
         "output loss = %4\n");
}

static void a_group_of_one_parameter_has_its_own_scalar(void **state) {
  (void)state;
  tn_group_setting groups[] = {group("only", "w", &tenth)};
  tn_settings s = with(&each, &half);
  s.groups = groups;
  s.n_groups = 1;
  expect(&s, ONE_PARAMETER,
         "x: f32[3] = input(name=x)\n"
         "w: f32[3] = state(path=w)\n"
         "%3: f32[3] = mul(x, w)\n"
         "%4: f32[] = reduce_sum(%3)\n"
         "%5: f32[] = full(value=1)\n"
         "%6: f32[1] = reshape(%5, dims=[1])\n"
         "%7: f32[3] = broadcast(%6, dims=[3])\n"
         "%8: f32[3] = mul(%7, x)\n"
         "%9: f32[16] = pack(%8, offsets=[0], count=16)\n"
         "%10: f32[3] = slice(%9, starts=[0], stops=[3])\n"
         "%11: f32[3] = reshape(%10, dims=[3])\n"
         "control.rate: f32[2] = input(name=control.rate)\n"
         "%13: f32[1] = slice(control.rate, starts=[1], stops=[2]) in w\n"
         "%14: f32[] = reshape(%13, dims=[]) in w\n"
         "%15: f32[3] = mul(%11, %14) in w\n"
         "%16: f32[3] = sub(w, %15) in w\n"
         "run.updates: i64[] = state(path=run.updates, what=host, init=zeros)\n"
         "%18: i64[] = full(value=1, dtype=i64)\n"
         "%19: i64[] = add(run.updates, %18)\n"
         "commit w = %16\n"
         "commit run.updates = %19\n"
         "output loss = %4\n");
}

static void a_tied_parameter_is_trained_once_with_both_gradients(void **state) {
  (void)state;
  const tn_settings s = with(&flat, &half);
  expect(&s,
         "x: f32[3] = input(name=x)\n"
         "w: f32[3] = state(path=w)\n"
         "%3: f32[3] = mul(x, w)\n"
         "%4: f32[3] = mul(%3, w)\n"
         "%5: f32[] = reduce_sum(%4)\n"
         "output loss = %5\n",
         "x: f32[3] = input(name=x)\n"
         "w: f32[3] = state(path=w)\n"
         "%3: f32[3] = mul(x, w)\n"
         "%4: f32[3] = mul(%3, w)\n"
         "%5: f32[] = reduce_sum(%4)\n"
         "%6: f32[] = full(value=1)\n"
         "%7: f32[1] = reshape(%6, dims=[1])\n"
         "%8: f32[3] = broadcast(%7, dims=[3])\n"
         "%9: f32[3] = mul(%8, w)\n"
         "%10: f32[3] = mul(%8, %3)\n"
         "%11: f32[3] = mul(%9, x)\n"
         "%12: f32[3] = add(%10, %11)\n"
         "%13: f32[16] = pack(%12, offsets=[0], count=16, region=param.f32)\n"
         "@param.f32: f32[16] = state(path=@param.f32)\n"
         "control.rate: f32[] = input(name=control.rate)\n"
         "%16: f32[16] = mul(%13, control.rate)\n"
         "%17: f32[16] = sub(@param.f32, %16)\n"
         "run.updates: i64[] = state(path=run.updates, what=host, init=zeros)\n"
         "%19: i64[] = full(value=1, dtype=i64)\n"
         "%20: i64[] = add(run.updates, %19)\n"
         "commit @param.f32 = %17\n"
         "commit run.updates = %20\n"
         "output loss = %5\n");
}

static void a_parameter_without_a_gradient_is_not_trained(void **state) {
  (void)state;
  const tn_settings s = with(&flat, &half);
  rig_expect_ok(emit(&s, "x: f32[3] = input(name=x)\n"
                         "v: f32[5] = state(path=v)\n"
                         "w: f32[3] = state(path=w)\n"
                         "%4: f32[3] = mul(x, w)\n"
                         "%5: f32[] = reduce_sum(%4)\n"
                         "output loss = %5\n"
                         "output unused = v\n"));
  rig_expect_ok(tn_graph_verify(model.graph));
  expect_place("w", "param.f32", 0);
  assert_null(tn_state_map_find(map, "v"));
  rig_expect_ok(tn_state_map_add_rest(map, model.graph));
  expect_place("v", "state.f32", 0);
}

static void a_loss_without_parameters_cannot_be_trained(void **state) {
  (void)state;
  const tn_settings s = with(&flat, &half);
  rig_expect_error(emit(&s, "x: f32[3] = input(name=x)\n"
                            "%2: f32[] = reduce_sum(x)\n"
                            "output loss = %2\n"),
                   TN_EINVAL, "net.ini:1: the loss depends on no parameter");
}

static void a_model_without_a_loss_cannot_be_trained(void **state) {
  (void)state;
  const tn_settings s = with(&flat, &half);
  rig_expect_error(emit(&s, "x: f32[3] = input(name=x)\n"), TN_EINVAL, "net.ini:1: [model] has no `loss`");
}

static void a_parameter_of_another_type_is_refused(void **state) {
  (void)state;
  const tn_settings s = with(&flat, &half);
  rig_expect_error(emit(&s, "w: f16[3] = state(path=w)\n"
                            "%2: f16[] = reduce_sum(w)\n"
                            "output loss = %2\n"),
                   TN_EINVAL, "parameter 'w' is f16, expected f32");
}

/* ---- optimizers that do it wrong ---- */

static void expect_refusal(const tn_optimizer *kind, const char *message) {
  const tn_settings s = with(kind, &half);
  rig_expect_error(emit(&s, ONE_PARAMETER), TN_EINVAL, message);
}

static void an_optimizer_must_yield_the_parameter(void **state) {
  (void)state;
  expect_refusal(&lazy, "optimizer 'lazy' yielded no parameter");
}

static void only_scheduled_options_have_values_in_the_graph(void **state) {
  (void)state;
  expect_refusal(&curious, "asks for the option 'keep', which it does not mark TN_OPT_SCHEDULED");
}

static void flat_state_starts_with_zeros(void **state) {
  (void)state;
  expect_refusal(&eager, "state 'kept' is initialized with ones, expected zeros");
}

static void flat_state_has_the_length_of_the_parameters(void **state) {
  (void)state;
  expect_refusal(&narrow, "state 'kept' is neither of the parameter's type nor a scalar");
}

static void a_scalar_state_is_one_number_for_all_parameters(void **state) {
  (void)state;
  const tn_settings s = with(&counted, &half);
  assert_int_equal(emit(&s, ONE_PARAMETER), TN_OK);
  const tn_graph *g = model.graph;
  bool found = false;
  for (size_t i = 0; i < g->commits.n; i++)
    if (strcmp(g->commits.v[i].path, "optimizer.count") == 0)
      found = tn_graph_type(g, g->commits.v[i].value)->rank == 0;
  assert_true(found);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(the_whole_update_of_one_parameter),
      CASE(parameters_lie_in_the_order_in_which_gradients_become_ready),
      CASE(optimizer_state_has_the_offsets_of_its_parameters),
      CASE(clipping_by_value_comes_before_the_norm),
      CASE(clipping_scales_the_packed_gradient),
      CASE(a_group_spreads_its_options_over_its_range),
      CASE(the_first_group_that_matches_wins),
      CASE(a_group_without_a_match_is_an_error),
      CASE(a_group_with_parameters_of_earlier_groups_alone_is_an_error),
      CASE(an_optimizer_may_see_every_parameter_with_its_shape),
      CASE(a_group_of_one_parameter_has_its_own_scalar),
      CASE(a_tied_parameter_is_trained_once_with_both_gradients),
      CASE(a_parameter_without_a_gradient_is_not_trained),
      CASE(a_loss_without_parameters_cannot_be_trained),
      CASE(a_model_without_a_loss_cannot_be_trained),
      CASE(a_parameter_of_another_type_is_refused),
      CASE(an_optimizer_must_yield_the_parameter),
      CASE(only_scheduled_options_have_values_in_the_graph),
      CASE(flat_state_starts_with_zeros),
      CASE(flat_state_has_the_length_of_the_parameters),
      CASE(a_scalar_state_is_one_number_for_all_parameters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
