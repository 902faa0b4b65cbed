/* core/step/programs/compile_within_limit.c: the programs of a run within the bytes of [run] memory_limit
 * and of the device.
 *
 * Under memory_limit, programs that need a larger arena rematerialize values
 * (core/compile/rematerialization/memory_limit.h). Parameters that have no room and that no update changes
 * are streamed from memory of the host (stream_weights.c). */
#include <math.h>

#include "core/compile/kernels/answers.h"
#include "core/step/programs/choose_buckets.h"
#include "core/step/programs/largest_batch.h"
#include "core/step/programs/memory_report.h"
#include "core/step/programs/within_limit.h"

static const double mib = 1048576.0;

/* The uses of a plan's memory, in one line. */
static const char *within_limit_use(tn_run *run, const tn_program_request *request, const tn_program_set *set,
                                    bool direct) {
  tn_memory_report report;
  tn_status status =
      tn_memory_report_make(set, tn_within_limit_slots(run, request), direct, &run->arena, &report);
  return status == TN_OK ? tn_memory_report_line(&report, &run->arena) : "";
}

/* ---- the largest batch ---- */

static int64_t within_limit_largest_batch(const tn_program_request *request) {
  int64_t batch = 0;
  for (int32_t i = 0; i < TN_PROGRAMS; i++)
    if (request->batch[i] > batch) batch = request->batch[i];
  return batch;
}

typedef struct batch_search {
  tn_run *run;
  const tn_target *target;
  const tn_program_request *request;
  bool of_device; /* counts the device's memory alone */
} batch_search;

/* Plans with estimates: measuring every batch would take long. */
static bool within_limit_plan_batch(void *context, int64_t batch, int64_t *bytes) {
  const batch_search *s = context;
  tn_program_request request = *s->request;
  tn_target target = *s->target;
  tn_program_set set;
  target.tuner = NULL;
  request.dump = NULL;
  for (int32_t i = 0; i < TN_PROGRAMS; i++)
    if (request.batch[i] > batch) request.batch[i] = batch;
  if (tn_within_limit_attempt(s->run, &target, &request, &set) != TN_OK) {
    tn_error_clear(&s->run->env);
    return false;
  }
  *bytes = s->of_device ? tn_within_limit_on_device(s->run, &request, &set)
                        : tn_within_limit_planned(s->run, &target, &request, &set);
  tn_programs_free(s->run, &set);
  return true;
}

/* "; the largest batch that fits is 12", for all devices together; "" where no batch can be named. */
static const char *within_limit_batch_advice(batch_search *s, int64_t needed, int64_t limit) {
  bool certain;
  int64_t batch = within_limit_largest_batch(s->request), ranks = tn_run_ranks(s->run);
  int64_t fits = tn_largest_batch(within_limit_plan_batch, s, batch, needed, limit, &certain);
  if (fits == 0) return s->of_device && batch > 1 ? "; no batch fits" : "";
  const char *text = tn_arena_printf(
      &s->run->arena, certain ? "; the largest batch that fits is %lld" : "; a batch of %lld fits",
      (long long)(fits * ranks));
  return text != NULL ? text : "";
}

/* ---- a limit that is too small ---- */

static const char within_limit_stream_advice[] =
    "let weights stay in memory of the host with [run] offload = auto, or raise memory_limit";

/* Whether the weights of a prediction stay on the device because the run asks for it. */
static bool within_limit_may_stream(const tn_run *run, const tn_target *target, const tn_program_set *set) {
  return set->programs[TN_PROGRAM_STEP] == NULL && run->settings.run.offload == TN_OFFLOAD_NO &&
         !target->properties.host_addressable;
}

/* State does not depend on the batch. */
static const char *within_limit_advice(const tn_run *run, const tn_target *target, const tn_program_set *set,
                                       int64_t batch) {
  int64_t limit = run->settings.run.memory_limit, state = tn_state_map_bytes(set->map);
  bool places =
      set->programs[TN_PROGRAM_STEP] != NULL && !set->host_optimizer && tn_programs_can_place(run, target);
  if (within_limit_may_stream(run, target, set)) return within_limit_stream_advice;
  if (places)
    return "raise memory_limit, lower [data] batch, or let the optimizer's state go to the host with "
           "[optimizer] "
           "place = auto";
  if (state >= limit) return "raise memory_limit: no batch fits, because the state alone exceeds it";
  if (batch <= 1) return "raise memory_limit; the batch cannot be smaller";
  return "raise memory_limit, or lower [data] batch ([optimizer] accumulate makes up for a smaller one)";
}

