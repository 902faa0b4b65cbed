/* core/compile/memory/memory_plan.c: runs the phases of the memory plan. */
#include "core/compile/memory/memory_plan.h"

tn_status tn_plan_make(tn_plan *plan) {
  TN_TRY(tn_plan_assign_buffers(plan));
  TN_TRY(tn_plan_collectives_in_place(plan));
  TN_TRY(tn_plan_schedule(plan));
  TN_TRY(tn_plan_place_transfers(plan));
  TN_TRY(tn_plan_commits_in_place(plan));
  TN_TRY(tn_plan_fallback_segments(plan));
  TN_TRY(tn_plan_reuse_buffers(plan));
  TN_TRY(tn_plan_overlap_streams(plan));
  TN_TRY(tn_plan_arena_offsets(plan));
  TN_TRY(tn_plan_host_offsets(plan));
  return tn_plan_offload_offsets(plan);
}

void tn_plan_free(tn_plan *plan) {
  tn_vec_free(plan->env, &plan->buffer_of);
  tn_vec_free(plan->env, &plan->buffers);
  tn_vec_free(plan->env, &plan->commits);
  tn_vec_free(plan->env, &plan->commits_end);
  tn_vec_free(plan->env, &plan->key);
  tn_vec_free(plan->env, &plan->order);
  tn_vec_free(plan->env, &plan->inputs);
  tn_vec_free(plan->env, &plan->outputs);
  tn_vec_free(plan->env, &plan->edges);
  tn_vec_free(plan->env, &plan->images);
  tn_vec_free(plan->env, &plan->segments);
  tn_vec_free(plan->env, &plan->out);
  tn_vec_free(plan->env, &plan->in);
  tn_arena_free(&plan->arena);
}
