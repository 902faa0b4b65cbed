/* core/train/loop/find_nonfinite.c: which op of which layer was the first to give something that is not
 * finite.
 *
 * When a loss is read, its step has been applied, and maybe another one behind it: the state from which the
 * value came is gone. But a run is reproducible, so it goes back to its last checkpoint, or to its start, and
 * takes the same steps with the same batches once more. After each of them the state is looked at, which
 * finds a bad gradient before the loss shows it; the first bad step is then undone, and done again launch by
 * launch (core/exec/nonfinite/search.h). All ranks do this together. */
#include "core/exec/nonfinite/search.h"

#include <math.h>
#include <string.h>

#include "core/exec/nonfinite/scan.h"
#include "core/train/loop/training.h"

typedef struct tn_search {
  tn_fit *t;
  int64_t until; /* the step whose loss was not finite, or after which something else was */
  void **kept;   /* per region: before the step that is being taken; NULL: not read yet */
  tn_finite *finite;
  bool stopped;
} tn_search;

/* ---- state ---- */

static size_t region_bytes(const tn_region *region) {
  return tn_size_mul((size_t)region->count, tn_dtype_size(region->dtype));
}

/* Reads or writes a region as a whole. */
static tn_status move_region(tn_search *s, size_t r, void *data, bool back) {
  const tn_region *region = &s->t->set.map->regions.v[r];
  char *path = tn_arena_printf(&s->t->set.arena, "@%s", region->name);
  size_t bytes = region_bytes(region);
  if (!path) return TN_ENOMEM;
  tn_status status = back ? tn_executor_write(s->t->executor, path, data, bytes)
                          : tn_executor_read(s->t->executor, path, data, bytes);
  return status;
}

static tn_status keep_state(tn_search *s) {
  tn_env *env = &s->t->run->env;
  size_t n = s->t->set.map->regions.n;
  if (!s->kept && !(s->kept = tn_alloc(env, tn_size_mul(n + 1, sizeof *s->kept)))) return TN_ENOMEM;
  for (size_t r = 0; r < n; r++) {
    if (!s->kept[r]) s->kept[r] = tn_alloc(env, region_bytes(&s->t->set.map->regions.v[r]) + 1);
    if (!s->kept[r]) return TN_ENOMEM;
    TN_TRY(move_region(s, r, s->kept[r], false));
  }
  return TN_OK;
}

static tn_status undo(tn_search *s) {
  for (size_t r = 0; r < s->t->set.map->regions.n; r++) TN_TRY(move_region(s, r, s->kept[r], true));
  return TN_OK;
}

static void forget_state(tn_search *s) {
  for (size_t r = 0; s->kept && r < s->t->set.map->regions.n; r++) tn_release(&s->t->run->env, s->kept[r]);
  tn_release(&s->t->run->env, s->kept);
}

static tn_status look_at(tn_search *s, const tn_placement *state, bool *fine) {
  tn_env *env = &s->t->run->env;
  size_t bytes = tn_type_bytes(&state->type);
  void *data = tn_alloc(env, bytes + 1);
  tn_status status = data ? tn_executor_read(s->t->executor, state->path, data, bytes) : TN_ENOMEM;
  if (status == TN_OK)
    *fine = tn_seen_of(state->type.dtype, data, tn_type_count(&state->type)).kind == TN_SEEN_FINITE;
  tn_release(env, data);
  return status;
}

/* Whether all that a checkpoint would hold is finite. */
static tn_status look_at_state(tn_search *s, bool *fine) {
  const tn_state_map *map = s->t->set.map;
  *fine = true;
  for (size_t i = 0; *fine && i < map->states.n; i++) {
    const tn_placement *p = &map->states.v[i];
    bool lasts = p->what == TN_STATE_PARAM || p->what == TN_STATE_BUFFER || p->what == TN_STATE_SLOT;
    if (lasts && p->path[0] != '@' && tn_dtype_is_float(p->type.dtype)) TN_TRY(look_at(s, p, fine));
  }
  return TN_OK;
}

/* What programs of one update leave for each other has no value that begins, and old values would be found
 * where they have no effect. */
