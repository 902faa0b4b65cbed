/* core/graph/op/op_table.c: op definitions by name, parsed at first use. */
#include "core/graph/hash_index.h"
#include "core/graph/op/schema.h"
#include "core/graph/input_state.h"

typedef struct tn_op_table {
  const tn_env *env;
  tn_registry *registry;
  tn_arena arena;
  tn_composite_infer *composite;
  int32_t nesting;
  TN_VEC(const tn_op_def *) defs;
  tn_hash_index by_name;
} tn_op_table;

static tn_status op_table_add_host(tn_op_table *table, const void *handle, const tn_host_op *host,
                                   const tn_op_def **def) {
  const tn_op *op = host->op;
  TN_TRY(tn_op_def_create(handle, &table->arena, op, def));
  tn_op_def *made = tn_arena_copy(&table->arena, *def, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  made->ops = table;
  made->composite = table->composite;
  made->nesting = &table->nesting;
  made->count = host->count;
  made->infer = host->infer;
  *def = made;
  TN_TRY(tn_vec_push(handle, &table->defs, *def));
  uint64_t hash = tn_hash_text(TN_HASH_START, op->item.name);
  tn_status status = tn_hash_index_add(&table->by_name, hash, (uint32_t)table->defs.n - 1);
  if (status != TN_OK) table->defs.n--;
  return status;
}

static tn_status op_table_add(tn_op_table *table, const void *handle, const tn_op *op,
                              const tn_op_def **def) {
  const tn_host_op plain = {.op = op};
  return op_table_add_host(table, handle, &plain, def);
}

tn_status tn_op_table_make(tn_env *env, tn_registry *registry, tn_composite_infer *composite,
                           const tn_host_op *host, tn_op_table **out) {
  *out = NULL;
  tn_op_table *table = tn_alloc(env, sizeof *table);
  if (table == NULL) return TN_ENOMEM;
  *table = (tn_op_table){.env = env,
                         .registry = registry,
                         .composite = composite,
                         .arena = tn_arena_new(env),
                         .by_name = tn_hash_index_new(env)};
  const tn_op_def *def;
  tn_status status = op_table_add(table, env, &tn_op_input, &def);
  if (status == TN_OK) status = op_table_add(table, env, &tn_op_state, &def);
  if (status == TN_OK) status = op_table_add_host(table, env, host, &def);
  if (status != TN_OK) {
    tn_op_table_destroy(table);
    return status;
  }
  *out = table;
  return TN_OK;
}

void tn_op_table_destroy(tn_op_table *table) {
  if (table == NULL) return;
  tn_vec_free(table->env, &table->defs);
  tn_hash_index_free(&table->by_name);
  tn_arena_free(&table->arena);
  tn_release(table->env, table);
}

tn_status tn_op_table_find(tn_op_table *table, const void *handle, const char *op, const tn_op_def **def) {
  uint64_t hash = tn_hash_text(TN_HASH_START, op);
  size_t probe = 0;
  for (int64_t i; (i = tn_hash_index_next(&table->by_name, hash, &probe)) != TN_HASH_INDEX_NONE;) {
    *def = table->defs.v[i];
    if (tn_text_equal((*def)->op->item.name, op)) return TN_OK;
  }
  *def = NULL;
  const tn_entry *entry;
  TN_TRY(tn_registry_find(table->registry, handle, TN_OP, op, &entry));
  return op_table_add(table, handle, (const tn_op *)(const void *)entry->item, def);
}
