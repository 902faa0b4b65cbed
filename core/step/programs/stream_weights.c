/* core/step/programs/stream_weights.c: [run] offload for weights that no update changes: they are streamed
 * (docs/decisions/0121-streamed-weights.md). How many may stay on the device depends on the arena, which
 * depends on the largest that is streamed. So programs are compiled with all of them streamed first, and then
 * some more times with those kept that the plan before had room for. */
#include "core/step/programs/within_limit.h"

/* Plans behind the first one. Room for less than this part of the memory is not worth another. */
enum { STREAM_PLANS = 4, STREAM_ROOM = 64 };

/* The arguments of tn_within_limit_stream. */
typedef struct stream_search {
  tn_run *run;
  const tn_target *target;
  tn_program_request *request;
  tn_program_set *set;
} stream_search;

static tn_status stream_plan(const stream_search *s, int64_t kept_bytes, int64_t *excess) {
  if (s->request->dump != NULL && s->request->dump->dump != NULL) s->request->dump->dump->n = 0;
  tn_programs_free(s->run, s->set);
  s->request->kept_bytes = kept_bytes;
  TN_TRY(tn_programs_compile(s->run, s->target, s->request, s->set));
  *excess = tn_within_limit_excess(s->run, s->target, s->request, s->set);
  tn_logf(&s->run->env, TN_LOG_DEBUG,
          "[run] offload: a plan with %.1f MiB of weights on the device has %.1f MiB too many",
          (double)kept_bytes / 1048576.0, (double)*excess / 1048576.0);
  return TN_OK;
}

static int64_t stream_memory(const stream_search *s) {
  int64_t limit = s->run->settings.run.memory_limit, there = tn_within_limit_memory(&s->target->properties);
  return limit > 0 && (there == 0 || limit < there) ? limit : there;
}

/* The bytes that would be on the device if no weight were streamed. */
static int64_t stream_streamed(const stream_search *s) {
  const tn_state_map *map = s->set->map;
  int64_t bytes = 0;
  for (size_t i = 0; i < map->regions.n; i++)
    if (map->regions.v[i].streamed) bytes += (int64_t)tn_region_bytes(&map->regions.v[i]);
  return bytes;
}

/* `excess`: of the set, in which nothing is kept, and which fits. A plan that keeps the same weights as the
 * one before is the last. */
static tn_status stream_keep(const stream_search *s, int64_t excess) {
  const int64_t all = stream_streamed(s), least = stream_memory(s) / STREAM_ROOM;
  int64_t fits = 0, before = -1;
  for (int32_t i = 0; i < STREAM_PLANS && stream_streamed(s) != before; i++) {
    int64_t kept = all - stream_streamed(s), next = kept - excess;
    if (excess <= 0 && -excess <= least) break;
    if (excess > 0 && next <= fits) next = fits + (kept > fits ? kept - fits : 0) / 2;
    before = stream_streamed(s);
    TN_TRY(stream_plan(s, next, &excess));
    if (excess <= 0) fits = next;
  }
  return excess > 0 ? stream_plan(s, fits, &excess) : TN_OK;
}

tn_status tn_within_limit_stream(tn_run *run, const tn_target *target, tn_program_request *request,
                                 tn_program_set *set) {
  stream_search s = {run, target, request, set};
  int64_t excess = tn_within_limit_excess(run, target, request, set);
  if (excess <= 0 || !tn_programs_can_stream(run, target, request)) return TN_OK;
  request->stream = true;
  TN_TRY(stream_plan(&s, 0, &excess));
  if (excess > 0) { /* values may be made again, too */
    tn_programs_free(run, set);
    return tn_within_limit_attempt(run, target, request, set);
  }
  TN_TRY(stream_keep(&s, excess));
  tn_logf(
      &run->env, TN_LOG_INFO,
      "[run] offload: %.1f MiB of weights are in memory of the host, and streamed to the device in each run",
      (double)stream_streamed(&s) / 1048576.0);
  return TN_OK;
}
