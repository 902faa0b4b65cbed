#include "core/infer/prediction/predict_rows.h"

#include <stdio.h>
#include <string.h>

#include "core/base/rows.h"
#include "core/base/text/text.h"
#include "core/formats/npy.h"
#include "core/formats/safetensors.h"

int64_t tn_predict_rows_count(const tn_predict_rows *rows) {
  return rows->n > 0 && rows->arrays[0].type.rank > 0 ? rows->arrays[0].type.dims[0] : 0;
}

/* ---- reading ---- */

bool tn_predict_rows_reads(const char *path) {
  return tn_text_ends(path, ".npy") || tn_text_ends(path, ".safetensors");
}

static tn_status rows_check_room(const void *handle, const tn_predict_rows *rows, const char *path) {
  if (rows->n < TN_PREDICT_INPUTS) return TN_OK;
  return tn_failf(handle, TN_EINVAL, "%s: is one array too many, expected at most %d", path,
                  (int)TN_PREDICT_INPUTS);
}

/* Keeps an array that was read, which is freed with `rows`. */
static tn_status rows_add_array(const void *handle, tn_predict_rows *rows, const tn_predict_array *array) {
  tn_predict_array *a = &rows->arrays[rows->n];
  const char *path = array->path;
  *a = *array;
  rows->n++;
  int64_t n = a->type.rank > 0 ? a->type.dims[0] : -1;
  if (n < 0) return tn_failf(handle, TN_EINVAL, "%s: is a single number, expected an array of rows", path);
  if (n != tn_predict_rows_count(rows))
    return tn_failf(handle, TN_EINVAL, "%s: has %lld rows, expected the %lld of %s", path, (long long)n,
                    (long long)tn_predict_rows_count(rows), rows->arrays[0].path);
  rows->fields[rows->n - 1] =
      (tn_field){.struct_size = sizeof(tn_field), .name = "", .type = tn_type_row(&a->type)};
  return TN_OK;
}

static tn_status rows_add_npy(const void *handle, tn_predict_rows *rows, const char *input,
                              const char *path) {
  tn_predict_array a = {.input = input, .path = path};
  void *data = NULL;
  TN_TRY(rows_check_room(handle, rows, path));
  TN_TRY(tn_npy_read(handle, path, &a.type, &data));
  a.data = data;
  return rows_add_array(handle, rows, &a);
}

static tn_status rows_add_tensor(tn_arena *arena, tn_predict_rows *rows, const tn_safetensors *file,
                                 const tn_safetensor *tensor, const char *path) {
  const void *handle = arena->handle;
  tn_predict_array a = {.input = tn_arena_strdup(arena, tensor->name), .path = path, .type = tensor->type};
  if (a.input == NULL) return TN_ENOMEM;
  TN_TRY(rows_check_room(handle, rows, path));
  a.data = tn_alloc(handle, tn_size_add((size_t)tensor->bytes, 1));
  if (a.data == NULL) return TN_ENOMEM;
  tn_status status = tn_safetensors_read(file, handle, tensor, a.data, (size_t)tensor->bytes);
  if (status == TN_OK) return rows_add_array(handle, rows, &a);
  tn_release(handle, a.data);
  return tn_wrap(handle, status, "%s", path);
}

static tn_status rows_add_tensors(tn_arena *arena, tn_predict_rows *rows, const tn_safetensors *file,
                                  const char *input, const char *path) {
  for (int32_t i = 0; input == NULL && i < tn_safetensors_count(file); i++)
    TN_TRY(rows_add_tensor(arena, rows, file, tn_safetensors_at(file, i), path));
  if (input == NULL) return TN_OK;
  const tn_safetensor *tensor = tn_safetensors_find(file, input);
  if (tensor == NULL) return tn_failf(arena->handle, TN_EINVAL, "%s: has no array '%s'", path, input);
  return rows_add_tensor(arena, rows, file, tensor, path);
}

tn_status tn_predict_rows_add(tn_arena *arena, tn_predict_rows *rows, const char *input, const char *path) {
  tn_safetensors *file = NULL;
  if (!tn_text_ends(path, ".safetensors")) return rows_add_npy(arena->handle, rows, input, path);
  TN_TRY(tn_safetensors_open(arena->handle, path, &file));
  tn_status status = rows_add_tensors(arena, rows, file, input, path);
  tn_safetensors_close(file);
  return status;
}

void tn_predict_rows_free(const void *handle, tn_predict_rows *rows) {
  for (int32_t i = 0; i < rows->n; i++) tn_release(handle, rows->arrays[i].data);
  rows->n = 0;
}

/* ---- the source ---- */

static tn_status predict_rows_open(tn_env *env, const void *options, int32_t split, uint64_t seed,
                                   void **source) {
  (void)env, (void)split, (void)seed;
  *source = (void *)(uintptr_t)options;
  return TN_OK;
}

static void predict_rows_close(tn_env *env, void *source) { (void)env, (void)source; }

static tn_status predict_rows_describe(tn_env *env, void *source, tn_description *description) {
  const tn_predict_rows *rows = source;
  (void)env;
  description->count = tn_predict_rows_count(rows);
  description->n_fields = rows->n;
  description->fields = rows->fields;
  return TN_OK;
}

static tn_status predict_rows_read(tn_sample *s, void *source) {
  const tn_predict_rows *rows = source;
  for (int32_t i = 0; i < rows->n; i++) {
    size_t bytes = tn_type_bytes(&rows->fields[i].type);
    void *to = tn_sample_field(s, i, NULL);
    if (to == NULL) return TN_ENOMEM;
    if (bytes > 0) memcpy(to, rows->arrays[i].data + (size_t)s->index * bytes, bytes);
  }
  return TN_OK;
}

static tn_status predict_rows_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  const tn_predict_rows *rows = source;
  (void)env;
  snprintf(text, size, "%s[%lld]", rows->arrays[0].path, (long long)index);
  return TN_OK;
}

const tn_source tn_predict_rows_source = {
    .item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "npy", "rows of .npy files"),
    .open = predict_rows_open,
    .close = predict_rows_close,
    .describe = predict_rows_describe,
    .read = predict_rows_read,
    .name = predict_rows_name};
