/* core/compile/kernels/catalog.c: collects the kernels of a target's families, sorts and finds them. */
#include "core/compile/kernels/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "core/compile/kernels/collective_kernel.h"
#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/kernels/recorded_choices.h"
#include "core/graph/op/schema.h"

/* Finds the ops of a pattern. An op that is not installed (TN_EUNAVAILABLE) is no failure. */
static tn_status resolve_pattern_ops(tn_catalog *catalog, struct tn_op_table *ops, tn_catalog_kernel *k,
                                     bool *resolved) {
  const tn_pattern *pattern = k->pattern;
  const tn_op_def **defs = tn_arena_alloc(&catalog->arena, (size_t)pattern->n_nodes * sizeof *defs);
  if (defs == NULL) return TN_ENOMEM;
  k->defs = defs;
  *resolved = true;
  for (int32_t i = 0; i < pattern->n_nodes && *resolved; i++) {
    tn_status status = tn_op_table_find(ops, catalog->env, pattern->nodes[i].op, &defs[i]);
    *resolved = status == TN_OK;
    if (status != TN_OK && status != TN_EUNAVAILABLE) return status;
  }
  if (*resolved) return TN_OK;
  tn_error_clear(catalog->env);
  tn_logf(catalog->env, TN_LOG_DEBUG, "kernel %s: its pattern \"%s\" names an op that is not installed",
          k->entry->item->name, pattern->text);
  return TN_OK;
}

static tn_status add_catalog_kernel(tn_catalog *catalog, struct tn_op_table *ops, const tn_entry *entry,
                                    int32_t rank) {
  const tn_kernel *kernel = (const tn_kernel *)entry->item;
  tn_catalog_kernel k = {
      .entry = entry, .kernel = kernel, .family = catalog->target.families[rank], .rank = rank};
  bool resolved = false;
  tn_status status = tn_pattern_parse(catalog->env, &catalog->arena, kernel->pattern, &k.pattern);
  if (status != TN_OK)
    return tn_wrap(catalog->env, status, "kernel %s of plugin %s", entry->item->name, entry->plugin);
  if (k.pattern->op_class >= 0) return tn_vec_push(catalog->env, &catalog->regions, k);
  TN_TRY(resolve_pattern_ops(catalog, ops, &k, &resolved));
  if (!resolved) return TN_OK;
  if (k.pattern->prologue >= 0) return tn_vec_push(catalog->env, &catalog->prologues, k);
  return k.pattern->epilogue < 0 ? tn_vec_push(catalog->env, &catalog->fixed, k)
                                 : tn_vec_push(catalog->env, &catalog->epilogues, k);
}

static int compare_kernel_rank(const tn_catalog_kernel *a, const tn_catalog_kernel *b) {
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  return strcmp(a->entry->item->name, b->entry->item->name);
}

static int compare_regions(const void *a, const void *b) { return compare_kernel_rank(a, b); }

static const tn_op_def *last_pattern_def(const tn_catalog_kernel *k) {
  return k->defs[k->pattern->n_nodes - 1];
}

/* By name and not by address: plan.json lists the catalog and must not change from run to run. */
static int compare_defs(const tn_op_def *a, const tn_op_def *b) {
  return a == b ? 0 : strcmp(a->op->item.name, b->op->item.name);
}

static int compare_fixed(const void *left, const void *right) {
  const tn_catalog_kernel *a = left, *b = right;
  int order = compare_defs(last_pattern_def(a), last_pattern_def(b));
  if (order != 0) return order;
  if (a->pattern->n_nodes != b->pattern->n_nodes) return a->pattern->n_nodes > b->pattern->n_nodes ? -1 : 1;
  return compare_kernel_rank(a, b);
}

/* A replayed compilation uses only the recorded kernels, and others in the place of those that are left out.
 */
static bool is_in_replay(const tn_catalog *catalog, const tn_entry *entry) {
  const tn_recorded_choices *replay = catalog->target.replay;
  return replay == NULL || catalog->target.without.n > 0 || tn_recorded_has_kernel(replay, entry);
}

