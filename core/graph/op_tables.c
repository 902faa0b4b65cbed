/* core/graph/op_tables.c: creates tables of op definitions. */
#include "core/graph/loop/loop.h"
#include "core/graph/op/schema.h"
#include "core/graph/rewrite/composite_types.h"

tn_status tn_op_table_create(tn_env *env, tn_registry *registry, struct tn_op_table **table) {
  const tn_host_op loop = {&tn_op_loop, tn_loop_results, tn_loop_types};
  return tn_op_table_make(env, registry, tn_composite_types, &loop, table);
}

static void op_tables_destroy(void *table) { tn_op_table_destroy(table); }

tn_status tn_context_ops(tn_context *context, struct tn_op_table **table) {
  if (context->ops == NULL) {
    struct tn_op_table *made = NULL;
    TN_TRY(tn_op_table_create(&context->env, context->registry, &made));
    context->ops = made;
    context->ops_destroy = op_tables_destroy;
  }
  *table = context->ops;
  return TN_OK;
}
