/* core/infer/prediction/predict_inputs.h: the inputs that the user of `tenon predict` names. */
#pragma once

#include "core/infer/prediction/predict_rows.h"
#include "core/step/programs/programs.h"

typedef struct tn_predict_inputs {
  tn_run *run;
  const tn_predict_options *options;
  const char **paths; /* options->n_inputs of them, without the names of inputs */
  const char **names; /* NULL: not named */
  tn_predict_rows rows;
  bool arrays;     /* the inputs are files of arrays, which are in `rows` */
  bool transforms; /* the rows go through the transforms of validation */
} tn_predict_inputs;

/* Reads the arrays, before the programs are compiled. TN_EINVAL: arrays and other files are mixed. The caller
 * frees `rows`, also after a failure. */
tn_status tn_predict_inputs_read(tn_predict_inputs *inputs);
/* The samples of the inputs; `batch` for each folder, whose files are not counted. */
int64_t tn_predict_inputs_samples(const tn_predict_inputs *inputs, int64_t batch);
/* Gives each array an input of the program, and checks its type. */
tn_status tn_predict_inputs_bind(tn_predict_inputs *inputs, const tn_program *program);
