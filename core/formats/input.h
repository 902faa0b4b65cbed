/* core/formats/input.h: an open file with random access, for the readers of file formats. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

typedef struct tn_input {
  int fd;
  char *path; /* for messages */
  uint64_t bytes;
} tn_input;

/* Opens a regular file; other kinds of files are errors. */
tn_status tn_input_open(const void *handle, const char *path, tn_input *input);
void tn_input_close(const void *handle, tn_input *input);

/* Reads exactly `count` bytes at `offset`; TN_EIO if the file ends before. The call uses no file position,
 * so any number of threads may read. */
tn_status tn_input_read(const tn_input *input, const void *handle, uint64_t offset, void *to, size_t count);

/* Computes the bytes of a tensor. False if the rank or a dimension is invalid, or if int64_t overflows.
 * The product of the other dimensions must also be representable when one dimension is 0, because callers
 * multiply it unchecked. */
bool tn_checked_bytes(const int64_t *dims, int32_t rank, size_t element, int64_t *bytes);

/* TN_EINVAL if a byte is neither 0 nor 1. `name` is the tensor's name for the message, "" for a file with
 * a single array. */
tn_status tn_check_bools(const void *handle, const char *path, const char *name, const void *bytes,
                         size_t count);
