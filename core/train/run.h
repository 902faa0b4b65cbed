/* core/train/run.h: a run: its configuration, its messages and its memory. */
#ifndef TN_CORE_TRAIN_RUN_H
#define TN_CORE_TRAIN_RUN_H

#include <stdatomic.h>

#include "core/train/settings/settings.h"
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
  const char *output, *resume; /* as given; NULL: the configuration's */
  const struct tn_replay
      *recorded_choices; /* of the run that is resumed (plan_file.h); NULL: none were read */
  int32_t terminal_columns;
  /* Of several that train together: each has a tn_run of its own, with its own messages and memory, over the
   * same configuration. 0 ranks: nobody has asked yet, and there is one. */
  int32_t rank, ranks;
  tn_model_fn emit; /* the model, in place of [model]; NULL: the configuration has it */
  void *emit_user;
  bool planning; /* nothing is to run, not even to be measured */
  atomic_int stop;
  double opened_s; /* tn_clock_s when the run was opened */
};

static inline int32_t tn_run_ranks(const tn_run *run) { return run->ranks > 1 ? run->ranks : 1; }

#endif
