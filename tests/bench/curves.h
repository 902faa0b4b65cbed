/* tests/bench/curves.h: a result of curves.sh. */
#ifndef TN_TESTS_BENCH_CURVES_H
#define TN_TESTS_BENCH_CURVES_H

#include <stdio.h>

#include "curve.h"
#include "json.h"

enum { CURVES_MOST_STEPS = 4096, CURVES_MOST_RUNS = 8 };

/* The losses under a key of a run; returns how many. */
size_t curves_losses(const json_t *run, const char *key, double losses[CURVES_MOST_STEPS]);

/* The runs of a model, smoothed, and what the first is ahead of each. */
void curves_plot(FILE *to, const json_t *model);

/* All models, with a table each; `name` is that of the result, and the beginning of the pictures' names. */
void curves_page(FILE *to, const json_t *result, const char *name);

#endif
