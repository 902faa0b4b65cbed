/* core/records/tensors/merge_adapters.c: tn_merge_adapters: the file of a base with W + s B A in place of W,
 * and with the parameters that were trained in full. Names, order of dimensions and dtypes are those of the
 * base. */
#include <string.h>

#include "core/base/element.h"
#include "core/base/file/file.h"
#include "core/records/checkpoints/adapter_merge.h"
#include "core/records/tensors/tensor_files.h"
#include "core/run/result.h"
#include "tenon/folders.h"

typedef struct merge_job {
  const void *handle;
  tn_arena arena;
  const char *path, *base_path, *to; /* of the adapters, of the base, of the new file */
  tn_safetensors *file, *base;       /* `file` is borrowed */
  tn_adapter_note note;
  tn_weights_names names, base_names;
  tn_stored_adapters adapters;
  tn_words transpose;
  tn_safetensor_named *written; /* sorted by name, as the format asks */
  const char **model_names;     /* of those */
  int32_t n, merged;
} merge_job;

/* ---- the tensors of the new file ---- */

static const char *merge_model_name(const merge_job *m, const tn_safetensor *tensor) {
  for (int32_t i = 0; i < m->base_names.n; i++)
    if (m->base_names.v[i].tensor == tensor) return m->base_names.v[i].name;
  return ""; /* without the prefix: not of the model */
}

static void merge_insert(merge_job *m, const char *name, const tn_type *type, const char *model_name) {
  int32_t at = m->n++;
  for (; at > 0 && strcmp(m->written[at - 1].name, name) > 0; at--) {
    m->written[at] = m->written[at - 1];
    m->model_names[at] = m->model_names[at - 1];
  }
  m->written[at] = (tn_safetensor_named){name, *type};
  m->model_names[at] = model_name;
}

static bool merge_base_has(const merge_job *m, const char *name) {
  return tn_weights_names_find(&m->base_names, name) != NULL;
}

/* The tensors of the base, and those of a trained layer that the base lacks. */
static tn_status merge_list(merge_job *m) {
  size_t most = (size_t)tn_safetensors_count(m->base) + (size_t)m->names.n + 1;
  m->written = tn_arena_alloc(&m->arena, tn_size_mul(most, sizeof *m->written));
  m->model_names = tn_arena_alloc(&m->arena, tn_size_mul(most, sizeof *m->model_names));
  if (m->written == NULL || m->model_names == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < tn_safetensors_count(m->base); i++) {
    const tn_safetensor *t = tn_safetensors_at(m->base, i);
    merge_insert(m, t->name, &t->type, merge_model_name(m, t));
  }
  for (int32_t i = 0; i < m->names.n; i++) {
    const char *name = m->names.v[i].name;
    if (tn_adapter_owns(name) || merge_base_has(m, name)) continue;
    const char *full = tn_arena_printf(&m->arena, "%s%s", tn_adapter_note_text(&m->note, "prefix"), name);
    if (full == NULL) return TN_ENOMEM;
    merge_insert(m, full, &m->names.v[i].tensor->type, name);
  }
  return TN_OK;
}

static tn_status merge_check_layers(const merge_job *m) {
  for (int32_t i = 0; i < m->adapters.n; i++) {
    bool found = false;
    for (int32_t k = 0; k < m->n && !found; k++)
      found = tn_stored_adapters_find(&m->adapters, m->model_names[k]) == &m->adapters.v[i];
    if (!found)
      return tn_failf(m->handle, TN_EINVAL, "%s: has an adapter of '%s', but %s has no '%s.weight'", m->path,
                      m->adapters.v[i].layer, m->base_path, m->adapters.v[i].layer);
  }
  return TN_OK;
}

/* ---- one tensor ---- */

/* Replaces *values, (rows, columns), by its transpose. */
static tn_status merge_turn(const merge_job *m, float **values, int64_t rows, int64_t columns) {
  float *turned = tn_alloc(m->handle, tn_size_mul((size_t)(rows * columns) + 1, sizeof *turned));
  if (turned != NULL) tn_elements_transpose(sizeof *turned, rows, columns, *values, turned);
  tn_release(m->handle, *values);
  *values = turned;
  return turned != NULL ? TN_OK : TN_ENOMEM;
}

static bool merge_is_turned(const merge_job *m, const char *name, const tn_type *type) {
  return type->rank == 2 && merge_base_has(m, name) && tn_words_match(&m->transpose, name);
}

static tn_status merge_adapter(const merge_job *m, const tn_stored_adapter *adapter, const char *name,
                               const tn_type *type, float **values) {
  tn_type own = *type;
  bool turned = merge_is_turned(m, name, type);
  if (turned) own = (tn_type){type->dtype, 2, {type->dims[1], type->dims[0]}};
  if (turned) TN_TRY(merge_turn(m, values, type->dims[0], type->dims[1]));
  TN_TRY(tn_stored_adapter_merge(m->handle, m->file, m->path, adapter, &own, *values));
  return turned ? merge_turn(m, values, own.dims[0], own.dims[1]) : TN_OK;
}

/* A parameter that was trained in full replaces that of the base. */
static tn_status merge_trained(const merge_job *m, const tn_safetensor *trained, const char *name,
                               const tn_type *type, float **values) {
  bool turned = merge_is_turned(m, name, type);
  if (tn_type_count(&trained->type) != tn_type_count(type))
    return tn_failf(m->handle, TN_EINVAL, "%s: '%s' has %lld elements, in %s it has %lld", m->path, name,
                    (long long)tn_type_count(&trained->type), m->base_path, (long long)tn_type_count(type));
  tn_release(m->handle, *values);
  *values = NULL;
  TN_TRY(tn_stored_floats_read(m->handle, m->file, trained, values));
  return turned ? merge_turn(m, values, trained->type.dims[0], trained->type.dims[1]) : TN_OK;
}

