#include "core/sweep/jobs.h"

#include "core/base/system/system.h"

/* Memory of a run beside that of its plan: the program, libraries, samples of its loader. */
static const int64_t OVERHEAD = INT64_C(128) << 20;

/* Runs that fit into half of the memory that is free: samples that loaders keep need the rest. */
static int64_t jobs_by_memory(int64_t peak) {
  int64_t free = tn_memory_available() / 2, each = peak + OVERHEAD;
  return free == 0 ? INT32_MAX : free > each ? free / each : 1;
}

static int64_t jobs_default(const json_t *plan, int64_t processors) {
  int64_t fitting = jobs_by_memory(json_integer_value(json_object_get(plan, "peak_bytes")));
  if (!json_is_true(json_object_get(plan, "host_memory"))) return 1;
  return fitting < processors ? fitting : processors;
}

tn_sweep_jobs tn_sweep_choose_jobs(tn_run *run, const json_t *plan, int64_t runs) {
  int64_t processors = tn_cpu_count(), jobs = run->settings.sweep.jobs;
  if (jobs == 0) jobs = jobs_default(plan, processors);
  if (jobs > runs) jobs = runs;
  int64_t threads = jobs < processors ? processors / jobs : 1;
  return (tn_sweep_jobs){(int32_t)jobs, run->settings.run.threads > 0 ? 0 : (int32_t)threads};
}
