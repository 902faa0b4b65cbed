/* core/conformance/plugin.c: cases for a plugin: its ops are drawn from their schemas, its kernels from their
 * patterns. */
#include <string.h>

#include "core/compile/kernels/catalog.h"
#include "core/conformance/trial/finite_differences.h"
#include "core/conformance/cases/schema_case.h"
#include "core/conformance/suite.h"

static bool is_from_plugin(const tn_suite *suite, const tn_entry *entry) {
  return strcmp(entry->plugin, suite->options->plugin) == 0 ||
         strcmp(entry->file, suite->options->plugin) == 0;
}

/* ---- ops ---- */

/* Checks the gradient rule of an op by finite differences. The core's own rules have tests of their own. */
static tn_status check_gradient_rule(tn_suite *suite, const tn_case *c) {
  int64_t first = suite->filter.draw < 0 ? 0 : suite->filter.draw;
  int64_t end = suite->filter.draw < 0 ? suite->draws : first + 1;
  for (int64_t draw = first; draw < end && !suite->broken; draw++) {
    const tn_trial trial = {c, TN_F64, draw, true};
    tn_verdict verdict;
    if (!tn_suite_selects(suite, &trial)) continue;
    TN_TRY(tn_finite_differences_run(&suite->site, &trial, &verdict));
    TN_TRY(tn_suite_record(suite, &trial, &verdict));
  }
  return TN_OK;
}

static tn_status run_plugin_op(tn_suite *suite, const tn_entry *entry) {
  const tn_op_def *def = NULL;
  tn_case c = {entry->item->name, tn_schema_emit, TN_FILL_ANY, TN_CASE_NUMBERS};
  TN_TRY(tn_op_table_find(suite->site.ops, suite->env, entry->item->name, &def));
  for (int32_t dtype = TN_I32; dtype <= TN_F64; dtype++)
    if (tn_schema_accepts(def, dtype)) TN_TRY(tn_suite_run_dtype(suite, &c, dtype));
  return tn_schema_accepts(def, TN_F64) ? check_gradient_rule(suite, &c) : TN_OK;
}

static tn_status run_ops(tn_suite *suite, bool *any) {
  const tn_entry *entries;
  int32_t n;
  TN_TRY(tn_registry_list(suite->site.registry, suite->env, TN_OP, &entries, &n));
  for (int32_t i = 0; i < n; i++) {
    if (!is_from_plugin(suite, &entries[i])) continue;
    *any = true;
    TN_TRY(run_plugin_op(suite, &entries[i]));
  }
  return TN_OK;
}

/* ---- kernels ---- */

static bool was_launched(const tn_suite *suite, const tn_entry *entry) {
  for (size_t i = 0; i < suite->kernels.n; i++)
    if (strcmp(suite->kernels.v[i].name, entry->item->name) == 0 &&
        strcmp(suite->kernels.v[i].plugin, entry->plugin) == 0)
      return true;
  return false;
}

static bool accepts_dtype(const tn_catalog_kernel *k, int32_t dtype) {
  for (int32_t i = 0; i < k->pattern->n_nodes; i++)
    if (!tn_schema_accepts(k->defs[i], dtype)) return false;
  return true;
}

static tn_status run_pattern(tn_suite *suite, const tn_catalog_kernel *k) {
  bool whole = k->pattern->n_nodes == 1 && k->pattern->epilogue < 0; /* the kernel computes one op */
  tn_pattern_case pc = {.c = {.op = k->entry->item->name, .emit = tn_pattern_emit, .forward_only = !whole},
                        .pattern = k->pattern,
                        .first = tn_case_find(k->pattern->nodes[0].op)};
  if (whole && pc.first != NULL) pc.c.variance = pc.first->variance;
  for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++)
    if (accepts_dtype(k, dtype)) TN_TRY(tn_suite_run_dtype(suite, &pc.c, dtype));
  return TN_OK;
}

static tn_status check_launched(tn_suite *suite, const tn_entry *entry) {
  if (suite->broken || suite->filter.op[0] != '\0' || was_launched(suite, entry)) return TN_OK;
  return tn_suite_fail(
      suite, entry->item->name,
      "the kernel was never chosen: it declined every use that was drawn, or another was better; "
      "`tenon plan` on a model that uses its pattern shows the reason");
}

static tn_status run_kernels_of(tn_suite *suite, const tn_catalog_kernel *v, size_t n, bool *any) {
  for (size_t i = 0; i < n; i++) {
    if (!is_from_plugin(suite, v[i].entry)) continue;
    *any = true;
    /* A region has no pattern of its own; the core's cases contain ops of its class. */
    TN_TRY(v[i].pattern->op_class >= 0 ? tn_suite_run_core(suite) : run_pattern(suite, &v[i]));
    TN_TRY(check_launched(suite, v[i].entry));
  }
  return TN_OK;
}

static tn_status run_kernels(tn_suite *suite, bool *any) {
  tn_catalog *catalog = NULL;
  TN_TRY(tn_catalog_create(suite->env, suite->site.registry, &suite->site.device->target, suite->site.ops,
                           &catalog));
  tn_status status = run_kernels_of(suite, catalog->fixed.v, catalog->fixed.n, any);
  if (status == TN_OK) status = run_kernels_of(suite, catalog->epilogues.v, catalog->epilogues.n, any);
  if (status == TN_OK) status = run_kernels_of(suite, catalog->regions.v, catalog->regions.n, any);
  tn_catalog_destroy(catalog);
  return status;
}

tn_status tn_suite_run_plugin(tn_suite *suite) {
  bool any = false;
  TN_TRY(run_ops(suite, &any));
  TN_TRY(run_kernels(suite, &any));
  if (any) return TN_OK;
  return tn_failf(
      suite->env, TN_EINVAL,
      "plugin '%s' has no op and no kernel for this device; expected the name or the file of an opened "
      "plugin that has",
      suite->options->plugin);
}
