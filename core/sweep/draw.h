/* core/sweep/draw.h: the configurations of a sweep, and the runs of each. */
#pragma once

#include "core/run/run.h"
#include "core/sweep/values.h"

/* A configuration has a value for each of the options. It runs once for each seed and fold. */
typedef struct tn_sweep_draw {
  int32_t method; /* TN_SWEEP_..., not auto */
  tn_sweep_values *options;
  int32_t n_options;
  tn_words seeds;      /* values of run.seed; n is 0: that of the configuration file */
  int64_t folds;       /* 0: no folds */
  const char **values; /* [configuration][option] */
  int64_t configurations;
  int64_t repeats; /* runs of a configuration: seeds times folds */
} tn_sweep_draw;

enum { TN_SWEEP_MOST_RUNS = 10000 };

/* Reads the keys with a point of [sweep] and `set`, texts "section.key=VALUES", which have precedence, and
 * draws. Memory is that of the run's arena. TN_EINVAL: no key is to vary, a range in a grid, more than
 * TN_SWEEP_MOST_RUNS runs, or what tn_sweep_values_read refuses. */
tn_status tn_sweep_draw_runs(tn_run *run, const char *const *set, int32_t n_set, tn_sweep_draw *draw);
