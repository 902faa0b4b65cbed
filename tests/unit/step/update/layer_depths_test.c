/* [optimizer] layer_decay: the learning rates of layers, against those that timm gives its models
 * (tests/golden/make_optimizers.py), and no_decay. */
#include "tests/unit/run/rig.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/step/graphs/training_graph.h"
#include "tenon/ops.h"

typedef struct plain_options {
  double lr, weight_decay;
} plain_options;

static const tn_option plain_rows[] = {
    TN_OPT_WITH(plain_options, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "1", ">= 0", "rate"),
    TN_OPT_WITH(plain_options, weight_decay, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0", ">= 0", "decay"),
    TN_OPT_END};
static const tn_optimizer plain = {
    .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, "plain", "made up", plain_options, plain_rows),
    .formula = "next_param = param - lr * (grad + weight_decay * param)"};
static const plain_options options = {1, 0.5};

static tn_arena arena;
static tn_model model;
static tn_state_map *map;
static tn_update_info info;
static tn_training_graph training;

static int set_up(void **state) {
  rig_open(state);
  arena = tn_arena_new(&R.env);
  rig_expect_ok(tn_state_map_create(&R.env, &map));
  rig_expect_ok(tn_graph_create(&R.env, R.ops, &model.graph));
  return 0;
}

static int tear_down(void **state) {
  tn_graph_destroy(model.graph);
  memset(&model, 0, sizeof model);
  tn_state_map_destroy(map);
  tn_arena_free(&arena);
  return rig_close(state);
}

/* The loss is the sum of all parameters. */
static void add_parameters(int32_t n, const char *const *paths, int32_t rank) {
  const tn_type type = {TN_F32, rank, {2, 2}};
  tn_builder *builder = NULL;
  rig_expect_ok(tn_builder_create(model.graph, &builder));
  tn_build *b = tn_builder_handle(builder);
  tn_val loss = tn_scalar(b, TN_F32, 0);
  for (int32_t i = 0; i < n; i++) {
    tn_val value = tn_graph_state(model.graph, paths[i], &type, TN_STATE_PARAM, "zeros", "");
    assert_true(value != 0);
    loss = tn_add(b, loss, tn_reduce_sum(b, value, 0, NULL, 0));
  }
  rig_expect_ok(tn_build_status(b));
  rig_expect_ok(tn_graph_output(model.graph, "loss", loss));
  tn_builder_destroy(builder);
}

static tn_status emit(const tn_settings *settings) {
  training = (tn_training_graph){
      .env = &R.env, .arena = &arena, .settings = settings, .seed = 7, .model = &model, .map = map};
  rig_expect_ok(tn_gradients_emit(&training));
  return tn_update_emit(&training, &info);
}

/* The value of an option for a parameter. */
static double value_of(const char *path, const char *name) {
  int32_t option = 0, param = 0;
  while (option < info.n_scheduled && strcmp(info.scheduled[option].name, name) != 0) option++;
  while (param < training.n_params && strcmp(training.params[param].state->path, path) != 0) param++;
  assert_true(option < info.n_scheduled && param < training.n_params);
  return info.scheduled[option].values[training.params[param].group];
}

static tn_settings with_decay(double layer_decay) {
  tn_settings s = {
      .model_where = "net.ini:1", .optimizer_kind = &plain, .optimizer_options = (const void *)&options};
  s.optimizer.layer_decay = layer_decay;
  return s;
}

static void expect_golden(const char *name) {
  json_t *all = json_load_file(LAYERS, 0, NULL), *factors = json_object_get(all, name), *factor;
  const char *path, *paths[128];
  int32_t n = 0;
  assert_non_null(factors);
  json_object_foreach(factors, path, factor) {
    assert_true(n < 128);
    paths[n++] = path;
  }
  add_parameters(n, paths, 2);
  const tn_settings s = with_decay(0.75);
  rig_expect_ok(emit(&s));
  json_object_foreach(factors, path, factor) {
    double got = value_of(path, "lr"), want = json_number_value(factor);
    if (fabs(got - want) > 1e-15) fail_msg("%s: %g, expected %g", path, got, want);
  }
  json_decref(all);
}

static void layers_of_a_transformer_are_those_of_timm(void **state) {
  (void)state;
  expect_golden("vit");
}

