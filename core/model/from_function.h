/* core/model/from_function.h: models that a function of the application emits. Private to core/model. */
#pragma once

#include "core/model/assemble.h"

/* A loss or metric that the function added. */
typedef struct tn_function_measure {
  const char *line; /* "aux: mse(weight=0.3)"; NULL: `in` holds the values that a layer would return */
  const char *name; /* without a line */
  double factor;    /* without a line */
  bool is_loss;
  tn_results in;
} tn_function_measure;

/* from_function.c: calls the request's function and builds the model. */
tn_status tn_model_function_build(tn_model_scope *scope, tn_model *model);

/* objective.c: builds the losses and metrics of such a model. */
tn_status tn_objective_from_function(tn_model_scope *scope, const tn_function_measure *measures, int32_t n,
                                     tn_model *model);
