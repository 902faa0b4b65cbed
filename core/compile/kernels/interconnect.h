/* core/compile/kernels/interconnect.h: the links between ranks, and the predicted times of collectives over
 * them (docs/decisions/0064-overlap.md). */
#pragma once

#include <stdint.h>

/* A link, in one direction. */
typedef struct tn_link_rate {
  double bytes_per_s;
  double latency_s; /* of a message from one end to the other, with what the sender and the receiver do */
} tn_link_rate;

/* The ranks of a run, host by host. */
typedef struct tn_interconnect {
  int32_t ranks;
  int32_t host_ranks;   /* the ranks of each host; as many as `ranks`: there is one host */
  tn_link_rate inside;  /* of a rank to the others of its host */
  tn_link_rate between; /* of a host to the others, which its ranks share */
} tn_interconnect;

/* The time from the moment when all ranks have come to a collective until it has ended on all: TN_ALL_REDUCE,
 * TN_REDUCE_SCATTER or TN_ALL_GATHER (plugin/communicator.h) of a vector of so many bytes, which for
 * all_gather is the result. */
double tn_collective_s(const tn_interconnect *interconnect, int32_t kind, double bytes);
