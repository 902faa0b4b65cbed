/* core/train/loop/find_nonfinite.c: finds the first op whose result was not finite.
 *
 * When a loss is read, its update has been applied, and maybe the next one: the state that led to the loss is
 * lost. Since a run is reproducible, the search returns to the last checkpoint, or to the start, and repeats
 * the steps with the same batches. After each step it checks the state, which shows a bad gradient earlier
 * than the loss does. It then restores the state before the first bad step, and repeats this step launch by
 * launch (core/exec/nonfinite/search.h). All ranks search together. */
#include "core/exec/nonfinite/search.h"

#include <math.h>
#include <string.h>

#include "core/exec/nonfinite/scan.h"
#include "core/train/loop/training.h"

typedef struct tn_step_search {
  tn_training *t;
  int64_t last_step; /* the last step to repeat */
  void **saved;      /* per region: the state before the current step; NULL: not read yet */
  tn_nonfinite_search *finite;
  int64_t repeated; /* the step that was repeated launch by launch; 0: none */
  bool stopped;
} tn_step_search;

/* ---- state ---- */

/* Reads a region into `data`, or writes it from there. */
static tn_status nonfinite_copy_region(tn_step_search *s, size_t r, void *data, bool back) {
  const tn_region *region = &s->t->set.map->regions.v[r];
  char *path = tn_arena_printf(&s->t->set.arena, "@%s", region->name);
  size_t bytes = tn_region_bytes(region);
  if (path == NULL) return TN_ENOMEM;
  tn_status status = back ? tn_executor_write(s->t->executor, path, data, bytes)
                          : tn_executor_read(s->t->executor, path, data, bytes);
  return status;
}

static tn_status nonfinite_save_state(tn_step_search *s) {
  tn_env *env = &s->t->run->env;
  size_t n = s->t->set.map->regions.n;
  if (s->saved == NULL && (s->saved = tn_alloc(env, tn_size_mul(n + 1, sizeof *s->saved))) == NULL)
    return TN_ENOMEM;
  for (size_t r = 0; r < n; r++) {
    if (s->saved[r] == NULL) s->saved[r] = tn_alloc(env, tn_region_bytes(&s->t->set.map->regions.v[r]) + 1);
    if (s->saved[r] == NULL) return TN_ENOMEM;
    TN_TRY(nonfinite_copy_region(s, r, s->saved[r], false));
  }
  return TN_OK;
}

static tn_status nonfinite_restore_state(tn_step_search *s) {
  for (size_t r = 0; r < s->t->set.map->regions.n; r++)
    TN_TRY(nonfinite_copy_region(s, r, s->saved[r], true));
  return TN_OK;
}

static void nonfinite_free_state(tn_step_search *s) {
  for (size_t r = 0; s->saved && r < s->t->set.map->regions.n; r++) tn_release(&s->t->run->env, s->saved[r]);
  tn_release(&s->t->run->env, s->saved);
}

static tn_status nonfinite_check_state(tn_step_search *s, const tn_placement *state, bool *finite) {
  tn_env *env = &s->t->run->env;
  size_t bytes = tn_type_bytes(&state->type);
  void *data = tn_alloc(env, bytes + 1);
  tn_status status = data ? tn_executor_read(s->t->executor, state->path, data, bytes) : TN_ENOMEM;
  if (status == TN_OK)
    *finite = tn_scan_elements(state->type.dtype, data, tn_type_count(&state->type)).kind == TN_SCAN_FINITE;
  tn_release(env, data);
  return status;
}

/* Of a region that is divided among ranks, each rank looks at its part. */
static tn_status nonfinite_check_parts(tn_step_search *s, bool *finite) {
  const tn_state_map *map = s->t->set.map;
  for (size_t r = 0; *finite && r < map->regions.n; r++)
    if (map->regions.v[r].shards > 1) TN_TRY(nonfinite_check_state(s, &map->regions.v[r].whole, finite));
  return TN_OK;
}

/* Whether all state that a checkpoint would hold is finite. */
static tn_status nonfinite_check_states(tn_step_search *s, bool *finite) {
  const tn_state_map *map = s->t->set.map;
  *finite = true;
  TN_TRY(nonfinite_check_parts(s, finite));
  for (size_t i = 0; *finite && i < map->states.n; i++) {
    const tn_placement *p = &map->states.v[i];
    bool lasts = p->what == TN_STATE_PARAM || p->what == TN_STATE_BUFFER || p->what == TN_STATE_OPTIMIZER;
    if (lasts && p->path[0] != '@' && tn_dtype_is_float(p->type.dtype) && tn_state_map_shards(map, p) == 1)
      TN_TRY(nonfinite_check_state(s, p, finite));
  }
  return TN_OK;
}

