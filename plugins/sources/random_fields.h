/* plugins/sources/random_fields.h: fields of any name and type for the source random. */
#pragma once

#include "plugins/sources/sources.h"

enum { RANDOM_FIELDS = 16, RANDOM_NAME = 32 };

typedef struct random_fields {
  int32_t n;
  tn_field v[RANDOM_FIELDS];
  char names[RANDOM_FIELDS][RANDOM_NAME];
  int64_t low[RANDOM_FIELDS], high[RANDOM_FIELDS]; /* the least and the greatest whole number */
} random_fields;

/* Adds the fields of a text such as "dense: f32[13], ids: i64[26], label: i32[] 0..4". TN_EINVAL names the
 * option and the field. */
tn_status random_fields_parse(tn_env *env, const char *option, const char *text, int32_t role,
                              int64_t classes, random_fields *fields);
/* The numbers of field i. Floats: inputs are standard normal, targets from [0, 1). Whole numbers are those of
 * the field's range, or below `classes`, at most what the type holds, and bool is no or yes. */
void random_fields_fill(tn_rng *rng, const random_fields *fields, int32_t i, void *out);
