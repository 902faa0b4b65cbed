/* core/records/checkpoints/keep.c: checkpoints that stay: FOLDER/checkpoints/step-000000500 beside `last` and
 * `best`. Its files are those of `last` under another name (hard links), since saving replaces files and
 * never changes them; where the file system has no links they are copied. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/records/checkpoints/adapter_files.h"
#include "core/records/checkpoints/checkpoint_files.h"

/* ---- one more ---- */

static tn_status keep_copy_bytes(tn_run *run, int fd, const char *from, tn_new_file *to) {
  enum { PIECE = 1 << 20 };
  char *piece = tn_alloc(&run->env, PIECE);
  ssize_t n = 1;
  tn_status status = piece != NULL ? TN_OK : TN_ENOMEM;
  while (status == TN_OK && (n = read(fd, piece, PIECE)) > 0)
    status = tn_file_append(&run->env, to, piece, (size_t)n);
  if (status == TN_OK && n < 0) status = tn_file_fail(&run->env, from, "read");
  tn_release(&run->env, piece);
  return status;
}

static tn_status keep_copy(tn_run *run, const char *from, const char *to) {
  tn_open_file open = {-1, 0};
  tn_new_file file;
  TN_TRY(tn_file_open(&run->env, from, O_RDONLY, &open));
  tn_status status = tn_file_begin(&run->env, to, &file);
  if (status == TN_OK) {
    status = keep_copy_bytes(run, open.fd, from, &file);
    if (status == TN_OK)
      status = tn_file_commit(&run->env, &file);
    else
      tn_file_abandon(&run->env, &file);
  }
  close(open.fd);
  return status;
}

/* An optional file may be missing. */
static tn_status keep_link_file(tn_run *run, const char *from, const char *to, const char *name,
                                bool optional) {
  const char *old = tn_arena_printf(&run->arena, "%s/%s", from, name),
             *new = tn_arena_printf(&run->arena, "%s/%s", to, name);
  if (old == NULL || new == NULL) return TN_ENOMEM;
  if (optional && !tn_file_exists(old)) return TN_OK;
  return link(old, new) == 0 ? TN_OK : keep_copy(run, old, new);
}

/* state.json comes last: with it the checkpoint is complete. */
static tn_status keep_link_files(tn_run *run, const char *from, const char *to) {
  if (mkdir(to, 0777) != 0) return tn_file_fail(&run->env, to, "made");
  for (int i = 0; i < 2; i++) TN_TRY(keep_link_file(run, from, to, tn_peft_files[i], true));
  for (int i = 0; i < TN_CHECKPOINT_FILES; i++)
    TN_TRY(keep_link_file(run, from, to, tn_checkpoint_files[i], false));
  return tn_folder_sync(&run->env, to);
}

static tn_status keep_add(tn_run *run, const char *parent, int64_t step) {
  const char *path = tn_arena_printf(&run->arena, "%s/step-%09lld", parent, (long long)step),
             *last = tn_arena_printf(&run->arena, "%s/last", parent);
  const char *temporary = path != NULL ? tn_arena_printf(&run->arena, "%s.new", path) : NULL;
  if (last == NULL || temporary == NULL) return TN_ENOMEM;
  TN_TRY(tn_checkpoint_remove(run, temporary)); /* left by a run that was killed */
  TN_TRY(keep_link_files(run, last, temporary));
  return tn_checkpoint_publish(run, temporary, path);
}

/* ---- which stay ---- */

typedef struct kept_checkpoint {
  const char *path;
  tn_progress progress;
  bool stays;
} kept_checkpoint;

typedef struct kept_checkpoints {
  kept_checkpoint *v; /* the oldest first */
  size_t n;
} kept_checkpoints;

static bool keep_is_kept(const char *name) {
  static const char prefix[] = "step-";
  if (!tn_text_starts(name, prefix)) return false;
  const char *digits = name + sizeof prefix - 1;
  return *digits != '\0' && digits[strspn(digits, "0123456789")] == '\0';
}