static tn_status clear_scratch(tn_search *s) {
  tn_env *env = &s->t->run->env;
  const tn_state_map *map = s->t->set.map;
  tn_status status = TN_OK;
  for (size_t i = 0; status == TN_OK && i < map->states.n; i++) {
    const tn_placement *p = &map->states.v[i];
    size_t bytes = tn_type_bytes(&p->type);
    if (p->what != TN_STATE_SCRATCH || p->path[0] == '@') continue;
    void *zeros = tn_alloc(env, bytes + 1);
    status = zeros ? tn_executor_write(s->t->executor, p->path, zeros, bytes) : TN_ENOMEM;
    tn_release(env, zeros);
  }
  return status;
}

/* ---- what ranks agree on ---- */

enum { BAD = 1, STOPPED = 2 };

static tn_status agree(tn_search *s, int32_t *flags) {
  tn_fit *t = s->t;
  int32_t n = tn_run_ranks(t->run), *all = tn_alloc(&t->run->env, tn_size_mul((size_t)n, sizeof *all));
  if (!all) return TN_ENOMEM;
  tn_status status = tn_ranks_gather(t->ranks, &t->run->env, t->run->rank, flags, sizeof *flags, all);
  for (int32_t r = 0; status == TN_OK && r < n; r++) *flags |= all[r];
  tn_release(&t->run->env, all);
  return status;
}

/* ---- steps ---- */

/* Begins at the batch that is next, whatever the loader was about to do. */
static tn_status begin(tn_search *s) {
  tn_fit *t = s->t;
  if (t->progress.batch >= t->steps_per_epoch) {
    t->progress.epoch++;
    t->progress.batch = 0;
  }
  t->n_ahead = 0;
  TN_TRY(tn_feeder_rest(t->train));
  return tn_feeder_start(t->train, t->progress.epoch, t->progress.batch);
}

/* Takes a step; *flags says whether what came of it is bad. */
static tn_status take(tn_search *s, int32_t *flags) {
  tn_fit *t = s->t;
  bool fine = true;
  tn_status status = tn_fit_step(t);
  *flags = status == TN_ENONFINITE ? BAD : 0;
  if (status != TN_OK && status != TN_ENONFINITE) return status;
  if (status == TN_OK) TN_TRY(look_at_state(s, &fine));
  *flags |= fine ? 0 : BAD;
  *flags |= atomic_load(&t->run->stop) ? STOPPED : 0;
  return agree(s, flags);
}

/* The step before `kept` was read, launch by launch. */
static tn_status take_again(tn_search *s, const tn_progress *before) {
  tn_fit *t = s->t;
  TN_TRY(undo(s));
  t->progress = *before;
  TN_TRY(begin(s));
  TN_TRY(tn_finite_create(t->executor, &s->finite));
  tn_status status = tn_fit_step(t);
  return status == TN_ENONFINITE ? TN_OK : status;
}

static tn_status retrace(tn_search *s) {
  tn_fit *t = s->t;
  int32_t flags = 0;
  TN_TRY(tn_fit_rewind(t));
  TN_TRY(clear_scratch(s));
  if (t->run->rank == 0)
    tn_logf(&t->run->env, TN_LOG_INFO, "looking for what was not finite first: the steps from %lld on again",
            (long long)t->progress.step + 1);
  t->lost_in_a_row = 0;
  TN_TRY(begin(s));
  while (t->progress.step < s->until) {
    tn_progress before = t->progress;
    if (t->progress.batch >= t->steps_per_epoch) TN_TRY(begin(s));
    TN_TRY(keep_state(s));
    TN_TRY(take(s, &flags));
    s->stopped = (flags & STOPPED) != 0;
    if (s->stopped) return TN_OK;
    if ((flags & BAD) || t->progress.step >= s->until) return take_again(s, &before);
  }
  return TN_OK;
}

