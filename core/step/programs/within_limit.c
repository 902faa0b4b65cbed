/* core/step/programs/within_limit.c: see within_limit.h. State, input slots and outputs have fixed sizes; the
 * arena gets the rest. */
#include "core/step/programs/within_limit.h"

#include "core/step/programs/memory_report.h"

int32_t tn_within_limit_slots(const tn_run *run, const tn_program_request *request) {
  return request->slots > 0 ? request->slots : tn_run_input_slots(run, tn_run_steps_per_launch(run));
}

int64_t tn_within_limit_planned(const tn_run *run, const tn_target *target, const tn_program_request *request,
                                const tn_program_set *set) {
  return tn_executor_planned_bytes(set->map, set->list, set->n, tn_within_limit_slots(run, request),
                                   target->properties.host_addressable != 0);
}

int64_t tn_within_limit_on_device(const tn_run *run, const tn_program_request *request,
                                  const tn_program_set *set) {
  return tn_executor_planned_bytes(set->map, set->list, set->n, tn_within_limit_slots(run, request), true);
}

int64_t tn_within_limit_memory(const tn_device_properties *p) {
  return p->free_bytes > 0 && !p->host_addressable ? p->free_bytes : p->memory_bytes;
}

int64_t tn_within_limit_excess(const tn_run *run, const tn_target *target, const tn_program_request *request,
                               const tn_program_set *set) {
  int64_t limit = run->settings.run.memory_limit, there = tn_within_limit_memory(&target->properties);
  int64_t of_limit = limit > 0 ? tn_within_limit_planned(run, target, request, set) - limit : INT64_MIN;
  int64_t of_device = there > 0 ? tn_within_limit_on_device(run, request, set) - there : INT64_MIN;
  return of_limit > of_device ? of_limit : of_device;
}

bool tn_programs_fit(const tn_run *run, const tn_target *target, const tn_program_set *set, int32_t slots) {
  int64_t limit = run->settings.run.memory_limit, there = tn_within_limit_memory(&target->properties);
  bool direct = target->properties.host_addressable != 0;
  return (limit == 0 || tn_executor_planned_bytes(set->map, set->list, set->n, slots, direct) <= limit) &&
         (there == 0 || tn_executor_planned_bytes(set->map, set->list, set->n, slots, true) <= there);
}

/* Whether a training has parameters that no epoch changes. */
static bool within_limit_has_frozen(const tn_run *run) {
  const tn_freeze *freeze = &run->settings.freeze;
  bool any = false;
  for (int32_t i = 0; i < freeze->n; i++) any = any || freeze->until[i] == TN_FROZEN_FOREVER;
  return any;
}

bool tn_programs_can_stream(const tn_run *run, const tn_target *target, const tn_program_request *request) {
  return run->settings.run.offload == TN_OFFLOAD_AUTO &&
         (request->batch[TN_PROGRAM_STEP] == 0 || within_limit_has_frozen(run)) && request->mapped == NULL &&
         !target->properties.host_addressable && target->fallback != NULL && tn_run_ranks(run) == 1;
}

/* Values that are made again do not help where state alone is too large and may be streamed. */
static bool within_limit_may_help(const tn_run *run, const tn_target *target,
                                  const tn_program_request *request, int64_t rest) {
  return rest > 0 || request->stream || !tn_programs_can_stream(run, target, request);
}

tn_status tn_within_limit_attempt(tn_run *run, const tn_target *target, const tn_program_request *request,
                                  tn_program_set *set) {
  int64_t limit = run->settings.run.memory_limit;
  tn_text *dump = request->dump != NULL ? request->dump->dump : NULL;
  size_t start = dump != NULL ? dump->n : 0;
  TN_TRY(tn_programs_compile(run, target, request, set));
  int64_t planned = tn_within_limit_planned(run, target, request, set);
  if (limit == 0 || planned <= limit) return TN_OK;
  int64_t rest = limit - (planned - tn_largest_program(set)->arena_bytes);
  if (!within_limit_may_help(run, target, request, rest)) return TN_OK;
  if (dump != NULL) dump->n = start; /* the dump shows the programs that will run */
  tn_program_request smaller = *request;
  smaller.arena_limit = rest > 0 ? rest : 1;
  tn_programs_free(run, set);
  return tn_programs_compile(run, target, &smaller, set);
}
