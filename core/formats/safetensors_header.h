/* core/formats/safetensors_header.h: private to the reader and writer of safetensors. */
#pragma once

#include "core/base/arena.h"
#include "core/formats/safetensors.h"

/* The reference implementation's limit for the length of the JSON, in bytes. */
enum { TN_SAFETENSORS_LONGEST_HEADER = 100000000 };

typedef struct tn_safetensors_header {
  tn_safetensor *tensors; /* sorted by name */
  int32_t n_tensors;
  tn_safetensor_note *notes;
  int32_t n_notes;
} tn_safetensors_header;

/* Parses and validates the JSON of a file with `data_bytes` bytes of data that start at `data_offset`. The
 * result lives in the arena. */
tn_status tn_safetensors_parse(const void *handle, tn_arena *arena, const char *path, const char *json,
                               size_t n, uint64_t data_offset, uint64_t data_bytes,
                               tn_safetensors_header *header);

/* The name of a Tenon type in the format, such as "F32"; NULL for types that the format lacks. */
const char *tn_safetensors_word(int32_t dtype);
