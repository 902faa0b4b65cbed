/* core/train/programs/memory_limit.c: [run] memory_limit: the programs of a run within so many bytes of the
 * device.
 *
 * State, input slots and outputs are what they are; what the limit leaves beside them is the arena's, and
 * programs that need more make values again (core/compile/rematerialization/memory_limit.h). */
#include <math.h>

#include "core/train/programs/plan_file.h"

static const double mib = 1048576.0;

/* How often a guess of the largest batch is corrected. */
enum { GUESSES = 4 };

static int64_t planned_bytes(const tn_run *run, const tn_target *target, const tn_program_set *set) {
  return tn_executor_planned_bytes(set->map, set->list, set->n, tn_run_slots(run),
                                   target->properties.host_addressable != 0);
}

static int64_t largest_arena(const tn_program_set *set) {
  int64_t arena = 0;
  for (int32_t i = 0; i < set->n; i++)
    if (set->list[i]->arena_bytes > arena) arena = set->list[i]->arena_bytes;
  return arena;
}

/* ---- what would fit ---- */

static int64_t largest_batch(const tn_program_request *request) {
  int64_t batch = 0;
  for (int32_t i = 0; i < TN_PROGRAMS; i++)
    if (request->batch[i] > batch) batch = request->batch[i];
  return batch;
}

/* The fewest bytes with which no batch is larger than `batch`. */
static tn_status least_bytes(tn_run *run, const tn_target *target, const tn_program_request *request,
                             int64_t batch, int64_t *bytes) {
  tn_program_request smaller = *request;
  tn_program_set set;
  smaller.dump = NULL;
  smaller.arena_limit = 1;
  for (int32_t i = 0; i < TN_PROGRAMS; i++)
    if (smaller.batch[i] > batch) smaller.batch[i] = batch;
  TN_TRY(tn_programs_compile(run, target, &smaller, &set));
  *bytes = planned_bytes(run, target, &set);
  tn_programs_free(run, &set);
  return TN_OK;
}

/* The largest batch that fits, as far as a straight line finds it; 0: not even one sample. */
static tn_status find_batch(tn_run *run, const tn_target *target, const tn_program_request *request,
                            int64_t least, int64_t *batch) {
  int64_t most = largest_batch(request), one = 0, limit = run->settings.run.memory_limit;
  *batch = 0;
  if (most <= 1) return TN_OK;
  TN_TRY(least_bytes(run, target, request, 1, &one));
  if (one > limit) return TN_OK;
  double slope = (double)(least - one) / (double)(most - 1);
  int64_t guess = slope > 0 ? 1 + (int64_t)floor((double)(limit - one) / slope) : most - 1;
  if (guess > most - 1) guess = most - 1;
  *batch = 1;
  for (int i = 0; i < GUESSES && guess > 1; i++, guess -= 1 + guess / 16) {
    int64_t bytes;
    TN_TRY(least_bytes(run, target, request, guess, &bytes));
    if (bytes > limit) continue;
    *batch = guess;
    return TN_OK;
  }
  return TN_OK;
}

static tn_status too_little(tn_run *run, const tn_target *target, const tn_program_request *request,
                            const tn_program_set *set) {
  int64_t needed = planned_bytes(run, target, set), arena = largest_arena(set), batch;
  int64_t state = tn_state_map_bytes(set->map), most = largest_batch(request);
  tn_section *section = tn_ini_section(&run->ini, "run");
  const char *where = tn_key_where(&run->ini, section, tn_section_key(section, "memory_limit"));
  const char *advice;
  TN_TRY(find_batch(run, target, request, needed, &batch));
  if (batch > 0)
    advice = tn_arena_printf(&run->arena,
                             "raise memory_limit, or lower [data] batch: about %lld fits "
                             "([optimizer] accumulate makes up for a smaller one)",
                             (long long)batch);
  else
    advice = tn_arena_printf(&run->arena, "raise memory_limit; %s",
                             most > 1 ? "not even [data] batch = 1 fits" : "the batch cannot be smaller");
  if (!advice) return TN_ENOMEM;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [run] memory_limit: %.1f MiB is too little for a batch of %lld: at least %.1f MiB are "
                  "needed when everything that can be is recomputed (state %.1f MiB, arena %.1f MiB, inputs "
                  "and outputs %.1f MiB); %s",
                  where, (double)run->settings.run.memory_limit / mib, (long long)most,
                  ceil((double)needed / mib * 10) / 10, (double)state / mib, (double)arena / mib,
                  (double)(needed - state - arena) / mib, advice);
}

/* ---- within the limit ---- */

/* Once more, with the arena that the limit leaves. */
static tn_status compile_within(tn_run *run, const tn_target *target, const tn_program_request *request,
                                tn_program_set *set) {
  int64_t limit = run->settings.run.memory_limit;
  int64_t rest = limit - (planned_bytes(run, target, set) - largest_arena(set));
  tn_program_request smaller = *request;
  smaller.arena_limit = rest > 0 ? rest : 1;
  tn_programs_free(run, set);
  TN_TRY(tn_programs_compile(run, target, &smaller, set));
  if (planned_bytes(run, target, set) <= limit) return TN_OK;
  tn_status status = too_little(run, target, request, set);
  tn_programs_free(run, set);
  return status;
}

static tn_status compile_best(tn_run *run, const tn_target *target, const tn_program_request *request,
                              tn_program_set *set) {
  int64_t limit = run->settings.run.memory_limit;
  tn_text *dump = request->dump ? request->dump->dump : NULL;
  size_t start = dump ? dump->n : 0;
  TN_TRY(tn_programs_compile(run, target, request, set));
  if (limit == 0 || planned_bytes(run, target, set) <= limit) return TN_OK;
  if (dump) dump->n = start; /* what is shown is what will run */
  return compile_within(run, target, request, set);
}

/* The target with the choices of the run that is resumed. Covers keep it, so it lies in the run. */
static tn_status replaying(tn_run *run, const tn_target *target, const tn_target **replaying) {
  tn_target *copies = tn_arena_alloc(&run->arena, 2 * sizeof *copies);
  if (!copies) return TN_ENOMEM;
  copies[0] = *target;
  copies[0].replay = run->replay;
  if (target->fallback) {
    copies[1] = *target->fallback;
    copies[1].replay = run->replay;
    copies[0].fallback = &copies[1];
  }
  *replaying = copies;
  return TN_OK;
}

/* A model that was changed may need kernels that were not there when the run began. */
static tn_status compile_replayed(tn_run *run, const tn_target *target, const tn_program_request *request,
                                  tn_program_set *set) {
  const tn_target *same = target;
  TN_TRY(replaying(run, target, &same));
  tn_status status = compile_best(run, same, request, set);
  if (status != TN_EUNSUPPORTED) return status;
  tn_error_clear(&run->env);
  return compile_best(run, target, request, set);
}

tn_status tn_programs_build(tn_run *run, const tn_target *target, const tn_program_request *request,
                            tn_program_set *set) {
  if (request->batch[TN_PROGRAM_STEP] > 0) TN_TRY(tn_replay_open(run));
  TN_TRY(run->replay ? compile_replayed(run, target, request, set) : compile_best(run, target, request, set));
  tn_programs_tell_fallbacks(run, set);
  return TN_OK;
}
