/* core/train/samples/continuation.h: how a model that predicts the next token goes on behind the first half
 * of a sample, by the most probable token at each place. */
#pragma once

#include "core/train/samples/sample_set.h"

typedef struct tn_continuation {
  const tn_sample_value *input, *output; /* tokens [n], and the tokens that the model predicts */
  int64_t most;                          /* tokens that are appended */
  int32_t *tokens;                       /* [samples][most]: those of the last run */
  bool causal; /* of the last run: the outputs for the first half do not depend on the rest */
} tn_continuation;

/* Runs the program on the inputs of the set, and reads the outputs. */
typedef tn_status (*tn_sample_run)(void *context);

/* Finds the input and the output: the target of the output has the input's tokens, one place later. input is
 * NULL where the data are not of that kind. */
tn_status tn_continuation_find(tn_sample_set *set, tn_continuation *c);
/* The tokens of sample i in front of those that are appended. */
int64_t tn_continuation_prompt(const tn_sample_set *set, const tn_continuation *c, int64_t i);
/* How many tokens have room behind them. */
int64_t tn_continuation_count(const tn_sample_set *set, const tn_continuation *c, int64_t i);
/* After a run on the set's own inputs: runs the program `most` times, and leaves the values of the set as
 * they were. */
tn_status tn_continuation_run(tn_sample_set *set, tn_continuation *c, tn_sample_run run, void *context);
