/* tests/bench/curves.h: reads, plots and describes a result of curves.sh. */
#pragma once

#include <stdio.h>

#include "curve.h"
#include "json.h"

enum { CURVES_MOST_STEPS = 4096, CURVES_MOST_RUNS = 8 };

/* Reads the losses under a key of a run; returns their number. */
size_t curves_losses(const json_t *run, const char *key, double losses[CURVES_MOST_STEPS]);

/* Plots the smoothed losses of a model's runs, and their differences from the first run. */
void curves_plot(FILE *to, const json_t *model);

/* Writes the page: a table per model. `name` is that of the result, with which the pictures' names begin. */
void curves_page(FILE *to, const json_t *result, const char *name);
