/* core/formats/safetensors.h: the safetensors file format: eight bytes of length, a JSON object with the
 * type, shape and offsets of each tensor, then the tensors, row-major, little-endian, without gaps
 * (https://huggingface.co/docs/safetensors, "Format").
 *
 * The reader opens files of GGUF, too (gguf.h), and gives their tensors as f32. They have no metadata here.
 * It also opens an index of shards, FILE.safetensors.index.json, as one file with the tensors of all.
 *
 * The reader validates length, JSON, names, shapes and offsets with checked arithmetic before any of them
 * sizes an allocation, so a malicious file results in an ordinary error. */
#pragma once

#include "core/formats/gguf.h"

/* A tensor of an open file; owned by the file. */
typedef struct tn_safetensor {
  const char *name;
  const char *stored; /* the type's name in the file, "F32" */
  tn_type type;       /* dtype TN_ANY for types without a Tenon type ("I8", "U16"), which cannot be read */
  uint64_t offset;    /* from the start of the file */
  uint64_t bytes;
} tn_safetensor;

typedef struct tn_safetensor_note { /* an entry of __metadata__ */
  const char *key, *value;
} tn_safetensor_note;

typedef struct tn_safetensors tn_safetensors;

/* TN_EIO if the file cannot be read, TN_EINVAL with path and reason if its contents are invalid. */
tn_status tn_safetensors_open(const void *handle, const char *path, tn_safetensors **file);
void tn_safetensors_close(tn_safetensors *file);

/* The file of GGUF that was opened; NULL: it is one of safetensors. */
tn_gguf *tn_safetensors_gguf(const tn_safetensors *file);

/* Access to the tensors, sorted by name. tn_safetensors_find returns NULL for an unknown name. */
int32_t tn_safetensors_count(const tn_safetensors *file);
const tn_safetensor *tn_safetensors_at(const tn_safetensors *file, int32_t index);
const tn_safetensor *tn_safetensors_find(const tn_safetensors *file, const char *name);

/* The value of a key in the header's __metadata__, or NULL. */
const char *tn_safetensors_metadata(const tn_safetensors *file, const char *key);
/* All entries of __metadata__; owned by the file. */
const tn_safetensor_note *tn_safetensors_notes(const tn_safetensors *file, int32_t *n);

/* Reads a whole tensor. `bytes` is the size of the buffer `to` and must equal the tensor's size. Any
 * number of threads may read one file, each with its own handle. */
tn_status tn_safetensors_read(const tn_safetensors *file, const void *handle, const tn_safetensor *tensor,
                              void *to, size_t bytes);

/* Sums what tn_safetensors_read reads from now on. */
tn_status tn_safetensors_sum_reads(tn_safetensors *file, const void *handle);
/* Size and CRC-32C of the whole file, behind tn_safetensors_sum_reads: the tensors that
 * have not been read since are read. */
tn_status tn_safetensors_sum_rest(const tn_safetensors *file, const void *handle, uint64_t *bytes,
                                  uint32_t *crc);

/* ---- writing ------------------------------------------------------------------------------------
 * tn_safetensors_begin declares names and types; tn_safetensors_append then takes the data in the same
 * order, in pieces of any size. tn_safetensors_commit publishes the file atomically (core/base/file/file.h).
 */

typedef struct tn_safetensor_named {
  const char *name;
  tn_type type;
} tn_safetensor_named;

typedef struct tn_safetensors_writer tn_safetensors_writer;

tn_status tn_safetensors_begin(const void *handle, const char *path, const tn_safetensor_named *tensors,
                               int32_t n, const tn_safetensor_note *notes, int32_t n_notes,
                               tn_safetensors_writer **writer);
tn_status tn_safetensors_append(tn_safetensors_writer *writer, const void *bytes, size_t count);
/* Size and CRC-32C of the file so far, header included. */
void tn_safetensors_sum(const tn_safetensors_writer *writer, uint64_t *bytes, uint32_t *crc);
/* TN_EINTERNAL if the appended bytes differ from the declared ones. Frees the writer in any case. */
tn_status tn_safetensors_commit(tn_safetensors_writer *writer);
/* Frees the writer and removes the temporary file. `writer` may be NULL. */
void tn_safetensors_abandon(tn_safetensors_writer *writer);
