/* core/train/programs/control_block.h: the values that the host writes before a step: the iteration and the
 * scheduled options. */
#ifndef TN_CORE_TRAIN_PROGRAMS_CONTROL_BLOCK_H
#define TN_CORE_TRAIN_PROGRAMS_CONTROL_BLOCK_H

#include "core/train/programs/programs.h"

/* Where the control values of a program lie in each slot, found once: a step looks nothing up. */
typedef struct tn_control_block {
  const tn_update_info *info;
  int64_t **iteration; /* [slot]; NULL: the program does not read it */
  int64_t **block;     /* likewise */
  float **values;      /* [slot * n_controls + control]; NULL: not read */
  int32_t lr;          /* which control is the learning rate; -1: none */
  double base_lr;      /* of group 0 */
} tn_control_block;
tn_status tn_control_block_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                                const tn_update_info *info, tn_control_block *controls);
/* Writes the control values of one step into a slot: iteration, the block of the global batch that stands
 * there, and every option times its factor. */
void tn_control_block_write(const tn_control_block *controls, int32_t slot, int64_t step, int64_t block,
                            double lr_factor);
/* Factor of the learning rate at a step: warm-up times schedule. */
double tn_learning_rate_factor(const tn_settings *settings, int64_t step, int64_t steps,
                               int64_t steps_per_epoch);

#endif
