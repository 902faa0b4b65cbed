/* core/train/checkpoints/resume.c: the newest valid checkpoint of a run, found among whole ones, what an
 * interrupted exchange left, and damaged ones. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/train/checkpoints/checkpoint.h"

enum { CANDIDATES = 6 };

/* Where two were made at the same moment the first is taken. */
static const char *const candidate_names[CANDIDATES] = {"last", "last.new", "last.old",
                                                        "best", "best.new", "best.old"};

enum { ABSENT = 0, VALID = 1, BAD = 2 };

typedef struct candidate {
  int state;
  char *path; /* FOLDER/checkpoints/NAME */
  tn_record record;
  const char *reason; /* BAD: the arena's */
  tn_status fault;    /* BAD: TN_EINVAL or TN_ENONFINITE */
} candidate;

/* ---- looking at one ---- */

/* Something that is wrong with what a checkpoint holds is a reason; everything else ends the search: who
 * cannot read a file knows nothing about it. */
static tn_status judge(tn_run *run, candidate *c, tn_status status) {
  if (status == TN_EIO)
    return tn_wrap(&run->env, status,
                   "cannot tell whether %s is whole (rename that folder to go on without it)", c->path);
  if (status == TN_OK) c->state = VALID;
  if (status != TN_EINVAL && status != TN_ENONFINITE) return status;
  c->state = BAD;
  c->fault = status;
  c->reason = tn_arena_strdup(&run->arena, tn_error_text(&run->env));
  tn_error_clear(&run->env);
  return c->reason ? TN_OK : TN_ENOMEM;
}

/* A NAME.new without state.json is a checkpoint that was never finished, which is no fault; nor is a
 * NAME.old without, whose removal was interrupted. */
static tn_status no_record(tn_run *run, candidate *c, const char *name) {
  if (strchr(name, '.')) return TN_OK;
  return judge(run, c, tn_failf(&run->env, TN_EINVAL, "%s: holds no state.json", c->path));
}

static tn_status examine(tn_run *run, const char *home, const char *name, candidate *c) {
  struct stat info;
  c->path = tn_path_join(&run->env, home, name);
  char *state = c->path ? tn_path_join(&run->env, c->path, "state.json") : NULL;
  tn_status status = state ? TN_OK : TN_ENOMEM;
  bool there = status == TN_OK && stat(c->path, &info) == 0, whole = there && stat(state, &info) == 0;
  if (there && !whole) status = no_record(run, c, name);
  if (whole) status = tn_record_read(run, state, &c->record);
  if (status == TN_OK && whole) status = tn_record_check(run, &c->record, c->path);
  if (whole) status = judge(run, c, status);
  tn_release(&run->env, state);
  return status;
}

/* ---- choosing ---- */

static bool is_newer(const tn_progress *a, const tn_progress *b) {
  return a->step > b->step || (a->step == b->step && a->ended && !b->ended);
}

static int32_t newest(const candidate *list) {
  int32_t chosen = -1;
  for (int32_t i = 0; i < CANDIDATES; i++)
    if (list[i].state == VALID &&
        (chosen < 0 || is_newer(&list[i].record.progress, &list[chosen].record.progress)))
      chosen = i;
  return chosen;
}

/* What may differ and changes the run: said, not refused. */
static void compare_runs(tn_run *run, const tn_program_set *set, const candidate *c) {
  char plan[TN_PLAN_TEXT];
  tn_record_plan(set, plan);
  if (c->record.seed != run->settings.run.seed)
    tn_logf(&run->env, TN_LOG_WARN,
            "%s: was made with seed %lld, this run has %lld: its order of samples will differ", c->path,
            (long long)c->record.seed, (long long)run->settings.run.seed);
  if (!tn_text_equal(c->record.plan, plan))
    tn_logf(&run->env, TN_LOG_WARN, "%s: was made by plan %s, this run has %s: bits may differ", c->path,
            c->record.plan, plan);
}

