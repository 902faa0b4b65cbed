/* core/formats/safetensors.h: the safetensors file format: eight bytes of length, a JSON object that
 * names each tensor's type, shape and place, then the tensors, row-major, little-endian, without gaps
 * (https://huggingface.co/docs/safetensors, "Format").
 *
 * A reader believes nothing: length, JSON, names, shapes and offsets are checked, with checked
 * arithmetic, before anything is allocated by them, so a hostile file is an error like any other. */
#ifndef TN_CORE_FORMATS_SAFETENSORS_H
#define TN_CORE_FORMATS_SAFETENSORS_H

#include "core/base/env.h"

/* A tensor of an open file; borrowed from it. */
typedef struct tn_safetensor {
  const char *name;
  const char *stored; /* the file's own word for the type, "F32" */
  tn_type type;       /* dtype TN_ANY for types that Tenon has not ("I8", "U16"): readable by nobody */
  uint64_t offset;    /* from the start of the file */
  uint64_t bytes;
} tn_safetensor;

typedef struct tn_safetensors tn_safetensors;

/* TN_EIO when the file cannot be read, TN_EINVAL with path and what is wrong in it. */
tn_status tn_safetensors_open(const void *handle, const char *path, tn_safetensors **file);
void tn_safetensors_close(tn_safetensors *file);

/* Tensors sorted by name. NULL: none of that name. */
int32_t tn_safetensors_count(const tn_safetensors *file);
const tn_safetensor *tn_safetensors_at(const tn_safetensors *file, int32_t index);
const tn_safetensor *tn_safetensors_find(const tn_safetensors *file, const char *name);

/* A text from the header's __metadata__; NULL: none of that key. */
const char *tn_safetensors_metadata(const tn_safetensors *file, const char *key);

/* Reads a whole tensor; `bytes` is what `to` has room for and must be the tensor's. Any number of
 * threads may read from one file, each with a handle of its own. */
tn_status tn_safetensors_read(const tn_safetensors *file, const void *handle, const tn_safetensor *tensor,
                              void *to, size_t bytes);

/* ---- writing ------------------------------------------------------------------------------------
 * Types and names are told first, then the data, in the same order and in pieces of any size. The
 * file appears under its name, whole, when it is committed (core/base/file.h). */

typedef struct tn_safetensor_named {
  const char *name;
  tn_type type;
} tn_safetensor_named;

typedef struct tn_safetensor_note { /* of __metadata__ */
  const char *key, *value;
} tn_safetensor_note;

typedef struct tn_safetensors_writer tn_safetensors_writer;

tn_status tn_safetensors_begin(const void *handle, const char *path, const tn_safetensor_named *tensors,
                               int32_t n, const tn_safetensor_note *notes, int32_t n_notes,
                               tn_safetensors_writer **writer);
tn_status tn_safetensors_append(tn_safetensors_writer *writer, const void *bytes, size_t count);
/* Size and CRC-32C of the file so far, header included. */
void tn_safetensors_sum(const tn_safetensors_writer *writer, uint64_t *bytes, uint32_t *crc);
/* TN_EINTERNAL when more or less was appended than was told. Ends the writer in any case. */
tn_status tn_safetensors_commit(tn_safetensors_writer *writer);
/* Ends the writer and leaves no file. NULL is fine. */
void tn_safetensors_abandon(tn_safetensors_writer *writer);

#endif
