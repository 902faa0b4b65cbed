/* plugins/sources/arrays/array_set.h: the open arrays of all fields. */
#pragma once

#include "plugins/sources/arrays/field_text.h"

enum { ARRAY_FIELDS = 32 };

typedef struct array_field {
  char name[FIELD_NAME];
  char *path; /* for messages */
  array array;
  int32_t role;
  tn_type type;                /* as what a row is read */
  int64_t elements, row_bytes; /* of a stored row */
  int64_t classes;             /* 0: the numbers are no classes */
  int32_t counts;              /* whether the classes were found, not said */
} array_field;

typedef struct array_set {
  int32_t n;
  int64_t rows;
  array_field fields[ARRAY_FIELDS];
} array_set;

/* Opens the fields of both lists. After a failure the caller closes the set, too. */
tn_status array_set_open(tn_env *env, const char *folder, const char *inputs, const char *targets,
                         array_set *set);
/* Opens the same fields from the files of another list, whose fields may have any order. */
tn_status array_set_open_same(tn_env *env, const char *folder, const char *valid, const array_set *like,
                              array_set *set);
void array_set_close(const void *handle, array_set *set);
/* Classes that were found become those of both sets. */
tn_status array_set_join_classes(tn_env *env, array_set *a, array_set *b);

/* Reads a row. TN_EINVAL: a number that the type cannot hold, or a class number beyond the range of the
 * field. */
tn_status array_field_sample(const void *handle, const array_field *f, int64_t row, void *to);
/* The number in a row of one. */
tn_status array_field_number(const void *handle, const array_field *f, int64_t row, int64_t *number);
