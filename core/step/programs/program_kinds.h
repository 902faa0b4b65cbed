/* core/step/programs/program_kinds.h: what the number of a program says of it. */
#pragma once

#include "core/step/programs/programs.h"

/* The program of the first phase and the longest length that stands for one of a later phase or a shorter
 * length. */
int32_t tn_program_kind(int32_t which);
/* Its name, without phase and length. */
const char *tn_program_kind_name(int32_t which);
/* "step", "step.4" in the phase that begins with epoch 4, or "step.n64"; NULL: out of memory. */
const char *tn_program_name(const tn_run *run, tn_program_set *set, int32_t which);

int32_t tn_program_phase(int32_t which);
/* The name of its [phase NAME]; NULL: it belongs to none, or to all of them. */
const char *tn_program_turn(const tn_run *run, int32_t which);
/* The epoch that decides which parameters are frozen in a program. */
int64_t tn_program_epoch(const tn_run *run, int32_t which);
/* The step that trains most parameters. It chooses the locations and layouts of all states. */
int32_t tn_program_leader(const tn_run *run);
/* The index of its length among the shorter [model] lengths; -1: it has the longest one. */
int32_t tn_program_shorter(int32_t which);
/* The size of the dimension that varies in a program; 0: none does. */
int64_t tn_program_length(const tn_run *run, const tn_program_request *request, int32_t which);

bool tn_program_is_incremental(int32_t which);
bool tn_program_is_inference(int32_t which);
bool tn_program_is_training(int32_t which);
/* Whether it updates the parameters: STEP and WATCH. */
bool tn_program_updates(int32_t which);

/* The program that dumps and reports show: the training step, or the model if the step is not requested. */
int32_t tn_program_shown(const tn_program_request *request);
/* The batch of a program; 0: it is not requested. */
int64_t tn_program_batch(const tn_run *run, const tn_program_request *request, int32_t which);

/* Programs of several lengths have no variants of their own for phases, micro-batches and ranks: TN_EINVAL.
 */
tn_status tn_programs_check_lengths(tn_run *run, const tn_program_request *request);
