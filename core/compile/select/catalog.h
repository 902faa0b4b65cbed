/* core/compile/select/catalog.h: the kernels that can run on a target, patterns parsed, found by the op at
 * which their matching starts. A cover owns one, and every pass over it asks there. */
#ifndef TN_CORE_COMPILE_SELECT_CATALOG_H
#define TN_CORE_COMPILE_SELECT_CATALOG_H

#include "core/compile/cover.h"
#include "core/compile/select/pattern.h"

typedef struct tn_catalog_kernel {
  const tn_entry *entry;
  const tn_kernel *kernel;
  const char *family;
  int32_t rank; /* of the family in the target: 0 is best */
  const tn_pattern *pattern;
  const tn_op_def *const *defs; /* per pattern node */
} tn_catalog_kernel;

typedef struct tn_catalog {
  tn_env *env;
  tn_arena arena;
  tn_target target;
  TN_VEC(tn_catalog_kernel) fixed; /* by op of the last node, then larger ones first, then rank, then name */
  TN_VEC(tn_catalog_kernel) regions; /* by rank, then name */
} tn_catalog;

/* Kernels whose pattern names an op that is not installed are left out: nothing can match them. A
 * pattern that does not parse is an error that names kernel and file. */
tn_status tn_catalog_create(tn_env *env, tn_registry *registry, const tn_target *target,
                            struct tn_op_table *ops, tn_catalog **catalog);
void tn_catalog_destroy(tn_catalog *catalog);

/* The kernels whose pattern ends in an op. */
const tn_catalog_kernel *tn_catalog_find(const tn_catalog *catalog, const tn_op_def *def, int32_t *n);
/* Whether any pattern names the op or a region takes its class. */
bool tn_catalog_mentions(const tn_catalog *catalog, const tn_op_def *def, const tn_op *op);

#endif
