/* core/exec/fold_constants.c: what kernels make once of weights that stay as they are. */
#include "core/exec/bound_program.h"

/* Never equal to a version of the state, so that the first run folds. */
enum { NOT_YET = -1 };

tn_status tn_bind_folded(tn_executor *e, tn_bound_program *bound) {
  bound->folded_from = bound->program->folded_bytes > 0 ? NOT_YET : 0;
  return tn_executor_take(e, TN_MEMORY_DEVICE, bound->program->folded_bytes, &bound->folded);
}

void tn_unbind_folded(tn_executor *e, tn_bound_program *bound) {
  tn_executor_give(e, TN_MEMORY_DEVICE, bound->folded, bound->program->folded_bytes);
}

static tn_status fold_one(tn_executor *e, tn_bound_step *b) {
  return tn_device_enqueue(tn_device_of(e, b->step), b->foreign, b->step->group->kernel->fold, &b->host.pub);
}

/* Streams other than the compute stream have waited for its end by the last run's end. */
tn_status tn_fold_program(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  for (int32_t i = 0; i < bound->program->n_steps && bound->folded != NULL; i++) {
    tn_bound_step *b = &bound->slots[slot][i];
    tn_status status = b->host.pub.folded_bytes > 0 ? fold_one(e, b) : TN_OK;
    if (status != TN_OK) return tn_wrap_step(e, bound, b->step, status);
  }
  bound->folded_from = e->state_version;
  return TN_OK;
}
