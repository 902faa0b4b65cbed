/* core/step/programs/choose_buckets.c: see choose_buckets.h. */
#include "core/step/programs/choose_buckets.h"

#include <stdio.h>

#include "core/compile/kernels/collective_kernel.h"
#include "core/compile/kernels/recorded_choices.h"
#include "core/compile/output/overlap.h"
#include "core/step/programs/bucket_cuts.h"

/* The time that fewer buckets may cost, as a part of that until the last gradient is ready. */
static const double slack_part = 1e-3;

/* The largest bucket, as a part of all bytes: the first of these that costs no time, even where a larger one
 * would be hidden too. Over links that are slower than they are described, or beside kernels that are faster,
 * the first sums begin early. */
static const double most_parts[] = {1.0 / 8, 1.0 / 4, 1.0 / 2};

/* The collectives of a bucket. */
typedef struct bucket_costs {
  const tn_interconnect *interconnect;
  bool sharded;    /* a reduce_scatter, and an all_gather of `gathered` bytes for each */
  double gathered; /* byte that is reduced; 0: it has none that could run beside the backward pass */
} bucket_costs;

static double buckets_collective_s(const void *context, double bytes) {
  const bucket_costs *c = context;
  if (!c->sharded) return tn_collective_s(c->interconnect, TN_ALL_REDUCE, bytes);
  double gather = c->gathered > 0 ? tn_collective_s(c->interconnect, TN_ALL_GATHER, bytes * c->gathered) : 0;
  return tn_collective_s(c->interconnect, TN_REDUCE_SCATTER, bytes) + gather;
}

/* ---- the trial ---- */

/* The number in "bucket 7", the layer of a collective's nodes; -1: it reduces no gradients. */
static int32_t buckets_number(const tn_program *p, const tn_step *step) {
  const tn_group *g = step->group;
  const char *layer = p->cover->graph->nodes.v[g->nodes[0]].layer;
  int number = -1;
  bool named = layer != NULL && sscanf(layer, "bucket %d", &number) == 1;
  return named && g->role == TN_STREAM_COMM ? (int32_t)number : -1;
}

/* When each gradient is ready, and the bytes of its collectives, from a step with a bucket for each. Where
 * all updates wait for all gradients, for their norm or because they may be skipped, the all_gathers come
 * behind the last reduce_scatter, however the gradients are cut: they do not count. */
static void buckets_read_trial(const tn_program *step, const tn_step_times *times, int32_t n,
                               tn_ready_gradient *gradients, bucket_costs *costs) {
  double reduced = 0, gathered = 0, beside = 0;
  for (int32_t i = 0; i < step->n_steps; i++) {
    const tn_step *s = &step->steps[i];
    int32_t number = buckets_number(step, s);
    if (number < 0 || number >= n) continue;
    if (tn_kernel_collective(s->group->kernel) == TN_ALL_GATHER) {
      gathered += (double)tn_type_bytes(&s->out[0].type);
      continue;
    }
    gradients[number].ready_s = times[i].ready_s;
    gradients[number].bytes = (double)tn_type_bytes(&s->in[0].type);
    reduced += gradients[number].bytes;
    beside = gathered;
  }
  costs->gathered = beside > 0 ? gathered / reduced : 0;
}

/* The times of the kernels alone: in the trial, awaits are for other collectives than in the plan. */
static void buckets_read_times(tn_program *step, tn_step_times *times) {
  double compute_s = 0;
  for (int32_t i = 0; i < step->n_steps; i++) {
    times[i] = (tn_step_times){.ready_s = compute_s};
    if (step->steps[i].group->role != TN_STREAM_COMM) compute_s += step->steps[i].group->choice.cost_s;
  }
}

static tn_status buckets_keep(tn_run *run, const tn_reduced_bucket *trial, const bool *begins, int32_t n) {
  tn_bucket_cuts *cuts = tn_arena_alloc(&run->arena, sizeof *cuts);
  if (cuts == NULL) return TN_ENOMEM;
  cuts->first = tn_arena_alloc(&run->arena, tn_size_mul((size_t)n + 1, sizeof *cuts->first));
  if (cuts->first == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    if (!begins[i]) continue;
    cuts->first[cuts->n] = tn_arena_strdup(&run->arena, trial[i].first);
    if (cuts->first[cuts->n++] == NULL) return TN_ENOMEM;
  }
  run->cuts = cuts;
  return TN_OK;
}