static tn_status load(tn_run *run, tn_executor *executor, const tn_program_set *set, const candidate *c) {
  static const uint32_t kinds[] = {TN_STATES_OF_MODEL, TN_STATES_OF_OPTIMIZER};
  tn_status status = TN_OK;
  for (int i = 0; status == TN_OK && i < TN_CHECKPOINT_STATE; i++) {
    char *path = tn_path_join(&run->env, c->path, tn_checkpoint_files[i]);
    /* a run in another precision has no scale of the loss, or starts anew with its own */
    tn_weights_source source = {path, "", TN_PRECISION_STATE ".*", kinds[i]};
    status = path ? tn_weights_load(run, executor, set->map, &source) : TN_ENOMEM;
    tn_release(&run->env, path);
  }
  return status;
}

/* Loads the newest that fits the model. */
static tn_status load_newest(tn_run *run, tn_executor *executor, const tn_program_set *set, candidate *list,
                             int32_t *chosen) {
  while ((*chosen = newest(list)) >= 0) {
    candidate *c = &list[*chosen];
    TN_TRY(judge(run, c, load(run, executor, set, c)));
    if (c->state == VALID) return TN_OK;
  }
  return TN_OK;
}

static tn_status fail_all(tn_run *run, const char *home, const candidate *list) {
  const candidate *bad = NULL;
  for (int32_t i = CANDIDATES - 1; i >= 0; i--)
    if (list[i].state == BAD) bad = &list[i];
  if (!bad) return tn_failf(&run->env, TN_EINVAL, "%s: holds no checkpoint to resume from", home);
  return tn_failf(&run->env, bad->fault, "%s; %s holds no other checkpoint, and nothing was changed",
                  bad->reason, home);
}

/* ---- tidying up ---- */

static tn_status keep_bad(tn_run *run, const candidate *list) {
  for (int32_t i = 0; i < CANDIDATES; i++) {
    const char *aside;
    if (list[i].state != BAD) continue;
    TN_TRY(tn_checkpoint_set_aside(run, list[i].path, "bad", &aside));
    tn_logf(&run->env, TN_LOG_WARN, "checkpoint '%s' cannot be used: %s; it is kept as %s",
            candidate_names[i], list[i].reason, aside);
  }
  return TN_OK;
}

/* Finishes the exchange from which `chosen` was left over. */
static tn_status finish_exchange(tn_run *run, const candidate *list, int32_t chosen) {
  int32_t whole = chosen / 3 * 3;
  return chosen == whole ? TN_OK : tn_checkpoint_publish(run, list[chosen].path, list[whole].path);
}

/* Names the others, and lets `last` be what was loaded. */
static tn_status settle(tn_run *run, tn_executor *executor, const tn_program_set *set, const char *folder,
                        const candidate *list, int32_t chosen) {
  const tn_progress *progress = &list[chosen].record.progress;
  TN_TRY(keep_bad(run, list));
  if (chosen > 0)
    tn_logf(&run->env, TN_LOG_WARN, "going on from %s, which is of step %lld", list[chosen].path,
            (long long)progress->step);
  TN_TRY(finish_exchange(run, list, chosen));
  bool of_last = chosen < 3;
  return of_last ? TN_OK : tn_checkpoint_save(run, executor, set, folder, "last", progress);
}

static tn_status resume_in(tn_run *run, tn_executor *executor, const tn_program_set *set, const char *folder,
                           const char *home, candidate *list, tn_progress *progress) {
  int32_t chosen = -1;
  for (int32_t i = 0; i < CANDIDATES; i++) TN_TRY(examine(run, home, candidate_names[i], &list[i]));
  TN_TRY(load_newest(run, executor, set, list, &chosen));
  if (chosen < 0) return fail_all(run, home, list);
  compare_runs(run, set, &list[chosen]);
  *progress = list[chosen].record.progress;
  /* a trial run writes nothing */
  return run->settings.run.fast_dev_run ? TN_OK : settle(run, executor, set, folder, list, chosen);
}

tn_status tn_checkpoint_resume(tn_run *run, tn_executor *executor, const tn_program_set *set,
                               const char *folder, tn_progress *progress) {
  candidate *list = tn_alloc(&run->env, CANDIDATES * sizeof *list);
  char *home = tn_path_join(&run->env, folder, "checkpoints");
  tn_status status = list && home ? resume_in(run, executor, set, folder, home, list, progress) : TN_ENOMEM;
  for (int32_t i = 0; list && i < CANDIDATES; i++) tn_release(&run->env, list[i].path);
  tn_release(&run->env, list);
  tn_release(&run->env, home);
  return status;
}
