/* tests/unit/model/rig.c: see rig.h. */
#include "tests/unit/model/rig.h"

#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/plugin/handles.h"
#include "tenon/plugin/layer.h"

static struct {
  tn_env env;
  tn_error_record record;
  int64_t blocks;
  tn_registry *registry;
  struct tn_op_table *ops;
  tn_ini ini;
  tn_model model;
  bool built;
} R;

/* ---- layers ---- */

typedef struct scale_options {
  double by;
} scale_options;
static const tn_option scale_rows[] = {TN_OPT(scale_options, by, TN_OPT_FLOAT, "1", ">= 0", "factor"),
                                       TN_OPT_END};

static tn_status build_scale(tn_build *b, const void *options) {
  tn_type type = {TN_F32, 1, {tn_val_dim(b, tn_build_in(b, 0), -1)}};
  tn_val y = tn_mul(b, tn_build_in(b, 0), tn_build_param(b, "gain", &type, "ones"));
  double by = ((const scale_options *)options)->by;
  tn_build_yield(b, 0, by == 1 ? y : tn_affine(b, y, by, 0));
  return TN_OK;
}
static const tn_layer_kind scale = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "scale", "x * gain", scale_options, scale_rows),
    .min_in = 1,
    .max_in = 1,
    .build = build_scale};

static tn_status build_twice(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_affine(b, tn_build_in(b, 0), 1, 1));
  tn_build_yield(b, 1, tn_affine(b, tn_build_in(b, 0), 1, 2));
  return TN_OK;
}
static const tn_layer_kind twice = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "twice", "x + 1, x + 2"),
                                    .min_in = 1,
                                    .max_in = 1,
                                    .build = build_twice};

static tn_status build_sum(tn_build *b, const void *options) {
  (void)options;
  tn_val sum = tn_build_in(b, 0);
  for (int32_t i = 1; i < tn_build_n_in(b); i++) sum = tn_add(b, sum, tn_build_in(b, i));
  tn_build_yield(b, 0, sum);
  return TN_OK;
}
static const tn_layer_kind sum = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "sum", "all inputs"),
                                  .min_in = 1,
                                  .max_in = -1,
                                  .build = build_sum};

static tn_status build_pair(tn_build *b, const void *options) {
  (void)options;
  tn_val x = tn_build_in(b, 0), first = tn_build_layer(b, "first", "scale", &x, 1);
  tn_build_yield(b, 0, tn_build_layer(b, "second", "scale(by=2)", &first, 1));
  return TN_OK;
}
static const tn_layer_kind pair = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "pair", "two of scale"),
                                   .min_in = 1,
                                   .max_in = 1,
                                   .build = build_pair};

static tn_status build_cross(tn_build *b, const void *options) {
  (void)options;
  tn_val x = tn_build_in(b, 0), both = tn_build_layer(b, "both", "twice", &x, 1);
  tn_build_yield(b, 0, tn_op_result(b, both, 1));
  return TN_OK;
}
static const tn_layer_kind cross = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "cross", "x + 2"),
                                    .min_in = 1,
                                    .max_in = 1,
                                    .build = build_cross};

static tn_status build_gap(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_sub(b, tn_build_in(b, 0), tn_build_in(b, 1)));
  tn_build_yield(b, 1, tn_full(b, tn_val_type(b, tn_build_in(b, 1)), 2));
  return TN_OK;
}
static const tn_layer_kind gap = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "gap", "x - target"),
                                  .role = TN_LAYER_LOSS,
                                  .min_in = 2,
                                  .max_in = 2,
                                  .build = build_gap};

static tn_status build_hits(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_to_dtype(b, tn_eq(b, tn_build_in(b, 0), tn_build_in(b, 1)), TN_F32));
  return TN_OK;
}
static const tn_layer_kind hits = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "hits", "x == target"),
                                   .role = TN_LAYER_METRIC,
                                   .min_in = 2,
                                   .max_in = 2,
                                   .build = build_hits};

static tn_status build_broken(tn_build *b, const void *options) {
  (void)b, (void)options;
  return TN_OK;
}
static const tn_layer_kind broken = {.item =
                                         TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "broken", "yields nothing"),
                                     .min_in = 1,
                                     .max_in = 1,
                                     .build = build_broken};

static tn_status build_own(tn_build *b, const void *options) {
  (void)options;
  const tn_type type = {TN_F32, 1, {3}};
  tn_build_yield(b, 0, tn_build_param(b, "", &type, "ones"));
  return TN_OK;
}
static const tn_layer_kind own = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "own", "a parameter"),
                                  .build = build_own};

TN_PLUGIN(rig, "1", "MIT", &scale.item, &twice.item, &sum.item, &pair.item, &cross.item, &gap.item,
          &hits.item, &broken.item, &own.item)

/* ---- building ---- */

