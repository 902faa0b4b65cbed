#include "core/infer/prediction/load_trained.h"

#include "core/records/runs/weights_file.h"

tn_status tn_load_trained(tn_run *run, const tn_program_set *set, tn_executor *executor,
                          const char *command) {
  TN_TRY(tn_executor_run(executor, set->index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(executor, 0));
  TN_TRY(tn_weights_load_required(run, executor, set->map, command));
  return tn_programs_refresh(set, executor);
}