static tn_status collect_kernels(tn_catalog *catalog, tn_registry *registry, struct tn_op_table *ops) {
  for (int32_t rank = 0; rank < catalog->target.n_families; rank++) {
    const tn_entry *entries = NULL;
    int32_t n = 0;
    TN_TRY(tn_registry_kernels(registry, catalog->env, catalog->target.families[rank], &entries, &n));
    /* The array is valid until the next call of the registry, and finding an op is such a call. */
    const tn_entry *kept = tn_arena_copy(&catalog->arena, entries, (size_t)n * sizeof *kept);
    if (kept == NULL) return TN_ENOMEM;
    for (int32_t i = 0; i < n; i++)
      if (is_in_replay(catalog, &kept[i])) TN_TRY(add_catalog_kernel(catalog, ops, &kept[i], rank));
  }
  for (int32_t i = 0; i < TN_COLLECTIVE_KERNELS && catalog->target.n_families > 0; i++)
    TN_TRY(add_catalog_kernel(catalog, ops, &tn_collective_entries[i], 0));
  if (catalog->target.n_families > 0) TN_TRY(add_catalog_kernel(catalog, ops, &tn_loop_entry, 0));
  if (catalog->fixed.n > 0)
    qsort(catalog->fixed.v, catalog->fixed.n, sizeof *catalog->fixed.v, compare_fixed);
  if (catalog->epilogues.n > 0)
    qsort(catalog->epilogues.v, catalog->epilogues.n, sizeof *catalog->epilogues.v, compare_fixed);
  if (catalog->prologues.n > 0)
    qsort(catalog->prologues.v, catalog->prologues.n, sizeof *catalog->prologues.v, compare_fixed);
  if (catalog->regions.n > 0)
    qsort(catalog->regions.v, catalog->regions.n, sizeof *catalog->regions.v, compare_regions);
  return TN_OK;
}

/* Groups point to the names of families, and a program may outlive its target. */
static tn_status copy_catalog_target(tn_catalog *catalog, const tn_target *target) {
  const char **families = tn_arena_alloc(&catalog->arena, (size_t)target->n_families * sizeof *families);
  if (families == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < target->n_families; i++) {
    families[i] = tn_arena_strdup(&catalog->arena, target->families[i]);
    if (families[i] == NULL) return TN_ENOMEM;
  }
  catalog->target = *target;
  catalog->target.families = families;
  if (target->selves == NULL) return TN_OK;
  catalog->target.selves =
      tn_arena_copy(&catalog->arena, target->selves, (size_t)target->n_families * sizeof *target->selves);
  if (catalog->target.selves == NULL) return TN_ENOMEM;
  return TN_OK;
}

tn_status tn_catalog_create(tn_env *env, tn_registry *registry, const tn_target *target,
                            struct tn_op_table *ops, tn_catalog **catalog) {
  tn_catalog *made = tn_alloc(env, sizeof *made);
  *catalog = NULL;
  if (made == NULL) return TN_ENOMEM;
  made->env = env;
  made->arena = tn_arena_new(env);
  tn_status status = copy_catalog_target(made, target);
  if (status == TN_OK) status = collect_kernels(made, registry, ops);
  if (status == TN_OK)
    *catalog = made;
  else
    tn_catalog_destroy(made);
  return status;
}

void tn_catalog_destroy(tn_catalog *catalog) {
  if (catalog == NULL) return;
  tn_vec_free(catalog->env, &catalog->fixed);
  tn_vec_free(catalog->env, &catalog->epilogues);
  tn_vec_free(catalog->env, &catalog->prologues);
  tn_vec_free(catalog->env, &catalog->regions);
  tn_arena_free(&catalog->arena);
  tn_release(catalog->env, catalog);
}

/* The kernels of an op in a sorted array of `count`. */
static const tn_catalog_kernel *find_kernels(const tn_catalog_kernel *v, size_t count, const tn_op_def *def,
                                             int32_t *n) {
  size_t low = 0, high = count;
  *n = 0;
  if (count == 0) return NULL;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare_defs(last_pattern_def(&v[middle]), def) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  size_t end = low;
  while (end < count && last_pattern_def(&v[end]) == def) end++;
  *n = (int32_t)(end - low);
  return v + low;
}

const tn_catalog_kernel *tn_catalog_find(const tn_catalog *catalog, const tn_op_def *def, int32_t *n) {
  return find_kernels(catalog->fixed.v, catalog->fixed.n, def, n);
}

const tn_catalog_kernel *tn_catalog_find_epilogues(const tn_catalog *catalog, const tn_op_def *def,
                                                   int32_t *n) {
  return find_kernels(catalog->epilogues.v, catalog->epilogues.n, def, n);
}

const tn_catalog_kernel *tn_catalog_find_prologues(const tn_catalog *catalog, const tn_op_def *def,
                                                   int32_t *n) {
  return find_kernels(catalog->prologues.v, catalog->prologues.n, def, n);
}

bool tn_catalog_mentions(const tn_catalog *catalog, const tn_op_def *def, const tn_op *op) {
  for (size_t i = 0; i < catalog->regions.n; i++)
    if (catalog->regions.v[i].pattern->op_class == (int32_t)op->op_class) return true;
  for (size_t i = 0; i < catalog->fixed.n; i++)
    for (int32_t k = 0; k < catalog->fixed.v[i].pattern->n_nodes; k++)
      if (catalog->fixed.v[i].defs[k] == def) return true;
  return false;
}
