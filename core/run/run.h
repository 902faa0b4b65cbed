/* core/run/run.h: a run: its configuration, messages and memory. */
#pragma once

#include <stdatomic.h>

#include "core/run/settings/settings.h"
#include "tenon/model.h"
#include "tenon/run.h"

struct tn_run {
  tn_env env;
  tn_error_record record;
  tn_context *context;
  tn_registry *registry;   /* the context's */
  struct tn_op_table *ops; /* the context's */
  tn_ini ini;
  tn_settings settings;
  tn_arena arena;
  const char *output, *resume; /* NULL: from the configuration */
  const char *trace;           /* of the options; NULL: none */
  /* Of the resumed run (records/runs/plan_file.h): its choices, to be repeated, or NULL; whether it
   * was compared with this one, and its plan.json could be read; and lines for the user about the
   * differences, or NULL. */
  const struct tn_recorded_choices *recorded_choices;
  bool compared, plan_read;
  const char *remarks;
  bool resume_asked; /* by the options; resume is NULL where "auto" finds no earlier run */
  /* Of the resumed run: a group that thaws at another epoch than before, and the last epoch in which that is
   * possible (records/runs/run_differences.h); NULL: no group does. */
  const char *thaw;
  int64_t thaw_until;
  /* While tn_run_train runs, of rank 0 (records/runs/run_folder.h): the lock on the run folder, and a
   * folder of this name that holds no checkpoint and is used anew; or NULL. */
  struct tn_run_lock *lock;
  const char *begun;
  const char *report;    /* the folder whose report.html is written when tn_run_train ends; NULL: none */
  const char *backend;   /* the name of the device's backend while tn_run_train runs; else NULL */
  tn_words command, set; /* tn_run_options.command and .set */
  int32_t terminal_columns;
  bool quiet, progress; /* of the options */
  /* Each rank has a tn_run of its own over the same configuration, with its own messages and memory. ranks is
   * 0 until the devices are counted, which stands for 1. */
  int32_t rank, ranks;
  /* Of tn_run_train and tn_run_bench: the process among those of the run, or NULL where it is alone; the
   * rank's number among the ranks of its process, and how many those are. */
  const struct tn_process_place *place;
  int32_t local, locals;
  /* [distributed] bucket = auto (step/programs/choose_buckets.h); NULL: not chosen. */
  const struct tn_bucket_cuts *cuts;
  tn_model_fn emit; /* emits the model; NULL: [model] describes it */
  void *emit_user;
  bool evaluating;    /* tn_run_eval: on all data, without [run] limit_valid and overfit */
  const char *absent; /* planning: why data could not be opened, as the log has it; NULL: they could */
  bool planning;      /* only plans are made: no device is opened, nothing runs, and nothing is measured */
  /* Describes the device that is planned for, or rehearsed by tn_run_bench; NULL: it is here. */
  const char *device_file;
  atomic_int stop; /* of the first rank of the process; record.stop leads to it */
  bool gave_up;    /* the rank was asked to stop, and had no batch for the next step (feeder.c) */
  struct tn_onnx_model *imported; /* of an opened .onnx file, which has the weights; NULL: a configuration */
  const char *weights_file;       /* that was loaded; NULL: none */
  const char *adapter_base;       /* the weights below the adapters of [adapt]; NULL: none were loaded */
  const char *class_names;        /* of the targets (records/checkpoints/class_names.h); NULL: unknown */
  /* The learnt state of the training data's source (records/checkpoints/learnt.h); NULL: it learns nothing.
   */
  const char *learnt;
  const char *target_units; /* of scaled targets (records/checkpoints/target_units.h); NULL: none is */
  bool hung; /* a rank's thread was left (distributed/ranks/ranks.h): the run and its context are never freed
              */
  double opened_s; /* tn_clock_s when the run was opened */
};

static inline int32_t tn_run_ranks(const tn_run *run) { return run->ranks > 1 ? run->ranks : 1; }
