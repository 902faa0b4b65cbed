/* core/bench/trace.c: --trace of a benchmark: a profile of some more steps, or batches. */
#include "core/bench/bench.h"

#include "core/base/system/system.h"

/* Writes the trace of a profile that has ended, and names it in the result. */
static tn_status bench_trace_write(tn_run *run, tn_step_profile *profile, json_t *result) {
  TN_TRY(tn_step_profile_write_trace(profile, run->trace));
  return json_object_set_new(result, "trace", tn_json_text(run->trace)) == 0
             ? TN_OK
             : tn_failf(&run->env, TN_ENOMEM, "no memory for the result");
}

tn_status tn_bench_trace(const tn_profiled *what, tn_status (*step)(void *context), void *context,
                         json_t *result) {
  tn_step_profile *profile = NULL;
  if (what->run->trace == NULL) return TN_OK;
  TN_TRY(tn_step_profile_create(what, &profile));
  tn_status status = tn_step_profile_resume(profile);
  for (int32_t i = 0; status == TN_OK && i < TN_PROFILE_STEPS; i++) {
    double start = tn_clock_s();
    status = step(context);
    tn_step_profile_host(profile, what->executor != NULL ? TN_SPAN_STEP : TN_SPAN_WAIT_BATCH, start, i + 1);
  }
  tn_status paused = tn_step_profile_pause(profile);
  if (status == TN_OK) status = paused;
  if (what->loader != NULL) tn_loader_start(what->loader, 0, 0); /* its threads add no more spans */
  if (status == TN_OK) status = bench_trace_write(what->run, profile, result);
  tn_step_profile_destroy(profile);
  return status;
}
