/* core/infer/prediction/output_units.h: outputs in the units of the data: the source has scaled the target
 * that they predict (records/checkpoints/target_units.h). */
#pragma once

#include "core/infer/prediction/forward_pass.h"

typedef struct tn_output_units {
  const char *target;    /* its name; NULL: the output is in its units */
  double *scale, *shift; /* of each element of a row */
} tn_output_units;

/* Finds the units of output k: those of the target of its name, or of one that a loss pairs with it; of the
 * first output those of the only target that is scaled. The target has as many elements. */
tn_status tn_output_units_find(const tn_forward *forward, int32_t k, tn_output_units *units);
/* Turns n rows of an output into these units. */
void tn_output_units_apply(const tn_output_units *units, const tn_output_rows *output, char *rows, int64_t n);
