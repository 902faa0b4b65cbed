/* core/step/values/watch_values.h: what a watched step shows of groups of parameters ([run] watch). */
#pragma once

#include "core/step/programs/programs.h"
#include "tenon/plugin/observer.h"

typedef struct tn_watch_values {
  const tn_watched_parameters *params;
  const float **sums;     /* [slot]; core/step/update/watch.h */
  const int32_t **counts; /* likewise; an element is NULL without histograms */
  const char **names;     /* of the groups; the first is that of all parameters */
  int32_t n_groups;
  int32_t *group_of;  /* [params->n]; 0: of no group but the first */
  tn_metric *metrics; /* three for each group: set by tn_watch_values_read */
  int32_t n_metrics;
  tn_histogram *histograms; /* two for each group but the first */
  int32_t n_histograms;
} tn_watch_values;

/* Of the watch program of a phase. */
tn_status tn_watch_values_bind(tn_run *run, tn_program_set *set, tn_executor *executor, int32_t phase,
                               int32_t slots, tn_watch_values *values);
/* Of a step that has ended. `skipped`: its update was not applied. */
void tn_watch_values_read(tn_watch_values *values, int32_t slot, bool skipped);