static void *counted(void *context, void *block, size_t bytes) {
  (void)context;
  if (bytes == 0) {
    R.blocks -= block != NULL;
    free(block);
    return NULL;
  }
  void *grown = realloc(block, bytes);
  R.blocks += block == NULL && grown != NULL;
  return grown;
}

static void expect_ok(tn_status status) {
  if (status != TN_OK) fail_msg("%d: %s", status, tn_error_text(&R.env));
}

int rig_open(void **state) {
  (void)state;
  memset(&R, 0, sizeof R);
  tn_error_record_init_root(&R.env, &R.record, &tn_host_api);
  R.record.allocator = (tn_allocator){&R, counted};
  expect_ok(tn_registry_create(&R.env, "", &R.registry));
  expect_ok(tn_registry_add(R.registry, &R.env, tn_core_ops(), ""));
  expect_ok(tn_registry_add(R.registry, &R.env, tn_static_rig(), ""));
  expect_ok(tn_op_table_create(&R.env, R.registry, &R.ops));
  return 0;
}

static void drop(void) {
  if (R.built) tn_model_free(&R.model);
  R.built = false;
  tn_ini_free(&R.ini);
}

int rig_close(void **state) {
  (void)state;
  drop();
  tn_op_table_destroy(R.ops);
  tn_registry_destroy(R.registry);
  assert_int_equal(R.blocks, 0);
  return 0;
}

static tn_status build(const char *text, bool measured) {
  drop();
  expect_ok(tn_ini_parse(&R.env, text, "m.ini", ".", &R.ini));
  tn_model_request request = {.ini = &R.ini,
                              .registry = R.registry,
                              .ops = R.ops,
                              .batch = 2,
                              .training = measured,
                              .measured = measured};
  tn_status status = tn_model_build(&R.env, &request, &R.model);
  R.built = status == TN_OK;
  if (R.built) expect_ok(tn_graph_verify(R.model.graph));
  return status;
}

const tn_graph *rig_build(const char *ini) {
  expect_ok(build(ini, false));
  return R.model.graph;
}

const tn_model *rig_build_measured(const char *ini) {
  expect_ok(build(ini, true));
  return &R.model;
}

/* Compares the statements of a graph without inputs and states. */
static void expect_statements(const tn_graph *graph, const char *text) {
  tn_text all = tn_text_new(&R.env), kept = tn_text_new(&R.env);
  expect_ok(tn_graph_print(graph, &all));
  tn_text_add(&kept, "");
  for (char *rest = all.v, *line; (line = strsep(&rest, "\n"));) {
    bool skipped = !*line || strstr(line, "= input(") || strstr(line, "= state(");
    if (!skipped) tn_text_addf(&kept, "%s\n", line);
  }
  assert_string_equal(kept.v, text);
  tn_text_free(&all);
  tn_text_free(&kept);
}

void rig_expect_graph(const char *ini, const char *text) { expect_statements(rig_build(ini), text); }

void rig_expect_measured(const char *ini, const char *text) {
  expect_statements(rig_build_measured(ini)->graph, text);
}

static tn_status emit_initializer(const char *init, const tn_type *type, tn_graph **graph) {
  tn_builder *builder = NULL;
  expect_ok(tn_graph_create(&R.env, R.ops, graph));
  expect_ok(tn_builder_create(*graph, &builder));
  tn_build *b = tn_builder_handle(builder);
  tn_val value = tn_initializer_emit(b, init, type, 1);
  tn_status status = tn_build_status(b);
  if (status == TN_OK) expect_ok(tn_graph_output(*graph, "value", value));
  tn_builder_destroy(builder);
  return status;
}

void rig_expect_initializer(const char *init, const tn_type *type, const char *text) {
  tn_graph *graph = NULL;
  expect_ok(emit_initializer(init, type, &graph));
  expect_statements(graph, text);
  tn_graph_destroy(graph);
}

void rig_expect_initializer_error(const char *init, const char *text) {
  const tn_type type = {TN_F32, 2, {2, 3}};
  tn_graph *graph = NULL;
  tn_status status = emit_initializer(init, &type, &graph);
  tn_graph_destroy(graph);
  assert_int_equal(status, TN_EINVAL);
  assert_string_equal(tn_error_text(&R.env), text);
}

void rig_expect_states(const char *ini, const char *paths) {
  const tn_graph *graph = rig_build(ini);
  tn_text text = tn_text_new(&R.env);
  for (size_t i = 0; i < graph->states.n; i++)
    tn_text_addf(&text, "%s%s", i > 0 ? " " : "", graph->states.v[i].path);
  assert_string_equal(text.v ? text.v : "", paths);
  tn_text_free(&text);
}

void rig_expect_failure(tn_status want, const char *ini, const char *text) {
  tn_status status = build(ini, true);
  if (status == TN_OK) fail_msg("expected an error: %s", text);
  assert_int_equal(status, want);
  assert_string_equal(tn_error_text(&R.env), text);
}

void rig_expect_error(const char *ini, const char *text) { rig_expect_failure(TN_EINVAL, ini, text); }
