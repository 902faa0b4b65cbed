/* core/compare/report.h: the result of a comparison as JSON. */
#pragma once

#include "core/compare/launches.h"
#include "core/run/result.h"

/* A step of both trainings. */
typedef struct tn_compared_loss {
  double reference, tested;
} tn_compared_loss;

typedef struct tn_compared {
  const char *reference, *tested; /* the backends */
  const tn_compared_loss *losses;
  int32_t steps;
  const tn_compared_launches *launches;
  int64_t host_bytes; /* the most that the operands and results of one launch took */
} tn_compared;

/* The verdict on a launch whose results agree and have other bits each time. */
extern const char tn_unsteady_verdict[];

/* The judgement on a launch: {result, largest, ulp, tolerance, share, at, expected, found, verdict ...}.
 * NULL: out of memory. */
json_t *tn_compared_judgement(const tn_judgement *judged);
/* NULL: out of memory. */
json_t *tn_compared_report(const tn_compared *compared);