static int keep_compare(const void *a, const void *b) {
  int64_t x = ((const kept_checkpoint *)a)->progress.step, y = ((const kept_checkpoint *)b)->progress.step;
  return (x > y) - (x < y);
}

/* A checkpoint that cannot be read is left where it is. */
static tn_status keep_find(tn_run *run, const char *parent, kept_checkpoints *list) {
  DIR *folder = opendir(parent);
  if (folder == NULL) return tn_file_fail(&run->env, parent, "read");
  tn_status status = TN_OK;
  for (struct dirent *entry; status == TN_OK && (entry = readdir(folder));) {
    tn_state_record record;
    if (!keep_is_kept(entry->d_name)) continue;
    const char *path = tn_arena_printf(&run->arena, "%s/%s", parent, entry->d_name);
    const char *state = path != NULL ? tn_arena_printf(&run->arena, "%s/state.json", path) : NULL;
    kept_checkpoint *grown = tn_arena_grow(&run->arena, list->v, list->n, sizeof *grown);
    if (state == NULL || grown == NULL) status = TN_ENOMEM;
    if (grown != NULL) list->v = grown;
    if (status != TN_OK) continue;
    if (tn_state_record_read(&run->arena, state, &record) == TN_OK)
      list->v[list->n++] = (kept_checkpoint){path, record.progress, false};
    tn_error_clear(&run->env);
  }
  closedir(folder);
  if (list->n > 1) qsort(list->v, list->n, sizeof *list->v, keep_compare);
  return status;
}

static void keep_mark_newest(const tn_run *run, kept_checkpoints *list) {
  size_t most = (size_t)run->settings.run.keep_last;
  for (size_t i = list->n > most ? list->n - most : 0; i < list->n; i++) list->v[i].stays = true;
}

/* Of equal scores the earlier one stays. */
static void keep_mark_best(const tn_run *run, bool smaller, kept_checkpoints *list) {
  for (size_t i = 0; i < list->n; i++) {
    double own = list->v[i].progress.score;
    int64_t better = 0;
    if (isnan(own)) continue;
    for (size_t k = 0; k < list->n; k++) {
      double other = list->v[k].progress.score;
      better += (smaller ? other < own : other > own) || (other == own && k < i);
    }
    if (better < run->settings.run.keep_best) list->v[i].stays = true;
  }
}

/* The first checkpoint in each interval of epochs, steps or training time; that of epochs at its end. */
static void keep_mark_regular(const tn_run *run, kept_checkpoints *list) {
  const tn_keep_every *every = &run->settings.keep_every;
  double before = 0;
  for (size_t i = 0; i < list->n; i++) {
    const tn_progress *p = &list->v[i].progress;
    if (every->epochs > 0 && p->ended && p->batch == 0 && p->epoch % every->epochs == 0)
      list->v[i].stays = true;
    double number = every->steps > 0     ? (double)(p->step / every->steps)
                    : every->seconds > 0 ? floor(p->seconds / every->seconds)
                                         : 0;
    if (number > before) list->v[i].stays = true;
    if (number > before) before = number;
  }
}

static tn_status keep_remove_others(tn_run *run, const kept_checkpoints *list) {
  for (size_t i = 0; i < list->n; i++)
    if (!list->v[i].stays) TN_TRY(tn_checkpoint_remove(run, list->v[i].path));
  return TN_OK;
}

tn_status tn_checkpoint_keep(tn_run *run, const char *folder, int64_t step, bool smaller) {
  const tn_run_section *s = &run->settings.run;
  kept_checkpoints list = {NULL, 0};
  if (s->keep_last == 0 && s->keep_best == 0 && *s->keep_every == '\0') return TN_OK;
  const char *parent = tn_arena_printf(&run->arena, "%s/checkpoints", folder);
  if (parent == NULL) return TN_ENOMEM;
  TN_TRY(keep_add(run, parent, step));
  TN_TRY(keep_find(run, parent, &list));
  keep_mark_newest(run, &list);
  keep_mark_best(run, smaller, &list);
  keep_mark_regular(run, &list);
  return keep_remove_others(run, &list);
}
