/* core/step/values/metric_sums.h: sums of losses and metrics over steps. */
#pragma once

#include "core/step/programs/programs.h"

/* The addresses of a program's measure outputs in each slot, looked up once. */
typedef struct tn_measure_outputs {
  const float **sum, **weight; /* [slot * n + measure] */
  const double **sums;         /* likewise; an element is NULL if the measure has no such output */
  const float **rows;
  int64_t *n_rows; /* [measure] */
  int32_t n;
  const float **skipped, **loss_scale; /* [slot]; an element is NULL if the program has no such output */
} tn_measure_outputs;
tn_status tn_measure_outputs_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                                  const tn_program_set *set, tn_measure_outputs *outputs);

typedef struct tn_metric_sums {
  const tn_measure *measures;
  int32_t n;
  double *sum, *weight;        /* per measure */
  int64_t n_statistics;        /* of all measures of sums */
  double *statistics;          /* [n_statistics] */
  struct tn_metric_rows *rows; /* [n]; of those of rows */
  tn_arena *arena;             /* for rows */
  tn_metric *means;            /* at most n + 1, "loss" first; written by tn_metric_sums_means */
  const tn_measure **told;     /* the measure of each of them; NULL: the loss */
  int32_t n_means;
  int64_t steps, samples, skipped; /* skipped: steps whose update was not applied */
} tn_metric_sums;
tn_status tn_metric_sums_init(tn_arena *arena, const tn_program_set *set, tn_metric_sums *sums);
void tn_metric_sums_reset(tn_metric_sums *sums);
/* Copies the sums, unless the number of measures differs. */
void tn_metric_sums_copy(tn_metric_sums *sums, const tn_metric_sums *from);
/* Resets the measures of a [phase NAME]. */
void tn_metric_sums_reset_phase(tn_metric_sums *sums, const char *phase);
/* tn_metric_sums_add adds the outputs of a slot and counts a step. A step of several micro-batches or phases
 * adds the outputs of each, and counts once. */
void tn_metric_sums_add(tn_metric_sums *sums, const tn_measure_outputs *outputs, int32_t slot,
                        int64_t samples);
void tn_metric_sums_add_batch(tn_metric_sums *sums, const tn_measure_outputs *outputs, int32_t slot);
void tn_metric_sums_count(tn_metric_sums *sums, int64_t samples);
/* Keeps the rows of the metrics of rows, in a pass that computes them at its end with
 * tn_metric_sums_close. */
tn_status tn_metric_sums_add_rows(tn_metric_sums *sums, const tn_measure_outputs *outputs, int32_t slot);
tn_status tn_metric_sums_close(tn_metric_sums *sums);
/* The means so far, or what metrics make of them; sums->n_means is their number. The first one, "loss", is
 * the weighted sum of the losses' means. Metrics of rows are there after tn_metric_sums_close. */
const tn_metric *tn_metric_sums_means(tn_metric_sums *sums);