static tn_status merge_values(merge_job *m, int32_t i, const tn_safetensor *stored,
                              const tn_stored_adapter *adapter, const tn_safetensor *trained,
                              float **values) {
  if (stored != NULL) TN_TRY(tn_stored_floats_read(m->handle, m->base, stored, values));
  if (trained != NULL) TN_TRY(merge_trained(m, trained, m->model_names[i], &m->written[i].type, values));
  return adapter != NULL ? merge_adapter(m, adapter, m->model_names[i], &m->written[i].type, values) : TN_OK;
}

static tn_status merge_append_values(const merge_job *m, int32_t i, const float *values,
                                     tn_safetensors_writer *writer) {
  const tn_type *type = &m->written[i].type;
  void *data = tn_alloc(m->handle, tn_type_bytes(type) + 1);
  if (data == NULL) return TN_ENOMEM;
  for (int64_t k = 0; k < tn_type_count(type); k++) tn_element_store(type->dtype, data, k, values[k]);
  tn_status status = tn_safetensors_append(writer, data, tn_type_bytes(type));
  tn_release(m->handle, data);
  return status;
}

static tn_status merge_copy(const merge_job *m, const tn_safetensor *stored, tn_safetensors_writer *writer) {
  void *data = tn_alloc(m->handle, (size_t)stored->bytes + 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = tn_safetensors_read(m->base, m->handle, stored, data, (size_t)stored->bytes);
  if (status == TN_OK) status = tn_safetensors_append(writer, data, (size_t)stored->bytes);
  tn_release(m->handle, data);
  return status;
}

static tn_status merge_append(merge_job *m, int32_t i, tn_safetensors_writer *writer) {
  const tn_safetensor *stored = tn_safetensors_find(m->base, m->written[i].name);
  const tn_stored_adapter *adapter = tn_stored_adapters_find(&m->adapters, m->model_names[i]);
  const tn_safetensor *trained =
      *m->model_names[i] ? tn_weights_names_find(&m->names, m->model_names[i]) : NULL;
  float *values = NULL;
  if (adapter == NULL && trained == NULL) return merge_copy(m, stored, writer);
  tn_status status = merge_values(m, i, stored, adapter, trained, &values);
  if (status == TN_OK) status = merge_append_values(m, i, values, writer);
  tn_release(m->handle, values);
  m->merged += status == TN_OK;
  return status;
}

/* ---- the files ---- */

static tn_status merge_write(merge_job *m) {
  tn_safetensors_writer *writer = NULL;
  int32_t n_notes = 0;
  const tn_safetensor_note *notes = tn_safetensors_notes(m->base, &n_notes);
  if (tn_file_exists(m->to))
    return tn_failf(m->handle, TN_EINVAL, "%s: exists, and is not overwritten; remove it, or name another",
                    m->to);
  TN_TRY(tn_safetensors_begin(m->handle, m->to, m->written, m->n, notes, n_notes, &writer));
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < m->n; i++) status = merge_append(m, i, writer);
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}

static tn_status merge_open_base(merge_job *m) {
  TN_TRY(tn_adapter_note_read(m->handle, m->file, m->path, &m->note));
  if (m->note.json == NULL)
    return tn_failf(
        m->handle, TN_EINVAL,
        "%s: holds no adapters that a run with [adapt] has written; expected its run folder, or the "
        "folder of a checkpoint",
        m->path);
  m->base_path = tn_adapter_note_text(&m->note, "base");
  tn_status status = tn_safetensors_open(m->handle, m->base_path, &m->base);
  return tn_wrap(m->handle, status, "%s: the weights below its adapters", m->path);
}

static tn_status merge_files(merge_job *m) {
  TN_TRY(merge_open_base(m));
  TN_TRY(tn_words_split(&m->arena, tn_adapter_note_text(&m->note, "transpose"), &m->transpose));
  TN_TRY(tn_weights_names_make(m->handle, &m->arena, m->file, m->path, "", "", &m->names));
  TN_TRY(tn_weights_names_make(m->handle, &m->arena, m->base, m->base_path,
                               tn_adapter_note_text(&m->note, "prefix"),
                               tn_adapter_note_text(&m->note, "rename"), &m->base_names));
  TN_TRY(tn_stored_adapters_list(&m->arena, &m->names, m->path, &m->note, NULL, &m->adapters));
  TN_TRY(merge_list(m));
  TN_TRY(merge_check_layers(m));
  return merge_write(m);
}

tn_status tn_merge_adapters(tn_context *context, const char *from, const char *to, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, from, "from");
  TN_NEED(context, to, "to");
  tn_tensor_files files;
  tn_status status = tn_tensor_files_open(context, from, true, &files);
  merge_job m = {.handle = context, .arena = tn_arena_new(context), .to = to};
  if (status == TN_OK && files.files[0] == NULL)
    status = tn_failf(context, TN_EINVAL, "%s: holds no file of adapters; expected a run folder", from);
  if (status == TN_OK) {
    m.file = files.files[0];
    m.path = files.tensors != NULL ? files.tensors[0].path : files.path;
    status = merge_files(&m);
  }
  if (status == TN_OK)
    status = tn_json_take(context,
                          json_pack("{s:o, s:o, s:o, s:i, s:i}", "from", tn_json_text(m.path), "base",
                                    tn_json_text(m.base_path), "to", tn_json_text(to), "tensors", (int)m.n,
                                    "merged", (int)m.merged),
                          json);
  tn_adapter_note_close(&m.note);
  tn_safetensors_close(m.base);
  tn_arena_free(&m.arena);
  tn_tensor_files_close(&files);
  return status;
}
