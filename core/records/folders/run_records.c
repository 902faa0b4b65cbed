/* core/records/folders/run_records.c: reads state.json of every checkpoint, and metrics.jsonl. */
#include "core/records/folders/run_records.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/records/folders/run_lines.h"

/* ---- checkpoints ---- */

enum { RUN_RECORDS_LOOKS = 20 };

static void run_records_measure(tn_arena *arena, tn_found_checkpoint *one) {
  struct stat info;
  for (int i = 0; i < TN_CHECKPOINT_FILES; i++) {
    const char *path = tn_arena_printf(arena, "%s/%s", one->path, tn_checkpoint_files[i]);
    if (path == NULL || stat(path, &info) != 0) continue;
    one->bytes += (uint64_t)info.st_size;
    if (i == TN_CHECKPOINT_STATE) one->saved = (int64_t)info.st_mtime;
  }
}

static bool run_records_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* A training that saves exchanges the folder between the look and the read: state.json is looked for again.
 */
static tn_status run_records_read_state(tn_arena *arena, const char *path, tn_found_checkpoint *one) {
  tn_status status = TN_EIO;
  for (int look = 0; look < RUN_RECORDS_LOOKS && status == TN_EIO; look++) {
    tn_error_clear(arena->handle);
    if (!tn_file_exists(path)) {
      one->reason = "holds no state.json: it was not completed";
      return TN_OK;
    }
    status = tn_state_record_read(arena, path, &one->record);
  }
  if (status != TN_EINVAL) return status;
  one->reason = tn_arena_strdup(arena, tn_error_text(arena->handle));
  tn_error_clear(arena->handle);
  return one->reason ? TN_OK : TN_ENOMEM;
}

tn_status tn_examine_checkpoint(tn_arena *arena, const char *path, tn_found_checkpoint *one) {
  *one = (tn_found_checkpoint){.path = tn_arena_strdup(arena, path)};
  const char *state = tn_arena_printf(arena, "%s/state.json", path);
  if (one->path == NULL || state == NULL) return TN_ENOMEM;
  const char *slash = strrchr(one->path, '/');
  one->name = slash ? slash + 1 : one->path;
  run_records_measure(arena, one);
  if (run_records_is_folder(path)) return run_records_read_state(arena, state, one);
  one->reason = "is not a folder";
  return TN_OK;
}

/* The checkpoint that resuming prefers comes first. */
static int run_records_compare(const void *x, const void *y) {
  const tn_found_checkpoint *a = x, *b = y;
  const tn_progress *p = &a->record.progress, *q = &b->record.progress;
  if ((a->reason == NULL) != (b->reason == NULL)) return a->reason ? 1 : -1;
  if (p->step != q->step) return p->step > q->step ? -1 : 1;
  if (p->ended != q->ended) return p->ended ? -1 : 1;
  return -strcmp(a->name, b->name); /* last before best */
}

/* Other files there are the user's. */
static bool run_records_is_checkpoint(const char *path, const char *name) {
  return name[0] != '.' &&
         (run_records_is_folder(path) || tn_text_equal(name, "last") || tn_text_equal(name, "best"));
}

static tn_status run_records_add(tn_arena *arena, const char *parent, const char *name,
                                 tn_found_checkpoints *found) {
  const char *path = tn_arena_printf(arena, "%s/%s", parent, name);
  if (path == NULL) return TN_ENOMEM;
  if (!run_records_is_checkpoint(path, name)) return TN_OK;
  tn_found_checkpoint *grown = tn_arena_grow(arena, found->v, (size_t)found->n, sizeof *grown);
  if (grown == NULL) return TN_ENOMEM;
  found->v = grown;
  return tn_examine_checkpoint(arena, path, &grown[found->n++]);
}

tn_status tn_find_checkpoints(tn_arena *arena, const char *folder, tn_found_checkpoints *found) {
  *found = (tn_found_checkpoints){0};
  const char *parent = tn_arena_printf(arena, "%s/checkpoints", folder);
  if (parent == NULL) return TN_ENOMEM;
  DIR *list = opendir(parent);
  if (list == NULL) return errno == ENOENT ? TN_OK : tn_file_fail(arena->handle, parent, "opened");
  tn_status status = TN_OK;
  for (struct dirent *entry; status == TN_OK && (entry = readdir(list));)
    status = run_records_add(arena, parent, entry->d_name, found);
  closedir(list);
  if (found->n > 1) qsort(found->v, (size_t)found->n, sizeof *found->v, run_records_compare);
  return status;
}

/* ---- metrics ---- */

typedef struct run_records_reader {
  tn_metric_lines *lines;
  tn_text last;
} run_records_reader;

static void run_records_take_line(void *context, const tn_text *line) {
  static const char epoch[] = "{\"event\": \"epoch\"";
  run_records_reader *r = context;
  if (tn_text_starts(line->v, epoch))
    json_array_append_new(r->lines->epochs, json_loadb(line->v, line->n, 0, NULL));
  r->last.n = 0;
  tn_text_addn(&r->last, line->v, line->n);
}

tn_status tn_metric_lines_read(const void *handle, const char *folder, tn_metric_lines *lines) {
  *lines = (tn_metric_lines){.epochs = json_array()};
  if (lines->epochs == NULL) return tn_failf(handle, TN_ENOMEM, "no memory for the metrics of %s", folder);
  run_records_reader r = {lines, tn_text_new(handle)};
  tn_status status = tn_run_lines_scan(handle, folder, "metrics.jsonl", run_records_take_line, &r);
  if (status == TN_OK && r.last.failed) status = TN_ENOMEM;
  lines->last = r.last.v ? json_loadb(r.last.v, r.last.n, 0, NULL) : NULL;
  tn_text_free(&r.last);
  return status;
}

void tn_metric_lines_free(tn_metric_lines *lines) {
  json_decref(lines->epochs);
  json_decref(lines->last);
}
