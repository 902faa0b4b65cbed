#include "core/infer/prediction/predict_rows.h"

#include <stdio.h>
#include <string.h>

#include "core/formats/npy.h"

int64_t tn_predict_rows_count(const tn_predict_rows *rows) {
  return rows->n > 0 && rows->arrays[0].type.rank > 0 ? rows->arrays[0].type.dims[0] : 0;
}

tn_status tn_predict_rows_add(const void *handle, tn_predict_rows *rows, const char *input,
                              const char *path) {
  tn_predict_array *a = &rows->arrays[rows->n];
  void *data = NULL;
  TN_TRY(tn_npy_read(handle, path, &a->type, &data));
  *a = (tn_predict_array){input, path, a->type, data};
  rows->n++;
  int64_t n = a->type.rank > 0 ? a->type.dims[0] : -1;
  if (n < 0) return tn_failf(handle, TN_EINVAL, "%s: is a single number, expected an array of rows", path);
  if (n != tn_predict_rows_count(rows))
    return tn_failf(handle, TN_EINVAL, "%s: has %lld rows, expected the %lld of %s", path, (long long)n,
                    (long long)tn_predict_rows_count(rows), rows->arrays[0].path);
  tn_type row = {a->type.dtype, a->type.rank - 1, {0}};
  memcpy(row.dims, a->type.dims + 1, sizeof *row.dims * (size_t)row.rank);
  rows->fields[rows->n - 1] = (tn_field){.struct_size = sizeof(tn_field), .name = input, .type = row};
  return TN_OK;
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
