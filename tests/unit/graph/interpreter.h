/* tests/unit/graph/interpreter.h: computes the values of a graph of the rig's ops in f64, one node at
 * a time. */
#pragma once

#include "tests/unit/graph/rig.h"

/* Elements of an input or a state. */
typedef struct binding {
  const char *name;
  double *data;
} binding;

/* The elements of each value, those of dead nodes too. Freed by evaluation_free. */
typedef struct evaluation {
  const tn_graph *graph;
  double **v;
} evaluation;

evaluation evaluate(const tn_graph *graph, const binding *bindings, int32_t n);
void evaluation_free(evaluation *e);
