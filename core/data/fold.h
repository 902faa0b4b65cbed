/* core/data/fold.h: a fold of a source: for cross-validation, its samples are divided into parts, of which
 * validation reads one and training the others.
 *
 * The division is a permutation of the samples (tn_permute) that is cut into parts whose sizes differ by at
 * most one. It is the same in every run and for every seed, so that runs of all folds together validate on
 * every sample once. */
#pragma once

#include <stdbool.h>

#include "tenon/plugin/source.h"

typedef struct tn_data_fold {
  int32_t part, parts; /* part, from 1; 0 parts: the source is not divided */
  bool held_out;       /* the samples of the part itself, else those of all others */
} tn_data_fold;

/* A source of some samples of another one. `source` is used in its place, with the address of this struct as
 * its self. */
typedef struct tn_folded_source {
  tn_source source;
  const tn_source *whole;
  void *self;
  int64_t count;       /* samples of the whole */
  int64_t begin, size; /* of the part, in the order of the permutation */
  bool held_out;
} tn_folded_source;

/* Takes over the open source, which the new one closes. TN_EINVAL: it is endless or a stream, or has fewer
 * samples than parts; it is not taken over then. */
tn_status tn_fold_source(tn_env *env, const tn_source *whole, void *self, const tn_data_fold *fold,
                         tn_description *description, tn_folded_source *folded);
