/* core/train/samples/sample_set.h: the samples of [run] samples: the values of their inputs and targets,
 * which are read once, and of the outputs that the model gave last. */
#pragma once

#include <jansson.h>

#include "core/data/loader.h"
#include "core/run/run.h"
#include "core/step/programs/programs.h"
#include "tenon/tokenizer.h"

/* Roles of values, behind TN_FIELD_INPUT and TN_FIELD_TARGET. */
enum { TN_SAMPLE_OUTPUT = TN_FIELD_TARGET + 1 };

struct tn_sample_view;

/* An input, target or output of the model. */
typedef struct tn_sample_value {
  const char *name;
  int32_t role;
  int64_t classes;                   /* of a target of class numbers; 0: unknown */
  tn_type type;                      /* of one sample */
  size_t bytes;                      /* of one sample */
  char *rows;                        /* of all samples */
  const struct tn_sample_view *view; /* NULL: it is not shown */
} tn_sample_value;

typedef struct tn_sample_set {
  tn_run *run;
  tn_arena arena;
  int64_t n;               /* samples; the data may have fewer than the program takes */
  int64_t batch;           /* rows of the program */
  tn_sample_value *values; /* inputs and targets as the data have them, then outputs */
  int32_t n_values;
  json_t *names;           /* of the classes of targets, by target; NULL: unknown */
  tn_tokenizer *tokenizer; /* NULL: tokens are shown as numbers */
} tn_sample_set;

/* Reads the first samples of the validation data, of which the run has a loader, for a program, and makes
 * room for its outputs. The caller calls tn_sample_set_free, also after a failure. */
tn_status tn_sample_set_read(tn_run *run, const tn_loader *valid, const tn_program *program, int64_t samples,
                             tn_sample_set *set);
void tn_sample_set_free(tn_sample_set *set);

/* The value of a name and a role; NULL where the set lacks it. */
tn_sample_value *tn_sample_find(const tn_sample_set *set, const char *name, int32_t role);
static inline const char *tn_sample_row(const tn_sample_value *value, int64_t i) {
  return value->rows + (size_t)i * value->bytes;
}
/* The name of a class of a target; NULL: it has none. */
const char *tn_sample_class_name(const tn_sample_set *set, const char *target, int64_t number);
/* The values of a sequence of n in front of its padding, which has negative targets. */
int64_t tn_sample_length(const tn_sample_set *set, int64_t i, int64_t n);
