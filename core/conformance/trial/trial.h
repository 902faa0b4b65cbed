/* core/conformance/trial/trial.h: one drawn use of an op, computed by the reference and by a device, and what
 * the two have to agree on. */
#ifndef TN_CORE_CONFORMANCE_TRIAL_TRIAL_H
#define TN_CORE_CONFORMANCE_TRIAL_TRIAL_H

#include "core/conformance/cases/cases.h"
#include "core/exec/device/device.h"

/* Where trials take place. */
typedef struct tn_trial_site {
  tn_env *env;
  tn_registry *registry;
  struct tn_op_table *ops;
  tn_device *device; /* its target keeps TN_TRIAL_GUARD bytes free behind every buffer */
} tn_trial_site;

/* Bytes behind every buffer of the arena that nobody may write. */
enum { TN_TRIAL_GUARD = 128 };

/* Draws 0 .. TN_TRIAL_DRAWS - 1 are what a whole run makes; others can be asked for. Two of each eight have
 * large shapes; every other one has operands that die with the op, so that results may lie in them, and
 * results that lie in the guarded arena. What a plugin brings is one op or kernel, which attributes may rule
 * out often: it gets more. */
enum { TN_TRIAL_DRAWS = 8, TN_PLUGIN_DRAWS = 64 };

typedef struct tn_trial {
  const tn_case *c;
  int32_t dtype; /* of the op's T */
  int64_t draw;
  bool gradient; /* of the results, too */
} tn_trial;

enum {
  TN_VERDICT_PASSED = 0,
  TN_VERDICT_FAILED = 1,
  TN_VERDICT_UNSUPPORTED = 2, /* no kernel takes it, or no use could be drawn: text says why */
  TN_VERDICT_NOTHING = 3      /* there is no gradient */
};

typedef struct tn_verdict {
  int32_t what;
  uint64_t bits;  /* hash of all results; 0: a kernel says that it is not deterministic */
  char text[768]; /* why, in one line; "" for passed */
} tn_verdict;

/* Called for each launch of a compiled trial: which kernel took something. */
typedef struct tn_trial_watch {
  void (*launched)(void *context, const char *kernel, const char *plugin);
  void *context;
} tn_trial_watch;

/* Compares values with the reference, runs again for the same bits (which replays what a device has
 * captured), and looks at the bytes that nobody may write. Only memory and faults of our own are a status;
 * everything that the device does wrong is a verdict. watch may be NULL. */
tn_status tn_trial_run(const tn_trial_site *site, const tn_trial *trial, const tn_trial_watch *watch,
                       tn_verdict *verdict);

/* ---- between trial.c and the files beside it ---- */

/* The largest difference that rounding explains, relative to the largest element: c (sqrt(k) eps(acc) +
 * eps(T)), where k is the longest sum in the graph, acc the type that T is summed in (f32 for all narrower
 * ones), and c = 8 (rounding errors of a sum grow like sqrt(k): Higham, Accuracy and Stability of Numerical
 * Algorithms, 2002, section 2.8). Whole numbers: 0. */
double tn_trial_tolerance(const tn_graph *graph, int32_t dtype);

#endif
