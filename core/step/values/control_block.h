/* core/step/values/control_block.h: the control block: the values that the host writes before a step. */
#pragma once

#include "core/step/programs/programs.h"
#include "core/step/values/schedule_values.h"

/* The addresses of a program's control values in each slot, looked up once. */
typedef struct tn_control_block {
  const tn_update_info *info;
  int64_t **iteration; /* [slot]; NULL: the program does not read it */
  int64_t **block;     /* likewise */
  float **values;      /* [slot * n_scheduled + option]; NULL: the program does not read it */
  int32_t lr;          /* index of the learning rate; -1: it is not scheduled */
  double base_lr;      /* of group 0, as configured */
} tn_control_block;
tn_status tn_control_block_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                                const tn_update_info *info, tn_control_block *controls);
/* Writes the control values of a step into a slot: the iteration, the number of the global batch's block in
 * the slot, and the values of the scheduled options. */
void tn_control_block_write(const tn_control_block *controls, int32_t slot, int64_t block,
                            const tn_step_position *at);
/* The learning rate of group 0 at a step; 0 where the optimizer has none. */
double tn_control_block_lr(const tn_control_block *controls, const tn_step_position *at);
