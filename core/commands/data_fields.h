/* core/commands/data_fields.h: statistics of the fields of batches, for tn_run_data. */
#pragma once

#include <jansson.h>

#include "core/data/loader.h"

/* The numbers of a field that are no NaN: sums of their distances to the first one. */
typedef struct tn_field_sums {
  double least, greatest, shift, sum, squares;
  int64_t n, missing;
} tn_field_sums;

/* The loader's fields, and the samples of each class of the first target that has classes. */
typedef struct tn_data_fields {
  const tn_loader *loader;
  tn_field_sums *sums; /* by field */
  int64_t *samples;    /* by class */
  int32_t target;      /* the field of the classes; -1: none */
} tn_data_fields;

/* Memory comes from the arena. */
tn_status tn_data_fields_start(tn_arena *arena, const tn_loader *loader, tn_data_fields *fields);
/* Adds the first `samples` rows of a batch of this length, one of [model] lengths, or 0 without them. */
void tn_data_fields_add(tn_data_fields *fields, void *const *values, int64_t samples, int64_t length);
json_t *tn_data_fields_json(const tn_data_fields *fields);
/* NULL: no target has classes. */
json_t *tn_data_classes_json(const tn_data_fields *fields);

/* Writes the pictures among the rows of a batch as a grid. TN_EINVAL: no field is a picture. */
tn_status tn_data_write_picture(tn_env *env, const tn_loader *loader, void *const *values, int64_t samples,
                                const char *path);
