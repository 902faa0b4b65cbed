/* tests/integration/sim/runs.h: runs of the program whose results are compared. */
#pragma once

#include "program.h"

/* Trains two epochs of model.ini into the folder `output`; `more`: further arguments. The run must succeed.
 */
static inline const json_t *train(const char *output, const char *more) {
  return program_json(0, "train model.ini --output %s --set run.epochs=2 --set run.seed=3 %s", output, more);
}
