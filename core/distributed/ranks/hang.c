/* core/distributed/ranks/hang.c: see hang.h. The limit is a multiple of the longest own time so far, so that
 * slow steps are no hang and fast ones that hang are seen soon. */
#include "core/distributed/ranks/hang.h"

#include <math.h>

#include "core/exec/flight_recorder.h"
#include "core/distributed/wire/wire.h"

static const double TIMES = 10, LEAST_S = 20;

static bool own_is_equal(const tn_own_look *a, const tn_own_look *b) {
  return a->wait == b->wait && a->device == b->device && a->wait_since_s == b->wait_since_s &&
         a->begun == b->begun && a->ended == b->ended && a->exchanges == b->exchanges &&
         a->inside == b->inside && a->step == b->step;
}

/* A launch waits for room where the device is in a collective and its queue is full. */
static bool own_is_work(const tn_own_look *look) {
  return (look->wait == TN_FLIGHT_NOTHING && look->device != TN_DEVICE_INSIDE) ||
         (look->wait == TN_FLIGHT_DEVICE && look->device == TN_DEVICE_OUTSIDE);
}

double tn_own_time_look(tn_own_time *own, const tn_own_look *look, double now_s, double away_s) {
  if (own->since_s > 0) own->since_s += away_s;
  if (own->since_s == 0 || !own_is_equal(look, &own->last)) {
    if (own->since_s > 0 && own_is_work(&own->last))
      own->longest_s = fmax(own->longest_s, now_s - own->since_s);
    own->since_s = now_s;
    own->last = *look;
  }
  return own_is_work(look) ? now_s - own->since_s : 0;
}

double tn_own_time_limit(const tn_own_time *own, double hang_s, double timeout_s) {
  double limit = hang_s < 0 ? fmax(TIMES * own->longest_s, LEAST_S) : hang_s > 0 ? hang_s : timeout_s;
  return fmin(limit, timeout_s);
}
