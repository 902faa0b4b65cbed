/* core/infer/prediction/load_trained.h: the state of programs that need trained parameters. */
#ifndef TN_CORE_INFER_PREDICTION_LOAD_TRAINED_H
#define TN_CORE_INFER_PREDICTION_LOAD_TRAINED_H

#include "core/step/programs/programs.h"

/* Runs the initializers, loads weights (tn_weights_load_required), and rebuilds low-precision copies.
 * `command` is for messages. */
tn_status tn_load_trained(tn_run *run, const tn_program_set *set, tn_executor *executor, const char *command);

#endif
