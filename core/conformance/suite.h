/* core/conformance/suite.h: many trials, and what came of them. */
#ifndef TN_CORE_CONFORMANCE_SUITE_H
#define TN_CORE_CONFORMANCE_SUITE_H

#include "core/conformance/trial/trial.h"
#include "tenon/conformance.h"

/* "matmul/f32/3/gradient", taken apart. */
typedef struct tn_suite_filter {
  char op[64];      /* "": any */
  int32_t dtype;    /* TN_ANY: any */
  int64_t draw;     /* -1: any */
  int32_t gradient; /* -1: either */
} tn_suite_filter;

/* One line of what is known to be missing. */
typedef struct tn_suite_known {
  const char *line, *op, *dtype;
  bool met; /* something was missing that it names */
} tn_suite_known;

typedef struct tn_suite_failure {
  const char *name, *reason;
} tn_suite_failure;

typedef struct tn_suite_kernel {
  const char *name, *plugin;
  int64_t launches;
} tn_suite_kernel;

typedef struct tn_suite {
  tn_env *env;
  tn_arena arena; /* of all texts */
  tn_trial_site site;
  const tn_conformance_options *options;
  tn_suite_filter filter;
  int64_t draws, passed;
  uint64_t bits; /* of every verdict in turn */
  bool broken;   /* the device failed for good: nothing more is tried */
  TN_VEC(tn_suite_known) known;
  TN_VEC(tn_suite_failure) failed, unsupported;
  TN_VEC(tn_suite_kernel) kernels;
} tn_suite;

/* Whether the filter lets a use through. */
bool tn_suite_wants(const tn_suite *suite, const tn_trial *trial);
/* All uses of one case that the filter lets through. */
tn_status tn_suite_run_case(tn_suite *suite, const tn_case *c);
tn_status tn_suite_run_dtype(tn_suite *suite, const tn_case *c, int32_t dtype);
/* The device without any kernel: "device/memory", "device/zero" ... */
tn_status tn_suite_run_device(tn_suite *suite);
/* What happens behind a launch that fails: last, since the device is broken then. */
tn_status tn_suite_run_failure(tn_suite *suite);
/* The core's ops. */
tn_status tn_suite_run_core(tn_suite *suite);
/* The ops and kernels of options->plugin. */
tn_status tn_suite_run_plugin(tn_suite *suite);

/* Counts what a trial came to. */
tn_status tn_suite_note(tn_suite *suite, const tn_trial *trial, const tn_verdict *verdict);
/* Records a failure and says it. */
tn_status tn_suite_fail(tn_suite *suite, const char *name, const char *reason);
/* Says which case comes next. */
void tn_suite_begin(const tn_suite *suite, const char *name);
/* After a case has failed: a device that is broken for good ends the suite, and that is a failure of its own.
 */
tn_status tn_suite_look(tn_suite *suite, const char *name);

#endif
