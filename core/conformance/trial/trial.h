/* core/conformance/trial/trial.h: one drawn use of an op, computed by the reference and by a device, and
 * compared. */
#pragma once

#include "core/conformance/cases/cases.h"
#include "core/exec/device/device.h"

/* The device and tables of trials. */
typedef struct tn_trial_site {
  tn_env *env;
  tn_registry *registry;
  struct tn_op_table *ops;
  const char *settings; /* options of items, a line each: "source:idx.images=/data/x"; NULL: none */
  tn_device *device;    /* its target leaves TN_TRIAL_GUARD bytes unused after every buffer */
} tn_trial_site;

/* Bytes after every buffer of the arena that must not be written. */
enum { TN_TRIAL_GUARD = 128 };

/* A run makes draws 0 .. TN_TRIAL_DRAWS - 1; a filter may name others. Two of eight draws have large shapes.
 * Every other draw has operands whose last reader is the op, so that results may be computed in place, and
 * results in the guarded arena. A plugin gets more draws, since its kernels may decline many. */
enum { TN_TRIAL_DRAWS = 8, TN_PLUGIN_DRAWS = 64 };

typedef struct tn_trial {
  const tn_case *c;
  int32_t dtype; /* of the op's T */
  int64_t draw;
  bool gradient; /* with the gradients of the results */
} tn_trial;

enum {
  TN_VERDICT_PASSED = 0,
  TN_VERDICT_FAILED = 1,
  TN_VERDICT_UNSUPPORTED = 2, /* no kernel accepts it, or no use could be drawn; text has the reason */
  TN_VERDICT_NOTHING = 3      /* there is no gradient */
};

typedef struct tn_verdict {
  int32_t what;
  uint64_t bits;  /* hash of all results; 0: a kernel is not deterministic */
  char text[768]; /* the reason, in one line; "" for passed */
} tn_verdict;

/* Called for each launch of a compiled trial. */
typedef struct tn_trial_watch {
  void (*launched)(void *context, const char *kernel, const char *plugin);
  void *context;
} tn_trial_watch;

/* Compares values with the reference, repeats the run and compares bits (a device with capture replays), and
 * checks the bytes outside all buffers. Faults of the device are verdicts; the status is that of the suite
 * itself. watch may be NULL. */
tn_status tn_trial_run(const tn_trial_site *site, const tn_trial *trial, const tn_trial_watch *watch,
                       tn_verdict *verdict);

/* ---- tolerance.c ---- */

/* The largest difference that rounding explains, relative to the largest element: c (sqrt(k) eps(acc) +
 * eps(T)), where k is the longest sum in the graph, acc the type that T is summed in (f32 for all narrower
 * ones), and c = 8 (rounding errors of a sum grow like sqrt(k): Higham, Accuracy and Stability of Numerical
 * Algorithms, 2002, section 2.8). Integers: 0. */
double tn_trial_tolerance(const tn_graph *graph, int32_t dtype);
