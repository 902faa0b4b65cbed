/* core/conformance/plugin.c: cases for a plugin: its ops are drawn from their schemas, its kernels from their
 * patterns, its other items as items/ has it. */
#include <stdio.h>
#include <string.h>

#include "core/compile/kernels/catalog.h"
#include "core/conformance/items/items.h"
#include "core/conformance/cases/schema_case.h"
#include "core/conformance/suite.h"
#include "tenon/plugin/layer.h"

static bool is_from_plugin(const tn_suite *suite, const tn_entry *entry) {
  return strcmp(entry->plugin, suite->options->plugin) == 0 ||
         strcmp(entry->file, suite->options->plugin) == 0;
}

/* ---- ops ---- */

static tn_status run_ops(tn_suite *suite, bool *any) {
  const tn_entry *entries;
  int32_t n;
  TN_TRY(tn_registry_list(suite->site.registry, suite->env, TN_OP, &entries, &n));
  for (int32_t i = 0; i < n; i++) {
    if (!is_from_plugin(suite, &entries[i])) continue;
    *any = true;
    TN_TRY(tn_suite_run_schema(suite, entries[i].item->name));
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
  bool whole = k->pattern->n_nodes == 1 && k->pattern->prologue < 0 &&
               k->pattern->epilogue < 0; /* the kernel computes one op */
  tn_pattern_case pc = {.c = {.op = k->entry->item->name, .emit = tn_pattern_emit, .forward_only = !whole},
                        .pattern = k->pattern,
                        .first = tn_case_find(k->pattern->nodes[0].op)};
  if (pc.first != NULL) pc.c.masked = pc.first->masked;
  if (whole && pc.first != NULL) pc.c.variance = pc.first->variance;
  for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++)
    if (accepts_dtype(k, dtype)) TN_TRY(tn_suite_run_dtype(suite, &pc.c, dtype));
  return TN_OK;
}

static tn_status check_launched(tn_suite *suite, const tn_entry *entry) {
  if (tn_suite_is_partial(suite) || suite->broken_in != NULL || was_launched(suite, entry)) return TN_OK;
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
  if (status == TN_OK) status = run_kernels_of(suite, catalog->prologues.v, catalog->prologues.n, any);
  if (status == TN_OK) status = run_kernels_of(suite, catalog->regions.v, catalog->regions.n, any);
  tn_catalog_destroy(catalog);
  return status;
}

/* ---- layers, optimizers, policies, sources, transforms ---- */

typedef struct item_kind {
  uint32_t kind;
  const char *name;
  tn_status (*run)(tn_suite *suite, const tn_entry *entry, const char *item);
} item_kind;

static const item_kind item_kinds[] = {{TN_LAYER, "layer", tn_layer_cases},
                                       {TN_OPTIMIZER, "optimizer", tn_optimizer_cases},
                                       {TN_PRECISION, "precision", tn_policy_cases},
                                       {TN_SOURCE, "source", tn_source_cases},
                                       {TN_TRANSFORM, "transform", tn_transform_cases}};

static const char *item_kind_name(const item_kind *kind, const tn_item *item) {
  static const char *const roles[] = {"layer", "loss", "metric"};
  return kind->kind == TN_LAYER ? roles[((const tn_layer_kind *)(const void *)item)->role] : kind->name;
}

static tn_status run_items(tn_suite *suite, const item_kind *kind, bool *any) {
  const tn_entry *entries;
  int32_t n;
  TN_TRY(tn_registry_list(suite->site.registry, suite->env, kind->kind, &entries, &n));
  for (int32_t i = 0; i < n; i++) {
    if (!is_from_plugin(suite, &entries[i])) continue;
    *any = true;
    const tn_item *item = entries[i].item;
    const char *name = tn_arena_printf(&suite->arena, "%s:%s", item_kind_name(kind, item), item->name);
    if (name == NULL) return TN_ENOMEM;
    TN_TRY(kind->run(suite, &entries[i], name));
  }
  return TN_OK;
}

/* Whether the plugin has the item that a line of the settings names, "source:idx.images=x". */
static tn_status find_item_of_line(const tn_suite *suite, const char *line, size_t n, bool *found) {
  const tn_entry *entries;
  int32_t many;
  for (size_t k = 0; k < sizeof item_kinds / sizeof *item_kinds; k++) {
    TN_TRY(tn_registry_list(suite->site.registry, suite->env, item_kinds[k].kind, &entries, &many));
    for (int32_t i = 0; i < many; i++) {
      char label[128];
      int wide = snprintf(label, sizeof label, "%s:%s.", item_kind_name(&item_kinds[k], entries[i].item),
                          entries[i].item->name);
      if (is_from_plugin(suite, &entries[i]) && wide > 0 && (size_t)wide < n &&
          strncmp(line, label, (size_t)wide) == 0)
        *found = true;
    }
  }
  return TN_OK;
}

/* Every line of the settings names an item of the plugin, so that none is ignored. */
static tn_status check_settings(const tn_suite *suite) {
  for (const char *line = suite->site.settings; line != NULL && *line != '\0';) {
    size_t n = strcspn(line, "\n");
    bool found = false;
    TN_TRY(find_item_of_line(suite, line, n, &found));
    if (!found)
      return tn_failf(suite->env, TN_EINVAL,
                      "'%.*s' names no item of the plugin; expected KIND:NAME.OPTION=VALUE, as in "
                      "source:idx.images=FILE",
                      (int)n, line);
    line += n + (line[n] == '\n');
  }
  return TN_OK;
}

tn_status tn_suite_run_plugin(tn_suite *suite) {
  bool any = false;
  TN_TRY(check_settings(suite));
  TN_TRY(run_ops(suite, &any));
  TN_TRY(run_kernels(suite, &any));
  for (size_t i = 0; i < sizeof item_kinds / sizeof *item_kinds; i++)
    TN_TRY(run_items(suite, &item_kinds[i], &any));
  if (any) return TN_OK;
  return tn_failf(suite->env, TN_EINVAL,
                  "plugin '%s' has nothing that is tested on this device: no op, kernel, layer, optimizer, "
                  "precision policy, source or transform; expected the name or the file of an opened plugin",
                  suite->options->plugin);
}
