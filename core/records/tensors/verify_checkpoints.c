/* core/records/tensors/verify_checkpoints.c: tn_verify_checkpoints. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/element.h"
#include "core/base/file/file.h"
#include "core/records/folders/run_records.h"
#include "core/records/tensors/tensor_files.h"
#include "core/records/runs/run_lock.h"
#include "core/run/result.h"
#include "tenon/folders.h"

enum { VERIFY_LOOKS = 20 };

typedef struct verify_results {
  tn_context *context;
  tn_arena *arena;
  json_t *list;
  int32_t valid, damaged;
} verify_results;

/* ---- the tensors ---- */

static tn_status verify_finite(const void *handle, const tn_stored_tensor *t, const void *data) {
  int64_t n = tn_dtype_is_float(t->type.dtype) ? tn_type_count(&t->type) : 0;
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(tn_element_load(t->type.dtype, data, i)))
      return tn_failf(handle, TN_ENONFINITE, "%s: element %lld of '%s' is %g", t->path, (long long)i, t->name,
                      tn_element_load(t->type.dtype, data, i));
  return TN_OK;
}

/* Opens the files and reads every tensor. */
static tn_status verify_tensors(const void *handle, const char *path) {
  tn_tensor_files files;
  tn_status status = tn_tensor_files_open(handle, path, false, &files);
  for (int32_t i = 0; status == TN_OK && i < files.n; i++) {
    void *data = NULL;
    status = tn_stored_tensor_read(handle, &files.tensors[i], &data);
    if (status == TN_OK) status = verify_finite(handle, &files.tensors[i], data);
    tn_release(handle, data);
  }
  tn_tensor_files_close(&files);
  return status;
}

/* ---- results ---- */

static json_t *verify_add_result(verify_results *r, const char *path, const char *state, const char *reason) {
  json_t *json = json_pack("{s:o, s:s, s:o}", "path", tn_json_text(path), "state", state, "reason",
                           tn_json_text_or_null(reason));
  json_array_append_new(r->list, json);
  return json;
}

/* Damaged contents are a result; a file that cannot be read ends the check, since nothing is known about it.
 */
static tn_status verify_judge(verify_results *r, const char *path, tn_status status) {
  bool damaged = status == TN_EINVAL || status == TN_ENONFINITE || status == TN_EUNSUPPORTED;
  if (status != TN_OK && !damaged) return status;
  verify_add_result(r, path, damaged ? "damaged" : "valid", damaged ? tn_error_text(r->context) : NULL);
  r->damaged += damaged;
  r->valid += !damaged;
  tn_error_clear(r->context);
  return TN_OK;
}

static tn_status verify_once(verify_results *r, const tn_found_checkpoint *c) {
  if (c->reason != NULL) return tn_failf(r->context, TN_EINVAL, "%s", c->reason);
  TN_TRY(tn_state_record_check(r->context, &c->record, c->path));
  return verify_tensors(r->context, c->path);
}

/* A training exchanges the folders of a checkpoint when it saves. */
static bool verify_was_exchanged(const char *path, const struct stat *before) {
  struct stat now;
  return stat(path, &now) != 0 || now.st_ino != before->st_ino || now.st_dev != before->st_dev ||
         now.st_mtim.tv_sec != before->st_mtim.tv_sec || now.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
}

/* Looks again where a training has exchanged the folder meanwhile, so that its files belong to two saves. */
static tn_status verify_steady(verify_results *r, const tn_found_checkpoint *found) {
  tn_found_checkpoint c = *found;
  for (int looks = 1;; looks++) {
    struct stat before;
    if (stat(c.path, &before) != 0 && c.reason == NULL) return tn_file_fail(r->context, c.path, "examined");
    TN_TRY(tn_examine_checkpoint(r->arena, found->path, &c));
    tn_status status = verify_once(r, &c);
    if (status == TN_OK || looks == VERIFY_LOOKS || !verify_was_exchanged(c.path, &before)) return status;
    tn_error_clear(r->context);
  }
}

/* NAME.new and NAME.old of a training that goes on are being written or removed. */
static bool verify_is_in_work(const verify_results *r, const tn_found_checkpoint *c) {
  char holder[TN_LOCK_TEXT];
  char *parent = tn_path_folder(r->context, c->path);
  char *run = parent != NULL ? tn_path_folder(r->context, parent) : NULL;
  bool held = run != NULL && strchr(c->name, '.') != NULL && tn_run_lock_is_held(r->context, run, holder);
  tn_release(r->context, run);
  tn_release(r->context, parent);
  return held;
}

static tn_status verify_checkpoint(verify_results *r, const tn_found_checkpoint *c) {
  bool temporary = strchr(c->name, '.') != NULL;
  const char *state = tn_arena_printf(r->arena, "%s/state.json", c->path);
  if (state == NULL) return TN_ENOMEM;
  if (verify_is_in_work(r, c)) {
    verify_add_result(r, c->path, "incomplete", "a training that goes on is writing it");
    return TN_OK;
  }
  if (temporary && !tn_file_exists(state)) { /* an interrupted save: resuming passes it over */
    verify_add_result(r, c->path, "incomplete", c->reason);
    return TN_OK;
  }
  return verify_judge(r, c->path, verify_steady(r, c));
}

/* Damaged checkpoints that resuming has set aside, NAME.bad, are known to be so. */
static bool verify_was_set_aside(const char *name) {
  return strstr(name, ".bad") != NULL || strstr(name, ".kept") != NULL;
}

static tn_status verify_run(verify_results *r, const char *path) {
  tn_found_checkpoints found;
  TN_TRY(tn_find_checkpoints(r->arena, path, &found));
  for (int32_t i = 0; i < found.n; i++)
    if (!verify_was_set_aside(found.v[i].name)) TN_TRY(verify_checkpoint(r, &found.v[i]));
  if (r->valid + r->damaged > 0) return TN_OK;
  return tn_failf(r->context, TN_EINVAL, "%s: holds no checkpoint", path);
}

static tn_status verify_path(verify_results *r, const char *path) {
  tn_found_checkpoint one;
  const char *parent = tn_arena_printf(r->arena, "%s/checkpoints", path);
  const char *state = tn_arena_printf(r->arena, "%s/state.json", path);
  if (parent == NULL || state == NULL) return TN_ENOMEM;
  if (tn_file_exists(parent)) return verify_run(r, path);
  if (!tn_file_exists(path)) return tn_file_fail(r->context, path, "examined");
  if (!tn_file_exists(state)) return verify_judge(r, path, verify_tensors(r->context, path));
  TN_TRY(tn_examine_checkpoint(r->arena, path, &one));
  return verify_checkpoint(r, &one);
}

tn_status tn_verify_checkpoints(tn_context *context, const char *path, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, path, "path");
  tn_arena arena = tn_arena_new(context);
  verify_results r = {.context = context, .arena = &arena, .list = json_array()};
  tn_status status = verify_path(&r, path);
  json_t *result = json_pack("{s:b, s:o}", "valid", (int)(r.valid > 0 && r.damaged == 0), "checked", r.list);
  tn_arena_free(&arena);
  if (status == TN_OK) return tn_json_take(context, result, json);
  json_decref(result);
  return status;
}