static void layers_of_a_residual_network_are_those_of_timm(void **state) {
  (void)state;
  expect_golden("resnet");
}

static void layers_without_numbers_have_the_order_of_the_model(void **state) {
  static const char *const paths[] = {"conv1.weight", "conv1.bias", "conv2.weight", "head.weight"};
  (void)state;
  add_parameters(4, paths, 1);
  const tn_settings s = with_decay(0.5);
  rig_expect_ok(emit(&s));
  assert_true(value_of("conv1.weight", "lr") == 0.25 && value_of("conv1.bias", "lr") == 0.25);
  assert_true(value_of("conv2.weight", "lr") == 0.5 && value_of("head.weight", "lr") == 1);
  assert_int_equal(info.n_groups, 3); /* the one of [optimizer] is that of the head */
}

/* The names of torchvision's. */
static void a_part_may_end_in_the_number(void **state) {
  static const char *const paths[] = {"conv_proj.weight", "encoder.layers.encoder_layer_0.mlp.0.weight",
                                      "encoder.layers.encoder_layer_1.mlp.0.weight", "encoder.ln.weight",
                                      "heads.head.weight"};
  (void)state;
  add_parameters(5, paths, 1);
  const tn_settings s = with_decay(0.5);
  rig_expect_ok(emit(&s));
  assert_true(value_of(paths[0], "lr") == 0.125 && value_of(paths[1], "lr") == 0.25);
  assert_true(value_of(paths[2], "lr") == 0.5 && value_of(paths[3], "lr") == 0.5);
  assert_true(value_of(paths[4], "lr") == 1);
}

static tn_group_setting group(const char *match) {
  static const char *pattern[1];
  pattern[0] = match;
  return (tn_group_setting){.name = "some",
                            .match = match,
                            .patterns = {pattern, 1},
                            .options = &options,
                            .lr_scale = 1,
                            .depth = TN_DEPTH_AUTO,
                            .where = "net.ini:9"};
}

static void a_group_chooses_its_depth_and_multiplies(void **state) {
  static const char *const paths[] = {"a.weight", "b.weight", "c.weight"};
  (void)state;
  add_parameters(3, paths, 1);
  tn_settings s = with_decay(0.5);
  tn_group_setting groups[] = {group("c.*")};
  groups[0].depth = 0;
  groups[0].lr_scale = 3;
  s.groups = groups;
  s.n_groups = 1;
  rig_expect_ok(emit(&s));
  assert_true(value_of("c.weight", "lr") == 0.75 && value_of("a.weight", "lr") == 0.25);
}

static void a_depth_behind_the_last_layer_is_refused(void **state) {
  static const char *const paths[] = {"a.weight", "b.weight"};
  (void)state;
  add_parameters(2, paths, 1);
  tn_settings s = with_decay(0.5);
  tn_group_setting groups[] = {group("a.*")};
  groups[0].depth = 2;
  s.groups = groups;
  s.n_groups = 1;
  rig_expect_error(emit(&s), TN_EINVAL,
                   "net.ini:9: [group.some] depth = 2, expected 0 to 1: the model has 2 layers");
}

static void vectors_without_decay_unless_their_group_has_its_own(void **state) {
  static const char *const paths[] = {"a.bias", "b.bias"};
  (void)state;
  add_parameters(2, paths, 1);
  tn_settings s = with_decay(1);
  tn_group_setting groups[] = {group("b.*")};
  groups[0].decays = true;
  s.optimizer.no_decay = true;
  s.groups = groups;
  s.n_groups = 1;
  rig_expect_ok(emit(&s));
  assert_true(value_of("a.bias", "weight_decay") == 0 && value_of("b.bias", "weight_decay") == 0.5);
  assert_true(value_of("a.bias", "lr") == 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(layers_of_a_transformer_are_those_of_timm),
      CASE(layers_of_a_residual_network_are_those_of_timm),
      CASE(layers_without_numbers_have_the_order_of_the_model),
      CASE(a_part_may_end_in_the_number),
      CASE(a_group_chooses_its_depth_and_multiplies),
      CASE(a_depth_behind_the_last_layer_is_refused),
      CASE(vectors_without_decay_unless_their_group_has_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
