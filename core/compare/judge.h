/* core/compare/judge.h: whether the results of one launch are those of another backend.
 *
 * The reference backend computes the same ops from the same operands. Where the two differ by more than the
 * tolerance of the ops (core/conformance/trial/trial.h), the ops are computed in f64, also with operands that
 * are changed by their rounding, and the backend that is farther from these numbers departs. */
#pragma once

#include "core/compare/difference.h"
#include "core/exec/device/device.h"
#include "core/graph/graph.h"

enum {
  TN_JUDGED_SAME = 0,      /* the difference is within the tolerance */
  TN_JUDGED_ROUNDING = 1,  /* it is not, but f64 shows that rounding explains it */
  TN_JUDGED_DEPARTS = 2,   /* the tested backend departs */
  TN_JUDGED_REFERENCE = 3, /* the reference backend departs: the tested one is nearer to f64 */
};

typedef struct tn_judgement {
  int32_t verdict; /* TN_JUDGED_..., the worst of all results */
  int32_t result;  /* of which the rest is told: the one that uses most of its tolerance */
  tn_type type;
  tn_difference difference;
  double tolerance;                 /* absolute */
  double share;                     /* the largest difference over the tolerance */
  bool in_f64;                      /* the ops were computed in f64 */
  double reference_off, tested_off; /* then: the distance of each from f64, over the tolerance there */
} tn_judgement;

/* Where judging happens. */
typedef struct tn_judge {
  tn_env *env;
  tn_registry *registry;
  tn_device *reference;
} tn_judge;

/* Judges the results `found` of the ops of a graph of group_graph.h. in and found: row-major, in the order of
 * the names; in[i] NULL where there is no such input. Messages go to judge->env. TN_EUNSUPPORTED: the
 * reference backend cannot compute the ops. */
tn_status tn_judge_results(const tn_judge *judge, const tn_graph *graph, const void *const *in, int32_t n_in,
                           const void *const *found, int32_t n_out, tn_judgement *judgement);
