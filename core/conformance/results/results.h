/* core/conformance/results/results.h: the results of a run of the suite: passed, failed and unsupported
 * cases, the kernels that ran, and the report of them. */
#pragma once

#include "core/conformance/trial/trial.h"
#include "tenon/conformance.h"

/* A parsed filter such as "matmul/f32/3/gradient". */
typedef struct tn_suite_filter {
  char op[128];     /* "": any; with the name of a check, "source:rings/workers" */
  int32_t dtype;    /* TN_ANY: any */
  int64_t draw;     /* -1: any */
  int32_t gradient; /* -1: either */
} tn_suite_filter;

/* One line of the list of unsupported ops. */
typedef struct tn_suite_known {
  const char *line, *op, *dtype;
  bool met; /* a case that it names was unsupported */
} tn_suite_known;

typedef struct tn_suite_failure {
  const char *name, *reason;
} tn_suite_failure;

typedef struct tn_suite_kernel {
  const char *name, *plugin;
  int64_t launches;
} tn_suite_kernel;

/* How many trials of an op and dtype were judged. */
typedef struct tn_suite_count {
  const char *op;
  int32_t dtype;
  int64_t trials;
} tn_suite_count;

typedef struct tn_suite {
  tn_env *env;
  tn_arena arena; /* of names and reasons */
  tn_trial_site site;
  const tn_conformance_options *options;
  tn_suite_filter filter;
  int64_t draws, passed;
  uint64_t bits;         /* hash of the bits of all verdicts, in order */
  bool entered;          /* options->after was met, or there is none */
  const char *broken_in; /* the case that broke the device: all further cases are skipped; NULL: it works */
  TN_VEC(tn_suite_known) known;
  TN_VEC(tn_suite_failure) failed, unsupported;
  TN_VEC(tn_suite_kernel) kernels;
  TN_VEC(tn_suite_count) counts;
} tn_suite;

/* ---- filter.c ---- */

/* Parse options->only and options->unsupported. */
tn_status tn_suite_read_filter(tn_suite *suite);
tn_status tn_suite_read_known(tn_suite *suite);
/* Whether the filter selects a trial. */
bool tn_suite_selects(const tn_suite *suite, const tn_trial *trial);
/* Whether it selects the check `name`, "source:rings/workers", of `item`, "source:rings". */
bool tn_suite_selects_check(const tn_suite *suite, const char *item, const char *name);

/* Whether options->only, options->after or options->quick leave cases out, so that the whole cannot be
 * judged. */
bool tn_suite_is_partial(const tn_suite *suite);

/* ---- results.c ---- */

/* "matmul/f32/3"; NULL: out of memory. */
const char *tn_suite_trial_name(tn_suite *suite, const tn_trial *trial);
/* Whether the case runs: the device works, and options->after lies before it. Announces it to the caller
 * then. */
bool tn_suite_begin(tn_suite *suite, const char *name);
/* Records the verdict of a trial. */
tn_status tn_suite_record(tn_suite *suite, const tn_trial *trial, const tn_verdict *verdict);
/* Records a failure and reports it to the caller. */
tn_status tn_suite_fail(tn_suite *suite, const char *name, const char *reason);
/* Records a case of the device, or a check of an item, as unsupported. "device/failure" is the op "device"
 * with the dtype "failure" in the list of unsupported ops. */
tn_status tn_suite_lack(tn_suite *suite, const char *name, const char *reason);
/* Counts a launch. tn_trial_watch.launched with the suite as context. */
void tn_suite_count_launch(void *suite, const char *kernel, const char *plugin);
/* After a case has failed: a device that no longer works ends the suite and is one more failure. */
tn_status tn_suite_check_device(tn_suite *suite, const char *name);

/* ---- report.c ---- */

/* The report as JSON, in memory of the context. */
tn_status tn_suite_report(const tn_suite *suite, char **json);
