/* core/distributed/ranks/late_rank.h: finds the rank that the others waited for when a run failed. */
#pragma once

#include "core/base/text/text.h"
#include "core/distributed/wire/wire.h"

/* The ranks of a run. */
typedef struct tn_rank_reports {
  const tn_rank_summary *summaries; /* by rank */
  const bool *known;                /* false: there is no summary of the rank */
  bool asked;                       /* all were asked for it, so that those without one are evidence */
  int32_t n;
  /* Appends "rank 2 (process 2, id 8124 on host b)". */
  void (*name)(void *context, int32_t rank, tn_text *text);
  void *context;
} tn_rank_reports;

/* Appends one sentence, without an end; nothing where no rank waits for another. In this order: two ranks
 * whose collectives of one number differ; the ranks that were asked and did not answer; the rank whose device
 * has not come to a collective in which the devices of others are; the rank that has not begun a collective,
 * or not come to an exchange, in which others wait; where all ranks wait alike, their wait. */
void tn_late_rank_find(const tn_rank_reports *reports, tn_text *text);
