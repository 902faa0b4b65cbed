/* tests/unit/run/rig.c: see rig.h. */
#include "tests/unit/run/rig.h"

#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/plugin/handles.h"

rig R;

static void *counted(void *context, void *block, size_t bytes) {
  rig *r = context;
  if (bytes == 0) {
    r->blocks -= block != NULL;
    free(block);
    return NULL;
  }
  void *grown = realloc(block, bytes);
  r->blocks += block == NULL && grown != NULL;
  return grown;
}

int rig_open(void **state) {
  (void)state;
  memset(&R, 0, sizeof R);
  tn_error_record_init_root(&R.env, &R.record, &tn_host_api);
  R.record.allocator = (tn_allocator){&R, counted};
  rig_expect_ok(tn_registry_create(&R.env, "", &R.registry));
  rig_expect_ok(tn_registry_add(R.registry, &R.env, tn_core_ops(), ""));
  rig_expect_ok(tn_op_table_create(&R.env, R.registry, &R.ops));
  return 0;
}

int rig_close(void **state) {
  (void)state;
  tn_op_table_destroy(R.ops);
  tn_registry_destroy(R.registry);
  assert_int_equal(R.blocks, 0);
  return 0;
}

tn_graph *rig_parse(const char *text) {
  tn_graph *graph = NULL;
  rig_expect_ok(tn_graph_parse(&R.env, R.ops, text, "test", &graph));
  return graph;
}

void rig_expect_ok(tn_status status) {
  if (status != TN_OK) fail_msg("%d: %s", status, tn_error_text(&R.env));
}

void rig_expect_error(tn_status status, tn_status want, const char *text) {
  assert_int_equal(status, want);
  if (strstr(tn_error_text(&R.env), text) == NULL) fail_msg("%s", tn_error_text(&R.env));
}

void rig_expect_text(const tn_graph *graph, const char *text) {
  tn_text printed = tn_text_new(&R.env);
  rig_expect_ok(tn_graph_verify(graph));
  rig_expect_ok(tn_graph_print(graph, &printed));
  assert_string_equal(printed.v ? printed.v : "", text);
  tn_text_free(&printed);
}
