/* core/formats/input.h: an open file of which pieces are read, for the formats' readers. */
#ifndef TN_CORE_FORMATS_INPUT_H
#define TN_CORE_FORMATS_INPUT_H

#include <stdbool.h>

#include "core/base/env.h"

typedef struct tn_input {
  int fd;
  char *path; /* for messages */
  uint64_t bytes;
} tn_input;

/* A regular file. */
tn_status tn_input_open(const void *handle, const char *path, tn_input *input);
void tn_input_close(const void *handle, tn_input *input);

/* Exactly `count` bytes from `offset` on; TN_EIO when they are not there. Needs no position, so any
 * number of threads may read. */
tn_status tn_input_read(const tn_input *input, const void *handle, uint64_t offset, void *to, size_t count);

/* Bytes of a tensor of the given dims, or false when rank or a dim is none, or int64_t cannot count them.
 * Also when a dim is 0, the product of the others must be countable: nobody multiplies it unchecked. */
bool tn_checked_bytes(const int64_t *dims, int32_t rank, size_t element, int64_t *bytes);

/* TN_EINVAL when a byte is neither 0 nor 1; `name` says of what, "" for a file with one array. */
tn_status tn_check_bools(const void *handle, const char *path, const char *name, const void *bytes,
                         size_t count);

#endif
