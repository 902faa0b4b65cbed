/* core/train/programs/compile_within_limit.c: the programs of a run within the bytes of [run] memory_limit.
 *
 * State, input slots and outputs have fixed sizes; the arena gets the rest. Programs that need a larger arena
 * rematerialize values (core/compile/rematerialization/memory_limit.h). */
#include <math.h>

#include "core/compile/kernels/answers.h"
#include "core/train/programs/programs.h"

static const double mib = 1048576.0;

static int64_t within_limit_planned_bytes(const tn_run *run, const tn_target *target,
                                          const tn_program_set *set) {
  return tn_executor_planned_bytes(set->map, set->list, set->n, tn_run_input_slots(run),
                                   target->properties.host_addressable != 0);
}

static int64_t within_limit_largest_arena(const tn_program_set *set) {
  int64_t arena = 0;
  for (int32_t i = 0; i < set->n; i++)
    if (set->list[i]->arena_bytes > arena) arena = set->list[i]->arena_bytes;
  return arena;
}

/* ---- the limit is too small ---- */

static int64_t within_limit_largest_batch(const tn_program_request *request) {
  int64_t batch = 0;
  for (int32_t i = 0; i < TN_PROGRAMS; i++)
    if (request->batch[i] > batch) batch = request->batch[i];
  return batch;
}

/* State does not depend on the batch. */
static const char *within_limit_advice(int64_t limit, int64_t state, int64_t batch) {
  if (state >= limit) return "raise memory_limit: no batch fits, because the state alone exceeds it";
  if (batch <= 1) return "raise memory_limit; the batch cannot be smaller";
  return "raise memory_limit, or lower [data] batch ([optimizer] accumulate makes up for a smaller one)";
}

static tn_status within_limit_fail(tn_run *run, const tn_target *target, const tn_program_request *request,
                                   const tn_program_set *set) {
  int64_t needed = within_limit_planned_bytes(run, target, set), arena = within_limit_largest_arena(set);
  int64_t state = tn_state_map_bytes(set->map), batch = within_limit_largest_batch(request);
  int64_t limit = run->settings.run.memory_limit;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [run] memory_limit: %.1f MiB is too little for a batch of %lld: at least %.1f MiB are "
                  "needed when everything that can be is rematerialized (state %.1f MiB, arena %.1f MiB, "
                  "inputs and outputs %.1f MiB); %s",
                  tn_settings_where(&run->ini, "run", "memory_limit"), (double)limit / mib, (long long)batch,
                  ceil((double)needed / mib * 10) / 10, (double)state / mib, (double)arena / mib,
                  (double)(needed - state - arena) / mib, within_limit_advice(limit, state, batch));
}

/* ---- within the limit ---- */

/* Compiles again, with an arena of the bytes that the limit leaves. */
static tn_status within_limit_compile_within(tn_run *run, const tn_target *target,
                                             const tn_program_request *request, tn_program_set *set) {
  int64_t limit = run->settings.run.memory_limit;
  int64_t rest = limit - (within_limit_planned_bytes(run, target, set) - within_limit_largest_arena(set));
  tn_program_request smaller = *request;
  smaller.arena_limit = rest > 0 ? rest : 1;
  tn_programs_free(run, set);
  TN_TRY(tn_programs_compile(run, target, &smaller, set));
  if (within_limit_planned_bytes(run, target, set) <= limit) return TN_OK;
  tn_status status = within_limit_fail(run, target, request, set);
  tn_programs_free(run, set);
  return status;
}

static tn_status within_limit_compile(tn_run *run, const tn_target *target, const tn_program_request *request,
                                      tn_program_set *set) {
  int64_t limit = run->settings.run.memory_limit;
  tn_text *dump = request->dump != NULL ? request->dump->dump : NULL;
  size_t start = dump != NULL ? dump->n : 0;
  TN_TRY(tn_programs_compile(run, target, request, set));
  if (limit == 0 || within_limit_planned_bytes(run, target, set) <= limit) return TN_OK;
  if (dump != NULL) dump->n = start; /* the dump shows the programs that will run */
  return within_limit_compile_within(run, target, request, set);
}

/* ---- recorded choices ---- */

/* The target with the recorded choices, its fallback included. Covers keep the pointer, so the copies lie in
 * the run's arena. */
static tn_status within_limit_recorded_target(tn_run *run, const tn_target *target,
                                              const struct tn_recorded_choices *choices,
                                              const tn_target **recorded) {
  tn_target *copies = tn_arena_alloc(&run->arena, 2 * sizeof *copies);
  if (copies == NULL) return TN_ENOMEM;
  copies[0] = *target;
  copies[0].replay = choices;
  if (target->fallback != NULL) {
    copies[1] = *target->fallback;
    copies[1].replay = choices;
    copies[0].fallback = &copies[1];
  }
  *recorded = copies;
  return TN_OK;
}

/* A model that was changed may need a kernel that the recorded run did not have: then all choices are made
 * anew. */
static tn_status within_limit_compile_recorded(tn_run *run, const tn_target *target,
                                               const tn_program_request *request, tn_program_set *set) {
  const tn_target *recorded = target;
  TN_TRY(within_limit_recorded_target(run, target, request->choices, &recorded));
  tn_status status = within_limit_compile(run, recorded, request, set);
  if (status != TN_EUNSUPPORTED) return status;
  tn_error_clear(&run->env);
  return within_limit_compile(run, target, request, set);
}

tn_status tn_programs_build(tn_run *run, const tn_target *target, const tn_program_request *request,
                            tn_program_set *set) {
  TN_TRY(request->choices != NULL ? within_limit_compile_recorded(run, target, request, set)
                                  : within_limit_compile(run, target, request, set));
  tn_programs_report_fallbacks(run, set);
  if (target->answers != NULL)
    tn_logf(&run->env, TN_LOG_DEBUG, "%lld queries of kernels, %lld answers remembered",
            (long long)target->answers->asked, (long long)target->answers->remembered);
  return TN_OK;
}
