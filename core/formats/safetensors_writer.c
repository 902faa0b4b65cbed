/* core/formats/safetensors_writer.c: the writer: first the header, then the data in the order of the
 * calls. */
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/formats/input.h"
#include "core/formats/safetensors_header.h"

struct tn_safetensors_writer {
  const void *handle;
  tn_new_file file;
  uint64_t told, appended; /* bytes of data */
  tn_checksum sum;
};

/* Adds one member to the header; false if Jansson is out of memory or the name is not UTF-8. */
static bool safetensors_add_tensor(json_t *root, const tn_safetensor_named *tensor, uint64_t begin,
                                   uint64_t end) {
  json_t *shape = json_array();
  for (int32_t i = 0; i < tensor->type.rank; i++)
    json_array_append_new(shape, json_integer(tensor->type.dims[i]));
  json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", tn_safetensors_word(tensor->type.dtype), "shape",
                            shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
  return json_object_set_new(root, tensor->name, entry) == 0;
}

/* Checks that the format has the tensor's type and that its size in bytes does not overflow. */
static tn_status safetensors_check_tensor(const void *handle, const char *path, json_t *root,
                                          const tn_safetensor_named *tensor, int64_t *bytes) {
  const tn_type *type = &tensor->type;
  if (tn_safetensors_word(type->dtype) == NULL ||
      !tn_checked_bytes(type->dims, type->rank, tn_dtype_size(type->dtype), bytes))
    return tn_failf(handle, TN_EINVAL, "%s: tensor \"%.100s\" has a type or shape that no file can hold",
                    path, tensor->name);
  if (strcmp(tensor->name, "__metadata__") == 0 || json_object_get(root, tensor->name) != NULL)
    return tn_failf(handle, TN_EINVAL, "%s: a tensor cannot be called \"%.100s\": the name is taken", path,
                    tensor->name);
  return TN_OK;
}

static tn_status safetensors_add_tensors(const void *handle, const char *path,
                                         const tn_safetensor_named *tensors, int32_t n, json_t *root,
                                         uint64_t *told) {
  for (int32_t i = 0; i < n; i++) {
    int64_t bytes = 0;
    uint64_t begin = *told;
    TN_TRY(safetensors_check_tensor(handle, path, root, &tensors[i], &bytes));
    if (__builtin_add_overflow(*told, (uint64_t)bytes, told) || *told > INT64_MAX)
      return tn_failf(handle, TN_EINVAL, "%s: its tensors have more bytes than can be counted", path);
    if (!safetensors_add_tensor(root, &tensors[i], begin, *told))
      return tn_failf(handle, TN_EINVAL, "%s: the name \"%.100s\" is not UTF-8, or memory ran out", path,
                      tensors[i].name);
  }
  return TN_OK;
}

static tn_status safetensors_add_metadata(const void *handle, const char *path,
                                          const tn_safetensor_note *notes, int32_t n, json_t *root) {
  if (n == 0) return TN_OK;
  json_t *metadata = json_object();
  int failed = json_object_set_new(root, "__metadata__", metadata);
  for (int32_t i = 0; i < n; i++)
    failed |= json_object_set_new(metadata, notes[i].key, json_string(notes[i].value));
  return failed != 0 ? tn_failf(handle, TN_EINVAL, "%s: its metadata is not UTF-8, or memory ran out", path)
                     : TN_OK;
}

/* Appends the length and the JSON, padded with blanks to a multiple of eight bytes so that the data is
 * aligned. */
static tn_status safetensors_append_header(tn_safetensors_writer *writer, const char *json) {
  unsigned char length[8];
  size_t n = strlen(json), padded = (n + 7) / 8 * 8;
  if (padded > TN_SAFETENSORS_LONGEST_HEADER)
    return tn_failf(writer->handle, TN_EINVAL, "%s: a header of %zu bytes, where at most %d are allowed",
                    writer->file.path, padded, TN_SAFETENSORS_LONGEST_HEADER);
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)padded >> (8 * i));
  TN_TRY(tn_file_append(writer->handle, &writer->file, length, sizeof(length)));
  TN_TRY(tn_file_append(writer->handle, &writer->file, json, n));
  return tn_file_append(writer->handle, &writer->file, "        ", padded - n);
}

static tn_status safetensors_write_header(tn_safetensors_writer *writer, json_t *root) {
  char *json = json_dumps(root, JSON_COMPACT);
  if (json == NULL)
    return tn_failf(writer->handle, TN_ENOMEM, "%s: out of memory for its header", writer->file.path);
  tn_status status = safetensors_append_header(writer, json);
  free(json);
  return status;
}

static tn_status safetensors_start(tn_safetensors_writer *writer, const char *path, json_t *root) {
  TN_TRY(tn_file_begin(writer->handle, path, &writer->file));
  tn_checksum_start(&writer->sum);
  writer->file.sum = &writer->sum;
  return safetensors_write_header(writer, root);
}

tn_status tn_safetensors_begin(const void *handle, const char *path, const tn_safetensor_named *tensors,
                               int32_t n, const tn_safetensor_note *notes, int32_t n_notes,
                               tn_safetensors_writer **writer) {
  *writer = NULL;
  tn_safetensors_writer *w = tn_alloc(handle, sizeof(*w));
  if (w == NULL) return TN_ENOMEM;
  w->handle = handle;
  w->file.fd = -1;
  json_t *root = json_object();
  tn_status status = root != NULL ? safetensors_add_metadata(handle, path, notes, n_notes, root)
                                  : tn_failf(handle, TN_ENOMEM, "%s: out of memory for its header", path);
  if (status == TN_OK) status = safetensors_add_tensors(handle, path, tensors, n, root, &w->told);
  if (status == TN_OK) status = safetensors_start(w, path, root);
  json_decref(root);
  if (status == TN_OK)
    *writer = w;
  else
    tn_safetensors_abandon(w);
  return status;
}

tn_status tn_safetensors_append(tn_safetensors_writer *writer, const void *bytes, size_t count) {
  if (count > writer->told - writer->appended)
    return tn_failf(writer->handle, TN_EINTERNAL, "%s: more data than its header declares",
                    writer->file.path);
  writer->appended += count;
  return tn_file_append(writer->handle, &writer->file, bytes, count);
}

void tn_safetensors_sum(const tn_safetensors_writer *writer, uint64_t *bytes, uint32_t *crc) {
  *bytes = writer->sum.bytes;
  *crc = writer->sum.crc;
}

tn_status tn_safetensors_commit(tn_safetensors_writer *writer) {
  tn_status status = TN_OK;
  if (writer->appended != writer->told)
    status = tn_failf(writer->handle, TN_EINTERNAL,
                      "%s: %" PRIu64 " bytes of data, but its header declares %" PRIu64, writer->file.path,
                      writer->appended, writer->told);
  if (status == TN_OK) status = tn_file_commit(writer->handle, &writer->file);
  tn_safetensors_abandon(writer);
  return status;
}

void tn_safetensors_abandon(tn_safetensors_writer *writer) {
  if (writer == NULL) return;
  tn_file_abandon(writer->handle, &writer->file);
  tn_release(writer->handle, writer);
}
