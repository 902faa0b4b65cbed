/* core/infer/prediction/predict_inputs.h: the inputs that the user of `tenon predict` names. */
#pragma once

#include "core/step/checks/check_model.h"
#include "core/infer/prediction/predict_rows.h"
#include "core/step/programs/programs.h"

typedef struct tn_predict_inputs {
  tn_run *run;
  const tn_predict_options *options;
  const char **paths; /* options->n_inputs of them, without the names of inputs */
  const char **names; /* NULL: not named */
  tn_predict_rows rows;
  bool arrays;                   /* the inputs are files of arrays, which are in `rows` */
  const tn_padded_field *padded; /* the inputs with the dimension that varies */
  int32_t n_padded;
  bool transforms; /* the rows go through the transforms of validation */
} tn_predict_inputs;

/* Reads the arrays, before the programs are compiled. TN_EINVAL: arrays and other files are mixed. The caller
 * frees `rows`, also after a failure. */
tn_status tn_predict_inputs_read(tn_predict_inputs *inputs);
/* The samples of the inputs; `batch` for each folder, whose files are not counted. */
int64_t tn_predict_inputs_samples(const tn_predict_inputs *inputs, int64_t batch);
/* The smallest of [model] lengths that holds the arrays; 0: the inputs are files of a source, which take the
 * longest length, or no dimension varies. TN_EINVAL: an array is longer than all of them. */
tn_status tn_predict_inputs_length(tn_predict_inputs *inputs, int64_t *length);
/* Gives each array an input of the program, and checks its type. */
tn_status tn_predict_inputs_bind(tn_predict_inputs *inputs, const tn_program *program);
