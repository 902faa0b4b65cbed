/* core/records/checkpoints/resume.c: finds the newest valid checkpoint of a run among complete, interrupted
 * and damaged ones. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/records/checkpoints/checkpoint_files.h"

enum { CANDIDATES = 6 };

/* Of checkpoints of the same step the first in this list is taken. */
static const char *const candidate_names[CANDIDATES] = {"last", "last.new", "last.old",
                                                        "best", "best.new", "best.old"};

enum { CANDIDATE_ABSENT = 0, CANDIDATE_VALID = 1, CANDIDATE_DAMAGED = 2 };

typedef struct resume_candidate {
  int state;
  char *path; /* FOLDER/checkpoints/NAME */
  tn_state_record record;
  const char *reason; /* CANDIDATE_DAMAGED: in the run's arena */
  tn_status failure;  /* CANDIDATE_DAMAGED: TN_EINVAL or TN_ENONFINITE */
} resume_candidate;

/* ---- looking at one ---- */

/* Damaged contents make a checkpoint CANDIDATE_DAMAGED, and the search goes on. Any other failure ends the
 * search: a file that cannot be read may be the newest valid checkpoint. */
static tn_status resume_judge(tn_run *run, resume_candidate *c, tn_status status) {
  if (status == TN_EIO)
    return tn_wrap(&run->env, status,
                   "cannot check the checkpoint %s (rename that folder to go on without it)", c->path);
  if (status == TN_OK) c->state = CANDIDATE_VALID;
  if (status != TN_EINVAL && status != TN_ENONFINITE) return status;
  c->state = CANDIDATE_DAMAGED;
  c->failure = status;
  c->reason = tn_arena_strdup(&run->arena, tn_error_text(&run->env));
  tn_error_clear(&run->env);
  return c->reason ? TN_OK : TN_ENOMEM;
}

/* A NAME.new without state.json was never completed, and a NAME.old without it is a partial removal. Neither
 * is damaged. */
static tn_status resume_without_record(tn_run *run, resume_candidate *c, const char *name) {
  if (strchr(name, '.')) return TN_OK;
  return resume_judge(run, c, tn_failf(&run->env, TN_EINVAL, "%s: holds no state.json", c->path));
}

static tn_status resume_examine(tn_run *run, const char *parent, const char *name, resume_candidate *c) {
  struct stat info;
  c->path = tn_path_join(&run->env, parent, name);
  char *state = c->path ? tn_path_join(&run->env, c->path, "state.json") : NULL;
  tn_status status = state ? TN_OK : TN_ENOMEM;
  bool there = status == TN_OK && stat(c->path, &info) == 0, complete = there && stat(state, &info) == 0;
  if (there && !complete) status = resume_without_record(run, c, name);
  if (complete) status = tn_state_record_read(&run->arena, state, &c->record);
  if (status == TN_OK && complete) status = tn_state_record_check(&run->env, &c->record, c->path);
  if (complete) status = resume_judge(run, c, status);
  tn_release(&run->env, state);
  return status;
}

/* ---- choosing ---- */

static bool resume_is_newer(const tn_progress *a, const tn_progress *b) {
  return a->step > b->step || (a->step == b->step && a->ended && !b->ended);
}

static int32_t resume_find_newest(const resume_candidate *list) {
  int32_t chosen = -1;
  for (int32_t i = 0; i < CANDIDATES; i++)
    if (list[i].state == CANDIDATE_VALID &&
        (chosen < 0 || resume_is_newer(&list[i].record.progress, &list[chosen].record.progress)))
      chosen = i;
  return chosen;
}

/* Differences that change the run give warnings. */
static void resume_compare_runs(tn_run *run, const tn_program_set *set, const resume_candidate *c) {
  char plan[TN_PLAN_TEXT];
  tn_plan_hash_text(set, plan);
  if (c->record.seed != run->settings.run.seed)
    tn_logf(&run->env, TN_LOG_WARN,
            "%s: was made with seed %lld, this run has %lld: its order of samples will differ", c->path,
            (long long)c->record.seed, (long long)run->settings.run.seed);
  if (run->recorded_choices && !tn_text_equal(c->record.plan, plan))
    tn_logf(&run->env, TN_LOG_WARN, "%s: was made by plan %s, this run has %s: bits may differ", c->path,
            c->record.plan, plan);
}

static tn_status resume_load(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const resume_candidate *c) {
  static const uint32_t kinds[] = {TN_STATES_OF_MODEL, TN_STATES_OF_OPTIMIZER};
  static const char *const advice[] = {
      "the run was trained with another [model]; resume with that one",
      "the optimizer or its options have changed, and with them its state; resume with those of the run, or "
      "begin a new run from its weights: --weights model.safetensors of this checkpoint without --resume"};
  tn_status status = TN_OK;
  for (int i = 0; status == TN_OK && i < TN_CHECKPOINT_STATE; i++) {
    char *path = tn_path_join(&run->env, c->path, tn_checkpoint_files[i]);
    /* a run with another precision policy has no loss scale, or begins with a new one; groups that thaw at
     * another epoch than before have no updates yet (tn_run_check_thaw) */
    tn_weights_source source = {.path = path,
                                .prefix = "",
                                .rename = "",
                                .skip = TN_PRECISION_STATE ".*," TN_UPDATES_STATE ".*",
                                .transpose = "",
                                .kinds = kinds[i],
                                .advice = advice[i],
                                .averages = true};
    status = path ? tn_weights_load(run, executor, set->map, &source, NULL) : TN_ENOMEM;
    tn_release(&run->env, path);
  }
  return status;
}