/* Validation changes nothing, so it needs no going back. */
static tn_status validate(tn_search *s) {
  tn_fit *t = s->t;
  tn_pass pass = {t->executor,       t->set.index[TN_PROGRAM_EVAL],
                  t->valid,          &t->eval_controls,
                  &t->eval_readings, t->run->settings.run.fast_dev_run ? 1 : 0,
                  t->ranks};
  TN_TRY(tn_feeder_rest(t->valid));
  TN_TRY(tn_finite_create(t->executor, &s->finite));
  tn_tally_reset(&t->valid_tally);
  tn_status status = tn_evaluate(t->run, &pass, &t->valid_tally);
  return status == TN_ESTOPPED ? TN_OK : status;
}

static tn_status search(tn_search *s) {
  tn_fit *t = s->t;
  int32_t flags = 0;
  bool fine = true;
  for (int32_t i = 0; i < t->slots; i++) TN_TRY(tn_executor_slot_wait(t->executor, i));
  TN_TRY(tn_feeder_rest(t->train));
  if (!t->validated) return retrace(s);
  TN_TRY(look_at_state(s, &fine));
  flags = fine ? 0 : BAD;
  TN_TRY(agree(s, &flags));
  return flags & BAD ? retrace(s) : validate(s);
}

/* ---- what came of it ---- */

typedef struct tn_finding {
  int64_t position;
  int32_t what;
  char text[1024];
} tn_finding;

static const char *advice(int32_t what) {
  switch (what) {
  case TN_FINITE_INPUT: return "look at what the source and the transforms of [data] give";
  case TN_FINITE_STATE: return "look at the weights that the run began with";
  case TN_FINITE_DERIVED:
    return "a parameter is too large for that type: a lower lr, weight_decay or bf16 may help";
  default: return "a lower lr, [optimizer] clip, or values that this op can take may help";
  }
}

/* The earliest of all ranks' becomes the message of each. */
static tn_status conclude(tn_search *s, const char *failure) {
  tn_fit *t = s->t;
  tn_env *env = &t->run->env;
  int32_t n = tn_run_ranks(t->run), first = -1;
  tn_finding *mine = tn_alloc(env, sizeof *mine), *all = tn_alloc(env, tn_size_mul((size_t)n, sizeof *all));
  tn_status status = mine && all ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && s->finite) {
    const char *text;
    mine->what = tn_finite_found(s->finite, &text, &mine->position);
    strncat(mine->text, text, sizeof mine->text - 1);
  }
  if (status == TN_OK) status = tn_ranks_gather(t->ranks, env, t->run->rank, mine, sizeof *mine, all);
  for (int32_t r = 0; status == TN_OK && r < n; r++)
    if (all[r].what && (first < 0 || all[r].position < all[first].position)) first = r;
  if (first >= 0) {
    t->explained = true;
    tn_failf(env, TN_ENONFINITE, "%s: %s%s; %s", failure, n > 1 && first > 0 ? "on another rank, " : "",
             all[first].text, advice(all[first].what));
  }
  tn_release(env, mine);
  tn_release(env, all);
  return status;
}

tn_status tn_fit_explain(tn_fit *t) {
  tn_env *env = &t->run->env;
  tn_search s = {.t = t, .until = t->failed_step > 0 ? t->failed_step : t->progress.step};
  tn_progress progress = t->progress;
  tn_watch *watch = t->watch; /* observers have heard of these steps */
  tn_tally epoch;
  char *failure = tn_arena_strdup(&t->set.arena, tn_error_text(env));
  tn_status status = failure ? tn_tally_init(&t->set.arena, &t->set, &epoch) : TN_ENOMEM;
  if (status != TN_OK) return status;
  tn_tally_restore(&epoch, &t->epoch_tally);
  t->watch = NULL;
  t->most_ahead = 0;
  status = search(&s);
  if (status == TN_OK) status = conclude(&s, failure);
  t->watch = watch;
  t->progress = progress;
  tn_tally_restore(&t->epoch_tally, &epoch);
  tn_finite_destroy(s.finite);
  forget_state(&s);
  /* alone, a search that fails is no worse than none; other ranks must not wait for one that has ended */
  if (status != TN_OK && tn_run_ranks(t->run) > 1) return status;
  if (status != TN_OK)
    tn_logf(env, TN_LOG_WARN, "what was not finite first could not be found: %s", tn_error_text(env));
  return t->explained ? TN_ENONFINITE : tn_failf(env, TN_ENONFINITE, "%s", failure);
}
