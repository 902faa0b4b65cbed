/* core/data/weighted.h: samples drawn in proportion to their weights, with replacement, as by PyTorch's
 * WeightedRandomSampler. A draw is found in constant time (Walker's aliases), so it has a number as those of
 * tn_permute have, and neither resuming nor shards need more. 16 bytes a sample. */
#pragma once

#include "core/base/env.h"
#include "tenon/plugin/source.h"

typedef struct tn_weighted {
  int64_t n;         /* samples; 0: there are no weights */
  double *threshold; /* of a place: below it the draw is its own sample, else that of `alias` */
  int64_t *alias;
} tn_weighted;

/* Asks an open source for the weight of every sample. A source without weights leaves n = 0. TN_EINVAL: a
 * weight is negative or not finite, or all are 0. */
tn_status tn_weighted_make(tn_env *env, const tn_source *source, void *self, int64_t count,
                           tn_weighted *weighted);
void tn_weighted_free(const tn_env *env, tn_weighted *weighted);

/* The sample of a draw. */
int64_t tn_weighted_draw(const tn_weighted *weighted, uint64_t key, int64_t draw);
