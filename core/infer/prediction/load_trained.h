/* core/infer/prediction/load_trained.h: the state of programs that need trained parameters. */
#pragma once

#include "core/step/programs/programs.h"

/* Runs the initializers, loads weights (tn_weights_load_required), and rebuilds low-precision copies.
 * `command` is for messages. */
tn_status tn_load_trained(tn_run *run, const tn_program_set *set, tn_executor *executor, const char *command);
