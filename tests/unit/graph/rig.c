/* tests/unit/graph/rig.c: the context, and assertions that print the message. */
#include "tests/unit/graph/rig.h"
#include "core/plugin/handles.h"

static void *count_realloc(void *context, void *block, size_t bytes) {
  rig *r = context;
  if (bytes == 0) {
    r->blocks -= block != NULL;
    free(block);
    return NULL;
  }
  if (r->left == 0) return NULL;
  if (r->left > 0) r->left--;
  r->blocks += block == NULL;
  return realloc(block, bytes);
}

void rig_start(rig *r, long left) {
  memset(r, 0, sizeof *r);
  tn_error_record_init_root(&r->env, &r->record, &tn_host_api);
  r->record.allocator = (tn_allocator){r, count_realloc};
  r->left = left;
}

tn_status rig_open(rig *r) {
  TN_TRY(tn_registry_create(&r->env, "", &r->registry));
  TN_TRY(tn_registry_add(r->registry, &r->env, &rig_plugin, ""));
  TN_TRY(tn_op_table_create(&r->env, r->registry, &r->ops));
  TN_TRY(tn_graph_create(&r->env, r->ops, &r->graph));
  TN_TRY(tn_builder_create(r->graph, &r->builder));
  r->b = tn_builder_handle(r->builder);
  return TN_OK;
}

void rig_close(rig *r) {
  tn_builder_destroy(r->builder);
  tn_graph_destroy(r->graph);
  tn_op_table_destroy(r->ops);
  tn_registry_destroy(r->registry);
}

void rig_init(rig *r) {
  rig_start(r, -1);
  assert_ok(r, rig_open(r));
}

void rig_finish(rig *r) {
  rig_close(r);
  assert_int_equal(r->blocks, 0);
}

tn_type type_of(int32_t dtype, int32_t rank, const int64_t *dims) {
  tn_type type = {.dtype = dtype, .rank = rank};
  for (int32_t i = 0; i < rank; i++) type.dims[i] = dims[i];
  return type;
}

tn_type scalar_of(int32_t dtype) { return (tn_type){.dtype = dtype}; }

tn_val param(rig *r, const char *name, tn_type type) { return tn_build_param(r->b, name, &type, "zeros"); }

void assert_ok(const rig *r, tn_status status) {
  if (status != TN_OK) fail_msg("status %d: %s", status, tn_error_text(&r->env));
}

void assert_error(const rig *r, tn_status status, tn_status want, const char *text) {
  if (status != want) fail_msg("status %d instead of %d: %s", status, want, tn_error_text(&r->env));
  assert_string_equal(tn_error_text(&r->env), text);
}

void assert_stuck(rig *r, const char *text) {
  assert_int_not_equal(tn_build_status(r->b), TN_OK);
  assert_string_equal(tn_error_text(r->b), text);
}

void assert_verified(const rig *r, const tn_graph *graph) { assert_ok(r, tn_graph_verify(graph)); }

void assert_prints(const rig *r, const tn_graph *graph, const char *text) {
  tn_text printed = tn_text_new(&r->env);
  assert_ok(r, tn_graph_print(graph, &printed));
  assert_string_equal(printed.v != NULL ? printed.v : "", text);
  tn_text_free(&printed);
}

tn_graph *parsed(rig *r, const char *text) {
  tn_graph *graph = NULL;
  assert_ok(r, tn_graph_parse(&r->env, r->ops, text, "text", &graph));
  return graph;
}
