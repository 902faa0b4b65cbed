/* core/formats/safetensors.c: the reader. It uses pread: if the file shrinks while it is open, a read
 * fails with an error, whereas a mapping would raise a signal. */
#include "core/formats/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/formats/input_sum.h"
#include "core/formats/gguf.h"
#include "core/formats/other_weights.h"
#include "core/formats/safetensors_header.h"
#include "core/formats/safetensors_index.h"

enum { LENGTH_BYTES = 8 };

/* A file that is summed while it is read. */
typedef struct safetensors_sum {
  tn_input_sum sum;
  atomic_bool read[]; /* of each tensor: it is part of the sum */
} safetensors_sum;

struct tn_safetensors {
  const void *handle;
  tn_input input;
  tn_arena arena;
  tn_safetensors_header header;
  safetensors_sum *sum;        /* NULL: the file is not summed */
  tn_gguf *gguf;               /* NULL: the file is one of safetensors */
  tn_safetensors **shards;     /* of an index, each once; NULL: a single file */
  int32_t n_shards, *shard_of; /* shard_of: of each tensor */
};

static uint64_t safetensors_read_u64(const unsigned char *bytes) {
  uint64_t value = 0;
  for (int i = LENGTH_BYTES; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

/* Fails if the file has another format for weights. */
static tn_status safetensors_refuse_other(const tn_input *input, const void *handle) {
  unsigned char bytes[TN_OTHER_WEIGHTS_BYTES];
  size_t n = input->bytes < sizeof(bytes) ? (size_t)input->bytes : sizeof(bytes);
  TN_TRY(tn_input_read(input, handle, 0, bytes, n));
  return tn_refuse_other_weights(handle, input->path, bytes, n);
}

/* Reads the length of the header and checks it against the size of the file, before the length sizes an
 * allocation. */
static tn_status safetensors_read_length(const tn_safetensors *file, const void *handle, size_t *length) {
  const tn_input *input = &file->input;
  unsigned char bytes[LENGTH_BYTES];
  if (input->bytes < LENGTH_BYTES)
    return tn_failf(handle, TN_EINVAL, "%s: not a safetensors file: it has only %" PRIu64 " bytes",
                    input->path, input->bytes);
  TN_TRY(tn_input_read(input, handle, 0, bytes, LENGTH_BYTES));
  uint64_t n = safetensors_read_u64(bytes);
  if (n > TN_SAFETENSORS_LONGEST_HEADER || n > input->bytes - LENGTH_BYTES)
    TN_TRY(safetensors_refuse_other(input, handle));
  if (n > TN_SAFETENSORS_LONGEST_HEADER)
    return tn_failf(handle, TN_EINVAL,
                    "%s: not a safetensors file: a header of %" PRIu64 " bytes, where at most %d are allowed",
                    input->path, n, TN_SAFETENSORS_LONGEST_HEADER);
  if (n > input->bytes - LENGTH_BYTES)
    return tn_failf(handle, TN_EINVAL, "%s: cut off: a header of %" PRIu64 " bytes in a file of %" PRIu64,
                    input->path, n, input->bytes);
  *length = (size_t)n;
  return TN_OK;
}

static tn_status safetensors_read_header(tn_safetensors *file, const void *handle) {
  size_t n = 0;
  TN_TRY(safetensors_read_length(file, handle, &n));
  char *json = tn_alloc(handle, n);
  if (json == NULL) return TN_ENOMEM;
  uint64_t data = LENGTH_BYTES + (uint64_t)n;
  tn_status status = tn_input_read(&file->input, handle, LENGTH_BYTES, json, n);
  if (status == TN_OK)
    status = tn_safetensors_parse(handle, &file->arena, file->input.path, json, n, data,
                                  file->input.bytes - data, &file->header);
  tn_release(handle, json);
  return status;
}

/* ---- files of GGUF ---- */

static tn_status safetensors_is_gguf(const tn_input *input, const void *handle, bool *is) {
  unsigned char bytes[4];
  *is = false;
  if (input->bytes < sizeof bytes) return TN_OK;
  TN_TRY(tn_input_read(input, handle, 0, bytes, sizeof bytes));
  *is = tn_gguf_is(bytes, sizeof bytes);
  return TN_OK;
}

/* Both lists are sorted by name. */
static tn_status safetensors_of_gguf(tn_safetensors *file, const void *handle) {
  TN_TRY(tn_gguf_open(handle, file->input.path, &file->gguf));
  int32_t n = tn_gguf_count(file->gguf);
  tn_safetensor *tensors = tn_arena_alloc(&file->arena, tn_size_mul((size_t)n + 1, sizeof *tensors));
  if (tensors == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    const tn_gguf_tensor *t = tn_gguf_at(file->gguf, i);
    tensors[i] = (tn_safetensor){t->name, t->stored, t->type, t->offset, tn_type_bytes(&t->type)};
    if (t->format < 0) tensors[i].type.dtype = TN_ANY;
  }
  file->header = (tn_safetensors_header){.tensors = tensors, .n_tensors = n};
  return TN_OK;
}

tn_gguf *tn_safetensors_gguf(const tn_safetensors *file) { return file->gguf; }

/* ---- several files ---- */

static tn_status safetensors_open_shard(tn_safetensors *file, const void *handle, const char *name) {
  char *folder = tn_path_folder(handle, file->input.path);
  char *path = folder != NULL ? tn_path_join(handle, folder, name) : NULL;
  tn_status status = path != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && !tn_file_exists(path))
    status = tn_failf(handle, TN_EINVAL,
                      "%s: names the shard %s, which is not beside it; expected all files of its weight_map",
                      file->input.path, name);
  if (status == TN_OK) status = tn_safetensors_open(handle, path, &file->shards[file->n_shards]);
  file->n_shards += status == TN_OK;
  tn_release(handle, path);
  tn_release(handle, folder);
  return status;
}

static tn_status safetensors_add_sharded(tn_safetensors *file, const void *handle,
                                         const tn_safetensors_index *index, int32_t i) {
  const tn_sharded_tensor *one = &index->v[i];
  file->shard_of[i] = -1;
  for (int32_t k = i; k-- > 0 && file->shard_of[i] < 0;) /* mostly that of the name before */
    if (strcmp(index->v[k].file, one->file) == 0) file->shard_of[i] = file->shard_of[k];
  if (file->shard_of[i] < 0) {
    TN_TRY(safetensors_open_shard(file, handle, one->file));
    file->shard_of[i] = file->n_shards - 1;
  }
  const tn_safetensor *stored = tn_safetensors_find(file->shards[file->shard_of[i]], one->name);
  if (stored == NULL)
    return tn_failf(handle, TN_EINVAL,
                    "%s: the shard %s has no tensor \"%.100s\"; it is of another model, or damaged",
                    file->input.path, one->file, one->name);
  file->header.tensors[file->header.n_tensors++] = *stored;
  return TN_OK;
}

static tn_status safetensors_of_index(tn_safetensors *file, const void *handle) {
  tn_safetensors_index index;
  TN_TRY(tn_safetensors_index_read(handle, &file->arena, file->input.path, &index));
  size_t n = (size_t)index.n + 1;
  file->header.tensors = tn_arena_alloc(&file->arena, tn_size_mul(n, sizeof *file->header.tensors));
  file->shard_of = tn_arena_alloc(&file->arena, tn_size_mul(n, sizeof *file->shard_of));
  file->shards = tn_arena_alloc(&file->arena, tn_size_mul(n, sizeof(tn_safetensors *)));
  if (file->header.tensors == NULL || file->shard_of == NULL || file->shards == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < index.n; i++) TN_TRY(safetensors_add_sharded(file, handle, &index, i));
  return TN_OK;
}

/* ---- opening ---- */

static tn_status safetensors_read_any(tn_safetensors *file, const void *handle, const char *path) {
  bool gguf;
  TN_TRY(tn_input_open(handle, path, &file->input));
  if (tn_safetensors_is_index(path)) return safetensors_of_index(file, handle);
  TN_TRY(safetensors_is_gguf(&file->input, handle, &gguf));
  return gguf ? safetensors_of_gguf(file, handle) : safetensors_read_header(file, handle);
}

tn_status tn_safetensors_open(const void *handle, const char *path, tn_safetensors **file) {
  tn_safetensors *opened = tn_alloc(handle, sizeof(*opened));
  *file = NULL;
  if (opened == NULL) return TN_ENOMEM;
  opened->handle = handle;
  opened->arena = tn_arena_new(handle);
  tn_status status = safetensors_read_any(opened, handle, path);
  if (status == TN_OK)
    *file = opened;
  else
    tn_safetensors_close(opened);
  return status;
}

void tn_safetensors_close(tn_safetensors *file) {
  if (file == NULL) return;
  tn_input_close(file->handle, &file->input);
  tn_gguf_close(file->gguf);
  for (int32_t i = 0; i < file->n_shards; i++) tn_safetensors_close(file->shards[i]);
  tn_arena_free(&file->arena);
  tn_release(file->handle, file->sum);
  tn_release(file->handle, file);
}

int32_t tn_safetensors_count(const tn_safetensors *file) { return file->header.n_tensors; }

const tn_safetensor *tn_safetensors_at(const tn_safetensors *file, int32_t index) {
  return &file->header.tensors[index];
}

static int safetensors_compare_key(const void *name, const void *tensor) {
  return strcmp(name, ((const tn_safetensor *)tensor)->name);
}

const tn_safetensor *tn_safetensors_find(const tn_safetensors *file, const char *name) {
  size_t n = (size_t)file->header.n_tensors;
  return n > 0 ? bsearch(name, file->header.tensors, n, sizeof(tn_safetensor), safetensors_compare_key)
               : NULL;
}

const char *tn_safetensors_metadata(const tn_safetensors *file, const char *key) {
  for (int32_t i = 0; i < file->header.n_notes; i++)
    if (strcmp(file->header.notes[i].key, key) == 0) return file->header.notes[i].value;
  return NULL;
}

const tn_safetensor_note *tn_safetensors_notes(const tn_safetensors *file, int32_t *n) {
  *n = file->header.n_notes;
  return file->header.notes;
}

static tn_status safetensors_read_shard(const tn_safetensors *file, const void *handle,
                                        const tn_safetensor *tensor, void *to) {
  const tn_safetensors *shard = file->shards[file->shard_of[tensor - file->header.tensors]];
  return tn_input_read(&shard->input, handle, tensor->offset, to, (size_t)tensor->bytes);
}

/* A tensor is part of the sum once, however often it is read. */
static tn_status safetensors_read_data(const tn_safetensors *file, const void *handle,
                                       const tn_safetensor *tensor, void *to) {
  if (file->gguf != NULL)
    return tn_gguf_read(file->gguf, handle, tn_gguf_at(file->gguf, (int32_t)(tensor - file->header.tensors)),
                        to);
  if (file->n_shards > 0) return safetensors_read_shard(file, handle, tensor, to);
  safetensors_sum *sum = file->sum;
  if (sum == NULL || atomic_exchange(&sum->read[tensor - file->header.tensors], true))
    return tn_input_read(&file->input, handle, tensor->offset, to, (size_t)tensor->bytes);
  return tn_input_read_summed(&file->input, handle, tensor->offset, to, (size_t)tensor->bytes, &sum->sum);
}

tn_status tn_safetensors_read(const tn_safetensors *file, const void *handle, const tn_safetensor *tensor,
                              void *to, size_t bytes) {
  if (tensor->type.dtype == TN_ANY)
    return tn_failf(handle, TN_EUNSUPPORTED,
                    "%s: tensor \"%.100s\": type %s is not supported; store it as F32, say", file->input.path,
                    tensor->name, tensor->stored);
  if (tensor->bytes != bytes)
    return tn_failf(handle, TN_EINVAL, "%s: tensor \"%.100s\" has %" PRIu64 " bytes, expected %zu",
                    file->input.path, tensor->name, tensor->bytes, bytes);
  TN_TRY(safetensors_read_data(file, handle, tensor, to));
  if (tensor->type.dtype != TN_BOOL) return TN_OK;
  return tn_check_bools(handle, file->input.path, tensor->name, to, bytes);
}

/* ---- the sum ---- */

tn_status tn_safetensors_sum_reads(tn_safetensors *file, const void *handle) {
  size_t flags = tn_size_mul((size_t)file->header.n_tensors, sizeof *file->sum->read);
  tn_release(file->handle, file->sum);
  file->sum = tn_alloc(handle, tn_size_add(sizeof *file->sum, flags));
  if (file->sum == NULL) return TN_ENOMEM;
  tn_input_sum_start(&file->sum->sum);
  return TN_OK;
}

/* The header, up to the first tensor. Tensors cover the file behind it. */
static tn_status safetensors_sum_header(const tn_safetensors *file, const void *handle) {
  uint64_t end = file->input.bytes;
  for (int32_t i = 0; i < file->header.n_tensors; i++)
    if (file->header.tensors[i].offset < end) end = file->header.tensors[i].offset;
  return tn_input_sum_range(&file->input, handle, 0, end, &file->sum->sum);
}

tn_status tn_safetensors_sum_rest(const tn_safetensors *file, const void *handle, uint64_t *bytes,
                                  uint32_t *crc) {
  TN_TRY(safetensors_sum_header(file, handle));
  for (int32_t i = 0; i < file->header.n_tensors; i++) {
    const tn_safetensor *t = &file->header.tensors[i];
    if (!atomic_exchange(&file->sum->read[i], true))
      TN_TRY(tn_input_sum_range(&file->input, handle, t->offset, t->bytes, &file->sum->sum));
  }
  *bytes = file->input.bytes;
  *crc = atomic_load(&file->sum->sum.crc);
  return TN_OK;
}
