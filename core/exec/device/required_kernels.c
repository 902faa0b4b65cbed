/* core/exec/device/required_kernels.c: looks for the required kernels among those of a device's families.
 * Whether a kernel takes a type or a layout is asked later, when a program is compiled. */
#include "core/exec/device/required_kernels.h"

#include "core/compile/kernels/pattern.h"

/* An op that memory plans insert, and its class: a kernel for regions of the class serves as well. */
typedef struct required_op {
  const char *name;
  int32_t op_class;
} required_op;

static const required_op required_ops[] = {
    {"copy", TN_CLASS_MOVE}, {"reorder", TN_CLASS_MOVE}, {"full", TN_CLASS_POINTWISE}};
enum { REQUIRED_OPS = sizeof required_ops / sizeof *required_ops };

static bool pattern_serves(const tn_pattern *pattern, const required_op *op) {
  if (pattern->op_class >= 0) return pattern->op_class == op->op_class;
  return pattern->n_nodes == 1 && tn_text_equal(pattern->nodes[0].op, op->name);
}

/* A pattern that does not parse serves for nothing here; the compiler reports it with its plugin. */
static void find_served_ops(tn_env *env, tn_arena *arena, const tn_entry *entries, int32_t n,
                            bool served[REQUIRED_OPS]) {
  for (int32_t i = 0; i < n; i++) {
    const tn_pattern *pattern = NULL;
    if (tn_pattern_parse(env, arena, ((const tn_kernel *)entries[i].item)->pattern, &pattern) != TN_OK)
      tn_error_clear(env);
    for (int32_t k = 0; pattern != NULL && k < REQUIRED_OPS; k++)
      served[k] = served[k] || pattern_serves(pattern, &required_ops[k]);
  }
}

static tn_status report_missing_kernels(tn_device *device, const bool served[REQUIRED_OPS]) {
  tn_text missing = tn_text_new(&device->env);
  for (int32_t k = 0; k < REQUIRED_OPS; k++)
    if (!served[k]) tn_text_addf(&missing, "%s%s", missing.n > 0 ? ", " : "", required_ops[k].name);
  tn_status status = TN_OK;
  if (missing.n > 0)
    status = tn_failf(&device->env, TN_EABI,
                      "it has no kernel for these ops, which memory plans insert: %s; add kernels of family "
                      "'%s' for them, or accept a family that has them",
                      missing.v, device->backend->item.name);
  tn_text_free(&missing);
  return status;
}

tn_status tn_device_check_kernels(tn_device *device, tn_registry *registry) {
  bool served[REQUIRED_OPS] = {false};
  tn_arena arena = tn_arena_new(&device->env);
  tn_status status = TN_OK;
  for (int32_t i = 0; i < device->target.n_families && status == TN_OK; i++) {
    const tn_entry *entries = NULL;
    int32_t n = 0;
    status = tn_registry_kernels(registry, &device->env, device->target.families[i], &entries, &n);
    if (status == TN_OK) find_served_ops(&device->env, &arena, entries, n, served);
  }
  tn_arena_free(&arena);
  return status == TN_OK ? report_missing_kernels(device, served) : status;
}
