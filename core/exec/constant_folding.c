/* core/exec/constant_folding.c: values that kernels compute once from parameters, such as packed weights, and
 * again after the state has changed. */
#include "core/exec/bound_program.h"

/* Differs from every state_version, so the first run folds. */
enum { NEVER_FOLDED = -1 };

tn_status tn_folded_create(tn_executor *e, tn_bound_program *bound) {
  bound->folded_version = bound->program->folded_bytes > 0 ? NEVER_FOLDED : 0;
  return tn_executor_allocate(e, TN_MEMORY_DEVICE, bound->program->folded_bytes, &bound->folded);
}

void tn_folded_destroy(tn_executor *e, tn_bound_program *bound) {
  tn_executor_free(e, TN_MEMORY_DEVICE, bound->folded, bound->program->folded_bytes);
}

static tn_status fold_step(tn_executor *e, tn_bound_step *b) {
  return tn_device_enqueue(tn_device_of(e, b->step), b->foreign, b->step->group->kernel->fold, &b->host.pub);
}

/* The fold runs on the step's own stream. By the end of a run, the other streams have awaited it. */
tn_status tn_folded_compute(tn_executor *e, tn_bound_program *bound, int32_t slot) {
  for (int32_t i = 0; i < bound->program->n_steps && bound->folded != NULL; i++) {
    tn_bound_step *b = &bound->slots[slot][i];
    tn_status status = b->host.pub.folded_bytes > 0 ? fold_step(e, b) : TN_OK;
    if (status != TN_OK) return tn_executor_wrap_step(e, bound, b->step, status);
  }
  bound->folded_version = e->state_version;
  return TN_OK;
}
