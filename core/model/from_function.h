/* core/model/from_function.h: private to core/model: models that a function of the application emits. */
#ifndef TN_CORE_MODEL_FROM_FUNCTION_H
#define TN_CORE_MODEL_FROM_FUNCTION_H

#include "core/model/assemble.h"

/* A loss or metric that the function has asked for. */
typedef struct tn_given_measure {
  const char *line; /* "aux: mse(weight=0.3)"; NULL: `in` is what a layer would have yielded */
  const char *name; /* without a line */
  double factor;    /* without a line */
  bool is_loss;
  tn_results in;
} tn_given_measure;

/* emitted.c: runs the request's function and builds what it asked for. */
tn_status tn_emitted_build(tn_model_scope *scope, tn_model *model);

/* objective.c: the measures of such a model. */
tn_status tn_objective_given(tn_model_scope *scope, const tn_given_measure *measures, int32_t n,
                             tn_model *model);

#endif
