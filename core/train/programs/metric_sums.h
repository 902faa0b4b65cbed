/* core/train/programs/metric_sums.h: sums of losses and metrics over steps. */
#ifndef TN_CORE_TRAIN_PROGRAMS_METRIC_SUMS_H
#define TN_CORE_TRAIN_PROGRAMS_METRIC_SUMS_H

#include "core/train/programs/programs.h"

/* Where a program leaves the sums of every measure in each slot, found once. */
typedef struct tn_measure_outputs {
  const float **sum, **weight; /* [slot * n + measure] */
  int32_t n;
  const float **skipped, **loss_scale; /* [slot]; their elements NULL: the program has no such output */
} tn_measure_outputs;
tn_status tn_measure_outputs_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                                  const tn_program_set *set, tn_measure_outputs *outputs);

typedef struct tn_metric_sums {
  const tn_measure *measures;
  int32_t n;
  double *sum, *weight;            /* per measure */
  tn_metric *means;                /* n + 1: "loss" first; filled by tn_metric_sums_means */
  int64_t steps, samples, skipped; /* skipped: steps whose update was not applied */
} tn_metric_sums;
tn_status tn_metric_sums_init(tn_arena *arena, const tn_program_set *set, tn_metric_sums *sums);
void tn_metric_sums_reset(tn_metric_sums *sums);
/* Takes over what another has counted, if it is of as many measures. */
void tn_metric_sums_copy(tn_metric_sums *sums, const tn_metric_sums *from);
/* Adds what a program left on a slot: the sums alone of a micro-batch that is not the step's last, or those
 * of the last one with what counts for the whole step. */
void tn_metric_sums_add_micro_batch(tn_metric_sums *sums, const tn_measure_outputs *outputs, int32_t slot);
void tn_metric_sums_add(tn_metric_sums *sums, const tn_measure_outputs *outputs, int32_t slot,
                        int64_t samples);
/* Means so far, "loss" first: the losses' means with their factors. */
const tn_metric *tn_metric_sums_means(tn_metric_sums *sums);

#endif
