/* core/exec/profile.c: the times of every step. */
#include "core/exec/bound_program.h"

static void profile_drop(tn_executor *e) {
  for (int32_t p = 0; p < e->n_programs; p++) {
    tn_release(e->env, e->programs[p].times);
    e->programs[p].times = NULL;
  }
}

tn_status tn_executor_profile(tn_executor *e, bool on) {
  profile_drop(e);
  e->profile = false;
  for (int32_t p = 0; on && p < e->n_programs; p++) {
    tn_bound_program *bound = &e->programs[p];
    bound->times = tn_alloc(e->env, tn_size_mul((size_t)bound->program->n_steps, sizeof *bound->times));
    if (bound->times != NULL) continue;
    profile_drop(e);
    return TN_ENOMEM;
  }
  e->profile = on;
  return TN_OK;
}

const tn_step_time *tn_executor_step_times(const tn_executor *e, int32_t program) {
  return e->programs[program].times;
}
