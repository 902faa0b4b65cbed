/* core/infer/prediction/sampler.h: draws a token from the scores of a language model: softmax with a
 * temperature, restricted to the k best tokens and to the nucleus of mass p (Holtzman and others, "The
 * curious case of neural text degeneration", ICLR 2020). */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"
#include "tenon/random.h"

typedef struct tn_sampler {
  double temperature; /* 0: the token with the largest score */
  double top_p;       /* 1: all tokens */
  int64_t top_k;      /* 0: all tokens */
  tn_rng rng;
  int64_t n;       /* tokens */
  int32_t *tokens; /* those that are drawn from */
  double *mass;
} tn_sampler;

/* The other members are set. The caller calls tn_sampler_close, also after a failure. */
tn_status tn_sampler_open(const void *handle, int64_t n, tn_sampler *s);
void tn_sampler_close(const void *handle, tn_sampler *s);
/* Tokens of equal scores are in the order of their numbers; one with -infinity is never drawn. False: the
 * scores are not numbers (finite_rows.h), and no token is drawn from them. */
bool tn_sampler_draw(tn_sampler *s, const float *scores, int32_t *token);
