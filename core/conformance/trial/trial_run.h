/* core/conformance/trial/trial_run.h: a trial under way. Private to the files of trials. */
#pragma once

#include "core/conformance/reference/reference.h"
#include "core/conformance/trial/on_device.h"
#include "core/conformance/trial/trial.h"

typedef struct trial_run {
  const tn_trial_site *site;
  const tn_trial *trial;
  tn_verdict *verdict;
  tn_draw d;
  tn_builder *builder;
  tn_reference *reference;
  tn_on_device *device;
  double tolerance, sums_tolerance; /* sums_tolerance: of results in the dtype of sums */
} trial_run;

/* Sets the verdict. */
void trial_judge(trial_run *s, int32_t what, const char *format, ...) TN_PRINTF(3, 4);
bool trial_is_undecided(const trial_run *s);
/* A failure of the device, a kernel or an op's rules becomes a verdict. TN_ENOMEM ends the suite. */
tn_status trial_accept(trial_run *s, const void *handle, tn_status status, const char *doing);

/* Draws the use, as a graph with its outputs; then compiles it for the device and for the reference. */
tn_status trial_make_graph(trial_run *s);
tn_status trial_compile(trial_run *s);
/* TN_STYLE_...: of eight draws one has wide numbers, and two have special ones, whose gradients are not
 * defined. */
int32_t trial_style(const tn_trial *t);
/* Fills operands as the case requires, cotangents with TN_FILL_ANY, with the same values in every call. */
tn_status trial_fill_inputs(trial_run *s);
tn_status trial_run_once(trial_run *s);

/* trial_compare.c: the results against those of the reference. */
tn_status trial_compare(trial_run *s);