/* Loads the newest checkpoint that fits the model. */
static tn_status resume_load_newest(tn_run *run, tn_executor *executor, const tn_program_set *set,
                                    resume_candidate *list, int32_t *chosen) {
  while ((*chosen = resume_find_newest(list)) >= 0) {
    resume_candidate *c = &list[*chosen];
    TN_TRY(resume_judge(run, c, resume_load(run, executor, set, c)));
    if (c->state == CANDIDATE_VALID) return TN_OK;
  }
  return TN_OK;
}

static tn_status resume_fail(tn_run *run, const char *parent, const resume_candidate *list) {
  const resume_candidate *bad = NULL;
  for (int32_t i = CANDIDATES - 1; i >= 0; i--)
    if (list[i].state == CANDIDATE_DAMAGED) bad = &list[i];
  if (bad == NULL) return tn_failf(&run->env, TN_EINVAL, "%s: holds no checkpoint to resume from", parent);
  return tn_failf(&run->env, bad->failure, "%s; %s holds no other checkpoint, and nothing was changed",
                  bad->reason, parent);
}

/* ---- tidying up ---- */

static tn_status resume_keep_damaged(tn_run *run, const resume_candidate *list) {
  for (int32_t i = 0; i < CANDIDATES; i++) {
    const char *aside;
    if (list[i].state != CANDIDATE_DAMAGED) continue;
    TN_TRY(tn_checkpoint_rename_aside(run, list[i].path, "bad", &aside));
    tn_logf(&run->env, TN_LOG_WARN, "checkpoint '%s' cannot be used: %s; it is kept as %s",
            candidate_names[i], list[i].reason, aside);
  }
  return TN_OK;
}

/* Completes the exchange that left the `chosen` checkpoint under a temporary name. */
static tn_status resume_finish_exchange(tn_run *run, const resume_candidate *list, int32_t chosen) {
  int32_t complete = chosen / 3 * 3;
  return chosen == complete ? TN_OK : tn_checkpoint_publish(run, list[chosen].path, list[complete].path);
}

/* Renames damaged checkpoints, and makes `last` the checkpoint that was loaded. */
static tn_status resume_update_last(tn_run *run, tn_executor *executor, const tn_program_set *set,
                                    const char *folder, const resume_candidate *list, int32_t chosen) {
  const tn_progress *progress = &list[chosen].record.progress;
  TN_TRY(resume_keep_damaged(run, list));
  if (chosen > 0)
    tn_logf(&run->env, TN_LOG_WARN, "resuming from %s, which is of step %lld", list[chosen].path,
            (long long)progress->step);
  TN_TRY(resume_finish_exchange(run, list, chosen));
  bool of_last = chosen < 3;
  return of_last ? TN_OK : tn_checkpoint_save(run, executor, set, folder, "last", progress);
}

/* The state of another schedule means nothing to the run's. */
static void resume_forget_other_schedule(const tn_run *run, tn_state_record *record) {
  char own[TN_SCHEDULE_TEXT];
  tn_schedule_text(run, own);
  if (!tn_text_equal(own, record->schedule))
    memset(record->progress.schedule, 0, sizeof record->progress.schedule);
}

static tn_status resume_from_candidates(tn_run *run, tn_executor *executor, const tn_program_set *set,
                                        const char *folder, const char *parent, resume_candidate *list,
                                        tn_progress *progress) {
  int32_t chosen = -1;
  for (int32_t i = 0; i < CANDIDATES; i++) TN_TRY(resume_examine(run, parent, candidate_names[i], &list[i]));
  TN_TRY(resume_load_newest(run, executor, set, list, &chosen));
  if (chosen < 0) return resume_fail(run, parent, list);
  resume_compare_runs(run, set, &list[chosen]);
  resume_forget_other_schedule(run, &list[chosen].record);
  *progress = list[chosen].record.progress;
  /* fast_dev_run writes nothing */
  return run->settings.run.fast_dev_run ? TN_OK
                                        : resume_update_last(run, executor, set, folder, list, chosen);
}

tn_status tn_checkpoint_resume(tn_run *run, tn_executor *executor, const tn_program_set *set,
                               const char *folder, tn_progress *progress) {
  resume_candidate *list = tn_alloc(&run->env, CANDIDATES * sizeof *list);
  char *parent = tn_path_join(&run->env, folder, "checkpoints");
  tn_status status =
      list && parent ? resume_from_candidates(run, executor, set, folder, parent, list, progress) : TN_ENOMEM;
  for (int32_t i = 0; list && i < CANDIDATES; i++) tn_release(&run->env, list[i].path);
  tn_release(&run->env, list);
  tn_release(&run->env, parent);
  return status;
}
