/* core/step/programs/other_policy.c: see other_policy.h. */
#include "core/step/programs/other_policy.h"

#include "core/base/system/system.h"
#include "core/step/programs/plan_report.h"

/* The first answer of the backend about an op of the graph. */
static const char *other_policy_name(tn_run *run, const tn_device *device, const tn_graph *graph) {
  const tn_backend *b = device->backend;
  const char *name = NULL;
  for (size_t i = 0; b->better_policy != NULL && name == NULL && i < graph->nodes.n; i++)
    name = b->better_policy(&run->env, device->self, &device->target.properties,
                            run->settings.precision->item.name, graph->nodes.v[i].op->item.name);
  return name;
}

const tn_precision *tn_other_policy(tn_run *run, const tn_device *device, const tn_program_set *set) {
  const tn_program *step = set->programs[TN_PROGRAM_STEP];
  const char *name = step != NULL ? other_policy_name(run, device, step->cover->graph) : NULL;
  const tn_item *item = NULL;
  if (name == NULL || !tn_registry_has(run->registry, TN_PRECISION, name) ||
      tn_settings_find_item(&run->env, run->registry, TN_PRECISION, name, &item) != TN_OK) {
    tn_error_clear(&run->env);
    return NULL;
  }
  return (const tn_precision *)item;
}

/* The keys of [precision] that the other policy has too. */
static tn_status other_policy_options(tn_run *run, const tn_precision *policy, const void **data) {
  const tn_section *section = tn_ini_section(&run->ini, "precision");
  tn_options options;
  TN_TRY(tn_options_start(&run->env, &run->ini.arena, &policy->item, &options));
  for (int32_t i = 0; section != NULL && i < section->n_keys; i++)
    if (tn_options_find(&policy->item, section->keys[i].name) != NULL)
      TN_TRY(tn_options_set_text(&run->env, &options, section->keys[i].name, section->keys[i].value));
  *data = options.data;
  return tn_options_finish(&run->env, &options);
}

/* Compiles without [run] memory_limit, recorded choices, dumps and warnings. */
static tn_status other_policy_compile(tn_run *run, const tn_device *device, const tn_program_request *request,
                                      const tn_precision *policy, tn_program_set *set) {
  const tn_precision *own = run->settings.precision;
  const void *own_options = run->settings.precision_options, *options = NULL;
  tn_program_request plain = *request;
  plain.dump = NULL;
  plain.choices = NULL;
  TN_TRY(other_policy_options(run, policy, &options));
  run->settings.precision = policy;
  run->settings.precision_options = options;
  tn_status status = tn_programs_compile(run, &device->target, &plain, set);
  run->settings.precision = own;
  run->settings.precision_options = own_options;
  return status;
}

tn_status tn_other_policy_report(tn_run *run, const tn_device *device, const tn_program_request *request,
                                 const tn_program_set *set, int32_t slots, json_t *json) {
  const tn_precision *policy = tn_other_policy(run, device, set);
  tn_program_set other = {.map = NULL};
  double start = tn_clock_s();
  if (policy == NULL) return TN_OK;
  if (other_policy_compile(run, device, request, policy, &other) != TN_OK) {
    tn_error_clear(&run->env);
    return TN_OK;
  }
  const tn_program *step = other.programs[TN_PROGRAM_STEP];
  int64_t peak = tn_executor_planned_bytes(other.map, other.list, other.n, slots,
                                           device->target.properties.host_addressable != 0);
  json_t *one =
      json_pack("{s:s, s:b, s:i, s:f, s:I, s:f}", "policy", policy->item.name, "scales_loss",
                (int)(policy->scale != NULL), "launches", (int)step->n_steps, "cost_ms",
                tn_plan_cost_ms(step), "peak_bytes", (json_int_t)peak, "seconds", tn_clock_s() - start);
  json_object_set_new(json, "other_policy", one);
  tn_programs_free(run, &other);
  return one != NULL ? TN_OK : tn_failf(&run->env, TN_ENOMEM, "out of memory while reporting on a policy");
}
