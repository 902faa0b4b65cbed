/* core/compile/memory/commits_in_place.c: decides which commits are in place.
 *
 * The value of a commit may be made in the state's memory if all readers of the old value run before. The old
 * value is every state that overlaps that memory, be it a part of it or the whole region. Otherwise the value
 * is made in the arena and copied at the end, after all readers. */
#include "core/compile/kernels/collective_kernel.h"
#include "core/compile/memory/memory_plan.h"
#include "tenon/plugin/communicator.h"

/* An operand that is the old value of a state. */
typedef struct old_read {
  int32_t group, operand;
} old_read;

typedef struct commit_plan {
  tn_plan *plan;
  int32_t *step; /* per group */
  TN_VEC(old_read) reads;
} commit_plan;

static tn_status collect_old_reads(commit_plan *c) {
  for (size_t i = 0; i < c->plan->cover->groups.n; i++) {
    const tn_group *g = &c->plan->cover->groups.v[i];
    for (int32_t k = 0; k < g->n_in; k++) {
      const tn_buffer *b = g->in[k] == 0 ? NULL : &c->plan->buffers.v[c->plan->buffer_of.v[g->in[k]]];
      old_read read = {(int32_t)i, k};
      if (b != NULL && b->fixed && b->location.base == TN_BASE_REGION)
        TN_TRY(tn_vec_push(c->plan->env, &c->reads, read));
    }
  }
  return TN_OK;
}

/* The first step that writes a buffer or one of its parts. */
static int32_t first_write_step(const commit_plan *c, int32_t buffer) {
  const tn_buffer *b = &c->plan->buffers.v[buffer];
  int32_t first = b->writer >= 0 ? c->step[b->writer] : INT32_MAX;
  for (int32_t p = b->first_part; p >= 0; p = c->plan->buffers.v[p].next_part)
    if (c->step[c->plan->buffers.v[p].writer] < first) first = c->step[c->plan->buffers.v[p].writer];
  return first;
}

/* An all_gather writes to its operand what it reads there, where the operand is the rank's part of the result
 * (communicator.h). */
static bool gathers_own_part(const commit_plan *c, const tn_group *g, const tn_buffer *read,
                             const tn_plan_commit *commit) {
  return tn_kernel_collective(g->kernel) == TN_ALL_GATHER &&
         c->plan->map->regions.v[read->location.region].inside == commit->location.region;
}

/* The writer itself reads the old value as this operand: operand and result must be an in-place pair of
 * exactly the written bytes. A group on the fallback reads a copy that is made before, unless it is placed.
 */
static bool may_overwrite_operand(const commit_plan *c, const tn_group *g, int32_t operand, int32_t buffer) {
  if (g->fallback != NULL && !g->placed) return true;
  const tn_buffer *read = &c->plan->buffers.v[c->plan->buffer_of.v[g->in[operand]]];
  const tn_buffer *written = &c->plan->buffers.v[buffer];
  const tn_plan_commit *commit = &c->plan->commits.v[written->commit];
  if (gathers_own_part(c, g, read, commit)) return true;
  if (read->location.region != commit->location.region || read->location.offset != commit->location.offset ||
      read->bytes != commit->bytes || written->pack)
    return false;
  for (int32_t k = 0; k < g->n_out; k++)
    if (c->plan->buffer_of.v[g->out[k]] == buffer) return tn_group_is_inplace_pair(g, operand, k);
  return false;
}

static bool old_read_allows_commit(const commit_plan *c, const old_read *read, int32_t buffer,
                                   int32_t first) {
  const tn_group *g = &c->plan->cover->groups.v[read->group];
  const tn_plan_commit *commit = &c->plan->commits.v[c->plan->buffers.v[buffer].commit];
  const tn_buffer *old = &c->plan->buffers.v[c->plan->buffer_of.v[g->in[read->operand]]];
  if (!tn_buffer_overlaps(c->plan, old, &commit->location, commit->bytes)) return true;
  return c->step[read->group] == first ? may_overwrite_operand(c, g, read->operand, buffer)
                                       : c->step[read->group] < first;
}

static bool is_commit_in_place(const commit_plan *c, int32_t buffer) {
  int32_t first = first_write_step(c, buffer);
  for (size_t i = 0; i < c->reads.n; i++)
    if (!old_read_allows_commit(c, &c->reads.v[i], buffer, first)) return false;
  return true;
}

/* The schedule is complete, so the copy needs no key. */
static tn_status copy_commit_at_end(tn_plan *plan, int32_t commit) {
  int32_t copy;
  bool host = tn_plan_is_host_region(plan, &plan->commits.v[commit].location);
  TN_TRY(tn_plan_add_copy(plan, plan->commits.v[commit].value, host, 0, &copy));
  plan->buffers.v[copy].fixed = true;
  plan->buffers.v[copy].location = plan->commits.v[commit].location;
  return tn_vec_push(plan->env, &plan->order, plan->buffers.v[copy].writer);
}

/* `reads` stays valid during the loop: a buffer that gets a state's location holds a new value, and copies at
 * the end come after all readers. */
static tn_status decide_commits(commit_plan *c) {
  tn_plan *plan = c->plan;
  size_t n = plan->buffers.n;
  for (size_t b = 0; b < n; b++) {
    int32_t commit = plan->buffers.v[b].commit;
    if (commit < 0) continue;
    if (is_commit_in_place(c, (int32_t)b)) {
      plan->buffers.v[b].fixed = true;
      plan->buffers.v[b].location = plan->commits.v[commit].location;
    } else {
      plan->buffers.v[b].commit = -1;
      tn_plan_fix_placed_result(plan, (int32_t)b);
      TN_TRY(copy_commit_at_end(plan, commit));
    }
  }
  return TN_OK;
}

tn_status tn_plan_commits_in_place(tn_plan *plan) {
  commit_plan c = {.plan = plan, .step = tn_alloc(plan->env, plan->cover->groups.n * sizeof *c.step)};
  if (c.step == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->order.n; i++) c.step[plan->order.v[i]] = (int32_t)i;
  tn_status status = collect_old_reads(&c);
  if (status == TN_OK) status = decide_commits(&c);
  tn_vec_free(plan->env, &c.reads);
  tn_release(plan->env, c.step);
  return status;
}
