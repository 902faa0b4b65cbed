/* plugins/observers/bar.h: the text of the progress bar, fitted to the columns of a terminal. */
#pragma once

#include <stddef.h>

#include "tenon/plugin/observer.h"

enum { BAR_TEXT = 512, BAR_METRICS = 16 };

/* The facts that a bar shows. */
typedef struct bar_facts {
  int64_t epoch, epochs; /* epoch: from 1 */
  int64_t step, steps;   /* of the epoch, or of its validation; steps <= 0: unknown */
  int32_t validating;
  double rate, seconds_left; /* samples per second */
  const tn_metric *train, *valid;
  int32_t n_train, n_valid;
} bar_facts;

/* Writes the richest text that is shorter than `columns` into text[BAR_TEXT]. Returns its length in columns;
 * 0 if nothing fits. */
size_t observer_bar_text(char *text, const bar_facts *facts, int columns);

/* Writes "  title name 0.1234 ..." with names cut to `letters` a word; 0 leaves them out. A loss that is the
 * total again is left out. At most `most` values. Returns the length. */
int observer_bar_metrics(char *text, size_t size, const char *title, const tn_metric *metrics, int32_t n,
                         int letters, int most);

/* "1:02:03" or "2:03" */
void observer_bar_time(char *text, size_t size, double seconds);
