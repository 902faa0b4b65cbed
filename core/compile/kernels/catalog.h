/* core/compile/kernels/catalog.h: the kernels that can run on a target, with parsed patterns, indexed by the
 * op at which a match starts. A cover owns its catalog, and all passes over the cover use it. */
#pragma once

#include "core/compile/kernels/pattern.h"
#include "core/compile/kernels/target.h"
#include "core/graph/graph.h"
#include "core/plugin/registry.h"

typedef struct tn_catalog_kernel {
  const tn_entry *entry;
  const tn_kernel *kernel;
  const char *family;
  int32_t rank; /* of the family in the target; 0 is the best */
  const tn_pattern *pattern;
  const tn_op_def *const *defs; /* the ops of the pattern's nodes */
} tn_catalog_kernel;

typedef struct tn_catalog {
  tn_env *env;
  tn_arena arena;
  tn_target target;
  TN_VEC(tn_catalog_kernel)
  fixed; /* with a fixed pattern; sorted by op of the last node, size (descending), rank,
            name */
  TN_VEC(tn_catalog_kernel) epilogues; /* `statement; CLASS+`; sorted in the same way */
  TN_VEC(tn_catalog_kernel) prologues; /* `CLASS+; statement`, with an epilogue or without; as well */
  TN_VEC(tn_catalog_kernel) regions;   /* with a `CLASS+` pattern; sorted by rank, name */
} tn_catalog;

/* A kernel whose pattern names an op that is not installed is left out, since nothing can match it. A pattern
 * that does not parse is an error that names kernel and plugin. */
tn_status tn_catalog_create(tn_env *env, tn_registry *registry, const tn_target *target,
                            struct tn_op_table *ops, tn_catalog **catalog);
void tn_catalog_destroy(tn_catalog *catalog);

/* The *n kernels whose pattern ends in an op. */
const tn_catalog_kernel *tn_catalog_find(const tn_catalog *catalog, const tn_op_def *def, int32_t *n);
/* The *n kernels that compute an op and a region behind it. */
const tn_catalog_kernel *tn_catalog_find_epilogues(const tn_catalog *catalog, const tn_op_def *def,
                                                   int32_t *n);
/* The *n kernels that compute an op and a region in front of it, and some of them a region behind it. */
const tn_catalog_kernel *tn_catalog_find_prologues(const tn_catalog *catalog, const tn_op_def *def,
                                                   int32_t *n);
/* Whether a pattern names the op, or a region has its class. */
bool tn_catalog_mentions(const tn_catalog *catalog, const tn_op_def *def, const tn_op *op);
