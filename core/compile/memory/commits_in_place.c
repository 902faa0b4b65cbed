/* core/compile/memory/commits_in_place.c: which commits are in place.
 *
 * A commit reads and writes one place: its value may be made there only when nobody reads the old
 * value any more. The old value is every state that lies in the place, in part or as a view of the
 * whole region. Where that does not hold the value is made in the arena and copied at the end, when
 * all readers are done. */
#include "core/compile/memory/memory_plan.h"

/* An operand that is the old value of a state. */
typedef struct old_read {
  int32_t group, operand;
} old_read;

typedef struct settling {
  tn_plan *plan;
  int32_t *step; /* per group */
  TN_VEC(old_read) reads;
} settling;

static tn_status collect_reads(settling *s) {
  for (size_t i = 0; i < s->plan->cover->groups.n; i++) {
    const tn_group *g = &s->plan->cover->groups.v[i];
    for (int32_t k = 0; k < g->n_in; k++) {
      const tn_buffer *b = g->in[k] == 0 ? NULL : &s->plan->buffers.v[s->plan->buffer_of.v[g->in[k]]];
      old_read read = {(int32_t)i, k};
      if (b != NULL && b->fixed && b->place.base == TN_BASE_REGION)
        TN_TRY(tn_vec_push(s->plan->env, &s->reads, read));
    }
  }
  return TN_OK;
}

/* The first step that writes a buffer or one of its parts. */
static int32_t first_write(const settling *s, int32_t buffer) {
  const tn_buffer *b = &s->plan->buffers.v[buffer];
  int32_t first = b->writer >= 0 ? s->step[b->writer] : INT32_MAX;
  for (int32_t p = b->first_part; p >= 0; p = s->plan->buffers.v[p].next_part)
    if (s->step[s->plan->buffers.v[p].writer] < first) first = s->step[s->plan->buffers.v[p].writer];
  return first;
}

static bool declares_pair(const tn_group *g, int32_t operand, int32_t result) {
  for (int32_t i = 0; i < g->choice.n_inplace; i++)
    if (g->choice.inplace[i][0] == operand && g->choice.inplace[i][1] == result) return true;
  return false;
}

/* The writer itself reads the old value through this operand: it must have said that it can, and read
 * just the bytes that it writes. What falls back reads a copy, made before. */
static bool writes_over(const settling *s, const tn_group *g, int32_t operand, int32_t buffer) {
  if (g->fallback != NULL) return true;
  const tn_buffer *read = &s->plan->buffers.v[s->plan->buffer_of.v[g->in[operand]]];
  const tn_buffer *written = &s->plan->buffers.v[buffer];
  const tn_plan_commit *c = &s->plan->commits.v[written->commit];
  if (read->place.offset != c->place.offset || read->bytes != c->bytes || written->pack) return false;
  for (int32_t k = 0; k < g->n_out; k++)
    if (s->plan->buffer_of.v[g->out[k]] == buffer) return declares_pair(g, operand, k);
  return false;
}

static bool read_allows(const settling *s, const old_read *read, int32_t buffer, int32_t first) {
  const tn_group *g = &s->plan->cover->groups.v[read->group];
  const tn_plan_commit *c = &s->plan->commits.v[s->plan->buffers.v[buffer].commit];
  const tn_buffer *old = &s->plan->buffers.v[s->plan->buffer_of.v[g->in[read->operand]]];
  if (!tn_buffer_overlaps(old, &c->place, c->bytes)) return true;
  return s->step[read->group] == first ? writes_over(s, g, read->operand, buffer)
                                       : s->step[read->group] < first;
}

static bool in_place(const settling *s, int32_t buffer) {
  int32_t first = first_write(s, buffer);
  for (size_t i = 0; i < s->reads.n; i++)
    if (!read_allows(s, &s->reads.v[i], buffer, first)) return false;
  return true;
}

/* The last step copies the value; no key is needed any more. */
static tn_status copy_at_end(tn_plan *plan, int32_t commit) {
  int32_t copy;
  TN_TRY(tn_plan_add_copy(plan, plan->commits.v[commit].value, 0, &copy));
  plan->buffers.v[copy].fixed = true;
  plan->buffers.v[copy].place = plan->commits.v[commit].place;
  return tn_vec_push(plan->env, &plan->order, plan->buffers.v[copy].writer);
}

/* A buffer that is settled in place holds a new value, so `reads` stays as it was collected; copies at
 * the end come after every reader. */
static tn_status settle_all(settling *s) {
  tn_plan *plan = s->plan;
  size_t n = plan->buffers.n;
  for (size_t b = 0; b < n; b++) {
    int32_t commit = plan->buffers.v[b].commit;
    if (commit < 0) continue;
    if (in_place(s, (int32_t)b)) {
      plan->buffers.v[b].fixed = true;
      plan->buffers.v[b].place = plan->commits.v[commit].place;
    } else {
      plan->buffers.v[b].commit = -1;
      TN_TRY(copy_at_end(plan, commit));
    }
  }
  return TN_OK;
}

tn_status tn_plan_settle(tn_plan *plan) {
  settling s = {.plan = plan, .step = tn_alloc(plan->env, plan->cover->groups.n * sizeof *s.step)};
  if (s.step == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->order.n; i++) s.step[plan->order.v[i]] = (int32_t)i;
  tn_status status = collect_reads(&s);
  if (status == TN_OK) status = settle_all(&s);
  tn_vec_free(plan->env, &s.reads);
  tn_release(plan->env, s.step);
  return status;
}