/* ---- what ranks agree on ---- */

enum { STEP_NONFINITE = 1, RUN_STOPPED = 2 };

static tn_status nonfinite_agree(tn_step_search *s, int32_t *flags) {
  tn_training *t = s->t;
  int32_t n = tn_run_ranks(t->run), *all = tn_alloc(&t->run->env, tn_size_mul((size_t)n, sizeof *all));
  if (all == NULL) return TN_ENOMEM;
  tn_status status = tn_ranks_all_gather(t->ranks, &t->run->env, t->run->rank,
                                         "the step whose values are not finite", flags, sizeof *flags, all);
  for (int32_t r = 0; status == TN_OK && r < n; r++) *flags |= all[r];
  tn_release(&t->run->env, all);
  return status;
}

/* ---- steps ---- */

/* Starts the loader at the next batch of the progress. */
static tn_status nonfinite_begin_epoch(tn_step_search *s) {
  tn_training *t = s->t;
  tn_training_count_epoch(t); /* the position may be one of the epoch before */
  if (t->progress.batch >= t->steps_per_epoch) {
    t->progress.epoch++;
    t->progress.batch = 0;
  }
  t->n_ahead = 0;
  TN_TRY(tn_feeder_stop(t->train));
  return tn_training_start_data(t);
}

/* Takes a step; sets STEP_NONFINITE in *flags if its loss or state is not finite. */
static tn_status nonfinite_take_step(tn_step_search *s, int32_t *flags) {
  tn_training *t = s->t;
  bool finite = true;
  tn_status status = tn_training_step(t);
  *flags = status == TN_ENONFINITE ? STEP_NONFINITE : status == TN_ESTOPPED ? RUN_STOPPED : 0;
  if (status != TN_OK && *flags == 0) return status;
  if (status == TN_OK) TN_TRY(nonfinite_check_states(s, &finite));
  *flags |= finite ? 0 : STEP_NONFINITE;
  *flags |= atomic_load(&t->run->stop) ? RUN_STOPPED : 0;
  return nonfinite_agree(s, flags);
}

/* Repeats the last step launch by launch, from the saved state. */
static tn_status nonfinite_repeat_step(tn_step_search *s, const tn_progress *before) {
  tn_training *t = s->t;
  TN_TRY(nonfinite_restore_state(s));
  t->progress = *before;
  s->repeated = before->step + 1;
  TN_TRY(nonfinite_begin_epoch(s));
  TN_TRY(tn_nonfinite_search_create(t->executor, &s->finite));
  tn_status status = tn_training_step(t);
  s->stopped = status == TN_ESTOPPED;
  return status == TN_ENONFINITE || s->stopped ? TN_OK : status;
}

static tn_status nonfinite_retrace(tn_step_search *s) {
  tn_training *t = s->t;
  int32_t flags = 0;
  TN_TRY(tn_training_rewind(t));
  if (t->run->rank == 0)
    tn_logf(&t->run->env, TN_LOG_INFO,
            "searching the first op whose result is not finite: repeating the steps from %lld on",
            (long long)t->progress.step + 1);
  t->lost_steps_in_a_row = 0;
  TN_TRY(nonfinite_begin_epoch(s));
  while (t->progress.step < s->last_step) {
    tn_progress before = t->progress;
    if (t->progress.batch >= t->steps_per_epoch) TN_TRY(nonfinite_begin_epoch(s));
    TN_TRY(nonfinite_save_state(s));
    TN_TRY(nonfinite_take_step(s, &flags));
    s->stopped = (flags & RUN_STOPPED) != 0;
    if (s->stopped) return TN_OK;
    if ((flags & STEP_NONFINITE) || t->progress.step >= s->last_step)
      return nonfinite_repeat_step(s, &before);
  }
  return TN_OK;
}

/* Validation does not change the state, so the pass is repeated at once. */
static tn_status nonfinite_validate(tn_step_search *s) {
  tn_training *t = s->t;
  tn_validation pass = tn_training_validation(t);
  TN_TRY(tn_feeder_stop(t->valid));
  TN_TRY(tn_nonfinite_search_create(t->executor, &s->finite));
  tn_metric_sums_reset(&t->valid_sums);
  tn_status status = tn_validation_run(t->run, &pass, &t->valid_sums);
  return status == TN_ESTOPPED ? TN_OK : status;
}