static tn_status within_limit_fail(tn_run *run, const tn_target *target, const tn_program_request *request,
                                   const tn_program_set *set) {
  int64_t needed = tn_within_limit_planned(run, target, request, set);
  int64_t batch = within_limit_largest_batch(request);
  int64_t limit = run->settings.run.memory_limit;
  batch_search search = {run, target, request, false};
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [run] memory_limit: %.1f MiB is too little for a batch of %lld: at least %.1f MiB are "
                  "needed when everything that can be is rematerialized (%s); %s%s",
                  tn_settings_where(&run->ini, "run", "memory_limit"), (double)limit / mib, (long long)batch,
                  ceil((double)needed / mib * 10) / 10,
                  within_limit_use(run, request, set, target->properties.host_addressable != 0),
                  within_limit_advice(run, target, set, batch),
                  within_limit_batch_advice(&search, needed, limit));
}

static tn_status within_limit_fail_device(tn_run *run, const tn_target *target,
                                          const tn_program_request *request, const tn_program_set *set,
                                          int64_t there) {
  const tn_device_properties *p = &target->properties;
  int64_t needed = tn_within_limit_on_device(run, request, set);
  batch_search search = {run, target, request, true};
  return tn_failf(
      &run->env, TN_ENOMEM,
      "%s: [data] batch: the plan for a batch of %lld needs %.1f MiB (%s), and device '%s' has "
      "%.1f MiB%s%s; %s",
      tn_settings_where(&run->ini, "data", "batch"), (long long)within_limit_largest_batch(request),
      (double)needed / mib, within_limit_use(run, request, set, true), p->name, (double)there / mib,
      there < p->memory_bytes ? " that are not in use" : "",
      within_limit_batch_advice(&search, needed, there),
      within_limit_may_stream(run, target, set) ? within_limit_stream_advice
                                                : "[run] memory_limit rematerializes what it can");
}

static tn_status within_limit_check_device(tn_run *run, const tn_target *target,
                                           const tn_program_request *request, const tn_program_set *set) {
  const tn_device_properties *p = &target->properties;
  int64_t needed = tn_within_limit_on_device(run, request, set), there = tn_within_limit_memory(p);
  if (there > 0 && needed > there) return within_limit_fail_device(run, target, request, set, there);
  if (p->free_bytes > 0 && needed > p->free_bytes)
    tn_logf(&run->env, TN_LOG_WARN,
            "the plan needs %.1f MiB, and %.1f MiB of the memory of device '%s' are not in use",
            (double)needed / mib, (double)p->free_bytes / mib, p->name);
  return TN_OK;
}

/* With [optimizer] place = auto the optimizer's state goes to the host if the programs do not fit otherwise.
 */
static tn_status within_limit_place(tn_run *run, const tn_target *target, tn_program_request *request,
                                    tn_program_set *set) {
  bool may = run->settings.optimizer.place == TN_OPTIMIZER_PLACE_AUTO &&
             request->batch[TN_PROGRAM_STEP] > 0 && tn_programs_can_place(run, target);
  TN_TRY(tn_within_limit_attempt(run, target, request, set));
  if (!may || tn_programs_fit(run, target, set, tn_within_limit_slots(run, request))) return TN_OK;
  tn_programs_free(run, set);
  request->host_optimizer = true;
  tn_logf(&run->env, TN_LOG_INFO, "[optimizer] place = auto: the optimizer's state is in memory of the host");
  return tn_within_limit_attempt(run, target, request, set);
}

static tn_status within_limit_compile(tn_run *run, const tn_target *target, const tn_program_request *asked,
                                      tn_program_set *set) {
  int64_t limit = run->settings.run.memory_limit;
  tn_program_request placed = *asked, *request = &placed;
  TN_TRY(within_limit_place(run, target, request, set));
  TN_TRY(tn_within_limit_stream(run, target, request, set));
  tn_status status = limit > 0 && tn_within_limit_planned(run, target, request, set) > limit
                         ? within_limit_fail(run, target, request, set)
                         : within_limit_check_device(run, target, request, set);
  if (status != TN_OK) tn_programs_free(run, set);
  return status;
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
  TN_TRY(tn_run_choose_buckets(run, target, request));
  TN_TRY(request->choices != NULL ? within_limit_compile_recorded(run, target, request, set)
                                  : within_limit_compile(run, target, request, set));
  tn_programs_report_fallbacks(run, set);
  if (target->answers != NULL)
    tn_logf(&run->env, TN_LOG_DEBUG, "%lld queries of kernels, %lld answers remembered",
            (long long)target->answers->asked, (long long)target->answers->remembered);
  return TN_OK;
}
