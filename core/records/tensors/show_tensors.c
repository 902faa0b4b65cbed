/* core/records/tensors/show_tensors.c: tn_show_tensors. */
#include <math.h>

#include "core/base/element.h"
#include "core/records/folders/run_records.h"
#include "core/records/tensors/tensor_files.h"
#include "core/run/result.h"
#include "tenon/folders.h"

static json_t *show_shape(const tn_type *type) {
  json_t *shape = json_array();
  for (int32_t i = 0; i < type->rank; i++) json_array_append_new(shape, json_integer(type->dims[i]));
  return shape;
}

/* Of the finite elements. */
static void show_add_statistics(json_t *json, const tn_type *type, const void *data) {
  double least = INFINITY, most = -INFINITY, sum = 0;
  int64_t n = tn_type_count(type), finite = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = tn_element_load(type->dtype, data, i);
    if (!isfinite(v)) continue;
    finite++;
    least = v < least ? v : least;
    most = v > most ? v : most;
    sum += v;
  }
  json_object_set_new(json, "min", tn_json_real(least));
  json_object_set_new(json, "max", tn_json_real(most));
  json_object_set_new(json, "mean", finite > 0 ? tn_json_real(sum / (double)finite) : json_null());
  json_object_set_new(json, "nonfinite", json_integer(n - finite));
}

/* A type that Tenon has not gets no statistics. */
static tn_status show_tensor(const void *handle, const tn_stored_tensor *t, bool statistics, json_t *list) {
  json_t *json = json_pack("{s:o, s:s, s:o, s:I, s:s}", "path", tn_json_text(t->name), "dtype",
                           tn_stored_tensor_dtype(t), "shape", show_shape(&t->type), "bytes",
                           (json_int_t)t->bytes, "part", t->optimizer ? "optimizer" : "model");
  void *data = NULL;
  json_array_append_new(list, json);
  if (!statistics || t->type.dtype == TN_ANY) return TN_OK;
  TN_TRY(tn_stored_tensor_read(handle, t, &data));
  show_add_statistics(json, &t->type, data);
  tn_release(handle, data);
  return TN_OK;
}

static json_t *show_notes(const tn_tensor_files *files) {
  json_t *notes = json_object();
  int32_t n = 0;
  const tn_safetensor_note *list = files->files[0] ? tn_safetensors_notes(files->files[0], &n) : NULL;
  for (int32_t i = 0; i < n; i++) json_object_set_new(notes, list[i].key, json_string(list[i].value));
  return notes;
}

/* A damaged file is shown, too, since it is looked at for its damage. */
static tn_status show_warn(const void *handle, tn_status status) {
  if (status != TN_EINVAL) return status;
  tn_logf(handle, TN_LOG_WARN, "%s", tn_error_text(handle));
  tn_error_clear(handle);
  return TN_OK;
}

/* "state", of a checkpoint whose state.json can be read. */
static tn_status show_add_state(tn_tensor_files *files, json_t *result) {
  tn_found_checkpoint one;
  const void *handle = files->arena.handle;
  if (files->kind != TN_TENSORS_CHECKPOINT)
    return show_warn(handle, tn_checkpoint_file_check(handle, files->path));
  TN_TRY(tn_examine_checkpoint(&files->arena, files->path, &one));
  if (one.reason == NULL) TN_TRY(show_warn(handle, tn_state_record_check(handle, &one.record, files->path)));
  const tn_progress *p = &one.record.progress;
  json_t *state = one.reason ? json_pack("{s:o}", "reason", tn_json_text(one.reason))
                             : json_pack("{s:I, s:I, s:I, s:f, s:o, s:I, s:s}", "step", (json_int_t)p->step,
                                         "epoch", (json_int_t)p->epoch, "batch", (json_int_t)p->batch,
                                         "seconds", p->seconds, "best", tn_json_real(p->best), "seed",
                                         (json_int_t)one.record.seed, "plan", one.record.plan);
  json_object_set_new(result, "state", state);
  return TN_OK;
}

static tn_status show_files(const void *handle, tn_tensor_files *files, bool statistics, json_t *result) {
  static const char *const kinds[] = {"safetensors", "checkpoint", "npy"};
  json_t *list = json_array();
  int64_t elements = 0, bytes = 0;
  json_object_set_new(result, "path", tn_json_text(files->path));
  json_object_set_new(result, "kind", json_string(kinds[files->kind]));
  json_object_set_new(result, "tensors", list);
  for (int32_t i = 0; i < files->n; i++) {
    TN_TRY(show_tensor(handle, &files->tensors[i], statistics, list));
    elements += files->tensors[i].optimizer ? 0 : tn_type_count(&files->tensors[i].type);
    bytes += (int64_t)files->tensors[i].bytes;
  }
  json_object_set_new(result, "elements", json_integer(elements));
  json_object_set_new(result, "bytes", json_integer(bytes));
  json_object_set_new(result, "metadata", show_notes(files));
  return show_add_state(files, result);
}

tn_status tn_show_tensors(tn_context *context, const char *path, int32_t statistics, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, path, "path");
  tn_tensor_files files;
  json_t *result = json_object();
  tn_status status = tn_tensor_files_open(context, path, false, &files);
  if (status == TN_OK) status = show_files(context, &files, statistics != 0, result);
  tn_tensor_files_close(&files);
  if (status == TN_OK) return tn_json_take(context, result, json);
  json_decref(result);
  return status;
}