static tn_status nonfinite_search(tn_step_search *s) {
  tn_training *t = s->t;
  int32_t flags = 0;
  bool finite = true;
  for (int32_t i = 0; i < t->slots; i++) TN_TRY(tn_executor_slot_wait(t->executor, i));
  TN_TRY(tn_feeder_stop(t->train));
  if (!t->validation_failed) return nonfinite_retrace(s);
  TN_TRY(nonfinite_check_states(s, &finite));
  flags = finite ? 0 : STEP_NONFINITE;
  TN_TRY(nonfinite_agree(s, &flags));
  return flags & STEP_NONFINITE ? nonfinite_retrace(s) : nonfinite_validate(s);
}

/* ---- what came of it ---- */

typedef struct tn_step_finding {
  int64_t position;
  int32_t what;
  char text[1024];
} tn_step_finding;

/* Weights of a file are finite, so state that is not finite before the first step comes from an initializer.
 */
static const char *nonfinite_advice(const tn_step_search *s, int32_t what) {
  if (what == TN_NONFINITE_STATE && s->repeated != 1) what = TN_NONFINITE_OP;
  switch (what) {
  case TN_NONFINITE_INPUT: return "check the values of the source and the transforms of [data]";
  case TN_NONFINITE_STATE: return "check the initializers of the model";
  case TN_NONFINITE_DERIVED:
    return "a parameter is too large for that type: a lower lr, weight_decay or bf16 may help";
  default: return "a lower lr or [optimizer] clip may help";
  }
}

/* "in step 17, " where an earlier step than the one of the message has the first value. */
static const char *nonfinite_earlier_step(const tn_step_search *s) {
  bool earlier = s->repeated > 0 && s->repeated < s->last_step;
  const char *text =
      earlier ? tn_arena_printf(&s->t->set.arena, "in step %lld, ", (long long)s->repeated) : "";
  return text != NULL ? text : "";
}

/* The earliest finding of all ranks becomes the message of each rank. */
static tn_status nonfinite_conclude(tn_step_search *s, const char *failure) {
  tn_training *t = s->t;
  tn_env *env = &t->run->env;
  int32_t n = tn_run_ranks(t->run), first = -1;
  tn_step_finding *mine = tn_alloc(env, sizeof *mine),
                  *all = tn_alloc(env, tn_size_mul((size_t)n, sizeof *all));
  tn_status status = mine && all ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && s->finite) {
    const char *text;
    mine->what = tn_nonfinite_search_result(s->finite, &text, &mine->position);
    strncat(mine->text, text, sizeof mine->text - 1);
  }
  if (status == TN_OK)
    status = tn_ranks_all_gather(t->ranks, env, t->run->rank, "the first op whose result is not finite", mine,
                                 sizeof *mine, all);
  for (int32_t r = 0; status == TN_OK && r < n; r++)
    if (all[r].what && (first < 0 || all[r].position < all[first].position)) first = r;
  if (first >= 0) {
    t->explained = true;
    tn_failf(env, TN_ENONFINITE, "%s: %s%s%s; %s", failure, nonfinite_earlier_step(s),
             n > 1 && first > 0 ? "on another rank, " : "", all[first].text,
             nonfinite_advice(s, all[first].what));
  }
  tn_release(env, mine);
  tn_release(env, all);
  return status;
}

tn_status tn_training_find_nonfinite(tn_training *t) {
  tn_env *env = &t->run->env;
  tn_step_search s = {.t = t, .last_step = t->failed_step > 0 ? t->failed_step : t->progress.step};
  tn_progress progress = t->progress;
  tn_observers *observers = t->observers; /* the repeated steps are not reported to observers */
  tn_metric_sums epoch;
  char *failure = tn_arena_strdup(&t->set.arena, tn_error_text(env));
  TN_TRY(failure ? tn_metric_sums_init(&t->set.arena, &t->set, &epoch) : TN_ENOMEM);
  tn_metric_sums_copy(&epoch, &t->epoch_sums);
  t->observers = NULL;
  tn_training_drop_profile(t);
  t->max_ahead = 0;
  t->steps_per_launch = 1;
  tn_status status = nonfinite_search(&s);
  if (status == TN_OK) status = nonfinite_conclude(&s, failure);
  t->observers = observers;
  t->progress = progress;
  t->failed_step = s.last_step;
  tn_metric_sums_copy(&t->epoch_sums, &epoch);
  tn_nonfinite_search_destroy(s.finite);
  nonfinite_free_state(&s);
  /* on one rank the original failure is reported without the search; other ranks must be told */
  if (status != TN_OK && tn_run_ranks(t->run) > 1) return status;
  if (status != TN_OK)
    tn_logf(env, TN_LOG_WARN, "the first op whose result is not finite was not found: %s",
            tn_error_text(env));
  return t->explained ? TN_ENONFINITE : tn_failf(env, TN_ENONFINITE, "%s", failure);
}
