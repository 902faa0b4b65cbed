/* core/distributed/ranks/hang.h: how long a rank works without a sign in its flight recorder. A rank's own
 * time is that in which its host computes or launches work while its device is in no collective, or waits for
 * its device while that is known to be in none. It ends at the next wait, collective, exchange, step, or
 * collective of the device. In all other waits other ranks, or a part of the host that says so, are awaited:
 * [distributed] timeout is their limit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A rank at one look. */
typedef struct tn_own_look {
  int32_t wait, device; /* TN_FLIGHT_...; TN_DEVICE_... (processes/wire.h) */
  double wait_since_s;
  uint64_t begun, ended, exchanges, inside; /* inside: the number of the device's collective */
  int64_t step;
} tn_own_look;

/* Zeros at first. */
typedef struct tn_own_time {
  tn_own_look last;
  double since_s;   /* the last change between two looks; 0: no look yet */
  double longest_s; /* of the run, those that have ended */
} tn_own_time;

/* Takes a look at the time now_s, which has not passed for this process in the last away_s seconds: it was
 * stopped. Returns how long the rank's own time lasts by now; 0: it waits for others. */
double tn_own_time_look(tn_own_time *own, const tn_own_look *look, double now_s, double away_s);

/* The limit, at most timeout_s. hang_s: tn_rank_watch. */
double tn_own_time_limit(const tn_own_time *own, double hang_s, double timeout_s);