/* Limits the size of buckets as far as that does not move the end. */
static tn_status buckets_cut(tn_env *env, tn_cut_problem *problem, double bytes, bool *begins) {
  TN_TRY(tn_cut_buckets(env, problem, begins));
  double end = tn_cut_end_s(env, problem, begins) + problem->slack_s;
  for (size_t i = 0; i < sizeof most_parts / sizeof *most_parts; i++) {
    problem->most_bytes = most_parts[i] * bytes;
    TN_TRY(tn_cut_buckets(env, problem, begins));
    if (tn_cut_end_s(env, problem, begins) <= end) return TN_OK;
  }
  problem->most_bytes = 0;
  return tn_cut_buckets(env, problem, begins);
}

static tn_status buckets_cut_trial(tn_run *run, const tn_program_set *set, const bucket_costs *costs,
                                   const tn_ready_gradient *gradients, bool *begins) {
  int32_t n = set->update.n_buckets;
  double last = 0, bytes = 0;
  for (int32_t i = 0; i < n; i++) {
    last = gradients[i].ready_s > last ? gradients[i].ready_s : last;
    bytes += gradients[i].bytes;
  }
  tn_cut_problem problem = {gradients, n, buckets_collective_s, costs, slack_part * last, 0};
  TN_TRY(buckets_cut(&run->env, &problem, bytes, begins));
  TN_TRY(buckets_keep(run, set->update.buckets, begins, n));
  tn_logf(&run->env, TN_LOG_DEBUG, "%d gradients in %d buckets", (int)n, (int)run->cuts->n);
  return TN_OK;
}

static tn_status buckets_solve(tn_run *run, const tn_target *target, tn_program_set *set) {
  tn_program *step = set->programs[tn_phase_program(TN_PROGRAM_STEP, run->settings.n_phases - 1)];
  int32_t n = set->update.n_buckets;
  bucket_costs costs = {&target->interconnect,
                        tn_settings_shards(&run->settings, target->interconnect.ranks) > 1, 0};
  tn_ready_gradient *gradients = tn_arena_alloc(&set->arena, tn_size_mul((size_t)n + 1, sizeof *gradients));
  tn_step_times *times = tn_arena_alloc(&set->arena, tn_size_mul((size_t)step->n_steps + 1, sizeof *times));
  bool *begins = tn_arena_alloc(&set->arena, (size_t)n + 1);
  if (gradients == NULL || times == NULL || begins == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) gradients[i].part = set->update.buckets[i].part;
  buckets_read_times(step, times);
  buckets_read_trial(step, times, n, gradients, &costs);
  return buckets_cut_trial(run, set, &costs, gradients, begins);
}

static tn_status buckets_try(tn_run *run, const tn_target *target, const tn_program_request *request) {
  static const tn_bucket_cuts each = {.each = true};
  tn_program_request trial = {.loaders = {request->loaders[0], request->loaders[1]}};
  tn_program_set set;
  trial.batch[TN_PROGRAM_STEP] = request->batch[TN_PROGRAM_STEP];
  run->cuts = &each;
  tn_status status = tn_programs_compile(run, target, &trial, &set);
  run->cuts = NULL;
  if (status != TN_OK) return status;
  status = buckets_solve(run, target, &set);
  tn_programs_free(run, &set);
  return status;
}

/* ---- those of an earlier run, or of process 0 ---- */

static tn_status buckets_repeat(tn_run *run, const tn_recorded_choices *choices) {
  tn_bucket_cuts *cuts = tn_arena_alloc(&run->arena, sizeof *cuts);
  if (cuts == NULL) return TN_ENOMEM;
  cuts->first = choices->buckets;
  cuts->n = choices->n_buckets;
  run->cuts = cuts;
  return TN_OK;
}

tn_status tn_run_choose_buckets(tn_run *run, const tn_target *target, const tn_program_request *request) {
  bool asked = run->settings.bucket == TN_BUCKET_AUTO && tn_run_ranks(run) > 1;
  if (!asked || request->batch[TN_PROGRAM_STEP] == 0 || run->cuts != NULL) return TN_OK;
  if (request->choices != NULL && request->choices->n_buckets > 0)
    return buckets_repeat(run, request->choices);
  return buckets_try(run, target, request);
}
