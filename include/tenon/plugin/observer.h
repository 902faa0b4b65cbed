/* tenon/plugin/observer.h: who hears what a run does: progress bar, metric files, reports.
 *
 * Life cycle: open (main thread) -> event, always from one thread of the host's own, never the one
 * that launches steps, in order -> close. A slow observer delays other observers, not training; a
 * failing one is logged and left out from then on. */
#ifndef TENON_PLUGIN_OBSERVER_H
#define TENON_PLUGIN_OBSERVER_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum {
  TN_EVENT_RUN_START = 1,
  TN_EVENT_STEP = 2, /* a training step's numbers have arrived (some steps late) */
  TN_EVENT_VALID_STEP = 3,
  TN_EVENT_EPOCH_END = 4, /* train and, if there was one, valid hold means over the epoch */
  TN_EVENT_CHECKPOINT = 5,
  TN_EVENT_RUN_END = 6
};

/* A number with a name. Names are those of losses and metrics; "loss" is the total. */
typedef struct tn_metric {
  const char *name;
  double value;
} tn_metric;

/* What an observer may know about the run. Borrowed until close. */
typedef struct tn_run_info {
  uint32_t struct_size;
  const char *name, *folder;      /* folder "" when nothing is written */
  int64_t epochs, steps;          /* planned; -1: not known */
  int64_t steps_per_epoch, batch; /* batch: samples per step */
  int32_t terminal;               /* stderr is a terminal */
  int32_t terminal_columns;
  /* Where a resumed run goes on; 0 for a new one. What a log of before tells of later steps will be told
   * again, and so will the end of an epoch at this very step, unless it is over. */
  int64_t first_step;
  int32_t epoch_ended;
} tn_run_info;

typedef struct tn_event {
  uint32_t struct_size;
  int32_t kind;        /* TN_EVENT_... */
  int64_t epoch, step; /* from 0; step counts over the whole run */
  int64_t step_in_epoch;
  int64_t steps_in_epoch; /* -1: not known; for VALID_STEP those of validation */
  double seconds;         /* since the run started */
  double samples_per_s;   /* over the recent steps; 0: not known */
  double lr;
  int32_t n_train, n_valid;
  const tn_metric *train, *valid;
  const char *text; /* CHECKPOINT: its path; RUN_END: why; else "" */
  /* Updates are skipped whose gradients are not finite, where loss scaling, clipping or check_finite
   * asks for it. STEP: whether this one was; EPOCH_END: how many were; -1: none ever is. */
  int64_t skipped;
  double loss_scale; /* of the step; 0: the loss is not scaled */
} tn_event;

typedef struct tn_observer {
  tn_item item;
  int32_t always; /* 1: takes part in every run unless `observers` in [run] says otherwise */
  tn_status (*open)(tn_env *env, const void *options, const tn_run_info *run, void **observer);
  tn_status (*event)(tn_env *env, void *observer, const tn_event *event);
  void (*close)(tn_env *env, void *observer);
} tn_observer;

TN_END_C
#endif
