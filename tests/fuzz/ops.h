/* tests/fuzz/ops.h: the ops of Tenon and, for models, its layers and losses; created once, since they do
 * not change. */
#pragma once

#include "core/graph/graph.h"
#include "core/ops/ops.h"
#include "tests/fuzz/fuzz.h"

typedef struct fuzz_ops {
  fuzz f;
  tn_registry *registry;
  struct tn_op_table *table;
} fuzz_ops;

/* `plugins`: more items, NULL-terminated. */
static inline void fuzz_ops_make(fuzz_ops *o, const tn_plugin *const *plugins) {
  if (o->table) return;
  fuzz_open(&o->f);
  tn_status status = tn_registry_create(&o->f, "", &o->registry);
  if (status == TN_OK) status = tn_registry_add(o->registry, &o->f, tn_core_ops(), "");
  for (; status == TN_OK && *plugins; plugins++) status = tn_registry_add(o->registry, &o->f, *plugins, "");
  if (status == TN_OK) status = tn_op_table_create(&o->f.env, o->registry, &o->table);
  fuzz_expect(status == TN_OK, tn_error_text(&o->f));
}
