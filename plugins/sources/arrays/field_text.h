/* plugins/sources/arrays/field_text.h: the lists of fields of the source arrays. */
#pragma once

#include <limits.h>

#include "plugins/sources/arrays/array.h"

enum { FIELD_NAME = 64 };

/* "image: photos.bin u8[28, 28] +16 as f32[784]" or "label: all.npz/y 0..9". */
typedef struct field_text {
  char name[FIELD_NAME], path[PATH_MAX], member[PATH_MAX]; /* member "": not said */
  array_element raw;                                       /* kind ELEMENT_NONE: not said */
  int64_t skip;
  int32_t raw_rank, as_dtype, as_rank; /* as_dtype TN_ANY and as_rank -1: not said */
  int64_t raw_dims[TN_MAX_RANK], as_dims[TN_MAX_RANK];
  int64_t classes; /* 0: no range is said */
} field_text;

/* Reads the field at *at, and goes on behind it; TN_EOF: there are no more. Relative paths begin at `folder`.
 * Messages name `option`. */
tn_status field_text_next(const void *handle, const char *option, const char *folder, const char **at,
                          field_text *field);
