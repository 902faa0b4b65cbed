/* core/train/report/stragglers.h: a rank that is slower than the others. Synchronous steps take all ranks the
 * same time, so each rank measures the part in which it does not wait for others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Steps between two comparisons, and between two warnings about one rank. */
enum { TN_STRAGGLER_STEPS = 100, TN_STRAGGLER_AGAIN = 1000 };

/* The time of a rank's own work in a step. */
typedef struct tn_own_time {
  double seconds; /* NaN: unknown */
  int64_t looks;  /* at its device, from which it was estimated */
} tn_own_time;

/* The times of the steps of a rank. */
typedef struct tn_step_times {
  double took_s[TN_STRAGGLER_STEPS]; /* without the host's waits for other ranks */
  int32_t n;
  bool warm; /* the first steps, which compile and measure, are over */
  int64_t looks, inside;
  double start_s, awaited_s; /* of the step that runs */
  tn_own_time *all;          /* of all ranks */
  int64_t *named;            /* rank 0: the step at which a rank was named last; 0: never */
} tn_step_times;

/* The slowest rank, if its time is at least `factor` times the median's, else -1; also where a time
 * is unknown. Of an even number of ranks the median is the lower of the two. */
int32_t tn_straggler_find(const tn_own_time *all, int32_t n, double factor, double *median_s);
