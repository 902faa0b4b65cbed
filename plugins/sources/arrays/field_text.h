/* plugins/sources/arrays/field_text.h: the lists of fields of the source arrays. */
#pragma once

#include <limits.h>

#include "plugins/sources/arrays/array.h"
#include "plugins/sources/field_list.h"

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

/* As what an entry of a list is written (field_list.form). */
extern const char FIELD_TEXT_FORM[];
/* Reads an entry of a list. Relative paths begin at `folder`. */
tn_status field_text_read(const field_list *list, const field_entry *entry, const char *folder,
                          field_text *field);
