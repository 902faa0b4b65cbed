/* core/step/programs/bucket_cuts.h: divides gradients into the buckets whose collectives end first. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

/* A gradient, when the backward pass has made it. */
typedef struct tn_ready_gradient {
  double ready_s, bytes;
  int32_t part; /* a bucket has gradients of one part, which are neighbours; parts are numbered from 0 */
} tn_ready_gradient;

typedef struct tn_cut_problem {
  const tn_ready_gradient *gradients; /* part by part, each in the order of its region */
  int32_t n;
  /* The time of the collectives of a bucket of so many bytes. */
  double (*collective_s)(const void *context, double bytes);
  const void *context;
  double slack_s;    /* the end may be later by so much, where that takes fewer buckets */
  double most_bytes; /* of the gradients between two cuts, unless they are one; 0: any number */
} tn_cut_problem;

/* When the last collective ends, if begins[i] says whether gradient i begins a bucket. Collectives run one
 * after another, in the order in which their buckets are ready. A negative number: no memory. */
double tn_cut_end_s(tn_env *env, const tn_cut_problem *problem, const bool *begins);

/* Sets begins[i]. Where there is one part, no other cuts within most_bytes let the last collective end
 * earlier by more than the slack. With several parts all are cut at the same times, but for cuts that bring
 * nothing; of more than 512 gradients, small neighbours stay together. */
tn_status tn_cut_buckets(tn_env *env, const tn_cut_problem *problem, bool *begins);
