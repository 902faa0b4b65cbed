/* core/step/profile/step_profile.h: a profile of steps: where the time of launches, copies, the loader and
 * the host goes, as JSON, as a table, and as a trace. Training and benchmarks take it. */
#pragma once

#include <jansson.h>

#include "core/data/loader.h"
#include "core/step/programs/programs.h"

/* Steps that --trace profiles where [run] profile names no number, and those before them. */
enum { TN_PROFILE_STEPS = 10, TN_PROFILE_WARMUP = 2 };

typedef struct tn_step_profile tn_step_profile;

/* The objects of a profile. The loader is started anew, or destroyed, before the profile is destroyed: until
 * then its threads may add spans. */
typedef struct tn_profiled {
  tn_run *run;
  const tn_program_set *set;
  tn_executor *executor; /* NULL: a loader alone */
  tn_loader *loader;     /* or NULL */
  int32_t workers;       /* threads of the loader */
} tn_profiled;

/* Has begun no step. tn_step_profile_destroy accepts NULL. */
tn_status tn_step_profile_create(const tn_profiled *what, tn_step_profile **profile);
/* In a pause: another loader takes the place of the profile's, which may be destroyed. NULL: nothing happens.
 */
void tn_step_profile_set_loader(tn_step_profile *profile, tn_loader *loader);
void tn_step_profile_destroy(tn_step_profile *profile);

/* Before the first step, and before the next one after a pause; no step is under way. Runs of the executor
 * replay no captures until the next pause. */
tn_status tn_step_profile_resume(tn_step_profile *profile);
bool tn_step_profile_runs(const tn_step_profile *profile);
/* After some steps, which have been waited for. Does nothing in a pause. */
tn_status tn_step_profile_pause(tn_step_profile *profile);

/* Adds a span of the host, from start_s until now; TN_SPAN_STEP: as step `number`. NULL: nothing happens. */
void tn_step_profile_host(tn_step_profile *profile, int32_t kind, double start_s, int64_t number);

/* The steps that were profiled. */
typedef struct tn_profiled_steps {
  int64_t first, n, samples; /* first: counted from 1 */
  int64_t of;                /* the run's; 0: unknown */
} tn_profiled_steps;

/* After a pause: the profile as docs/guide/results.md describes it. The caller's reference. */
tn_status tn_step_profile_report(tn_step_profile *profile, const tn_profiled_steps *steps, json_t **report);
/* Writes all spans to a file in the trace event format (core/formats/trace.h). */
tn_status tn_step_profile_write_trace(tn_step_profile *profile, const char *path);

/* profile_table.c: appends the report as lines of at most 80 columns. */
void tn_profile_table(const json_t *report, tn_text *text);

/* Whether a trace can be written to a path, before the work that it shows: TN_EIO or TN_EINVAL with the
 * reason. */
tn_status tn_profile_check_path(const void *handle, const char *path);
