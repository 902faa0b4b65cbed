/* core/distributed/join/join_pause.c: a process that was stopped while the processes came together. */
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/distributed/join/join.h"

double tn_join_pause(double *seen_s, double most_s) {
  double now = tn_clock_s(), past = now - *seen_s;
  *seen_s = now;
  return past > most_s ? past : 0;
}

tn_status tn_join_fail_paused(tn_env *env, const tn_join_request *request, double seconds) {
  char host[TN_HOST_BYTES];
  tn_join_host(host);
  return tn_failf(env, TN_ECOMM,
                  "process %d (id %lld) on host %s was stopped for %.0f s while the processes came together, "
                  "which wait for each other for %g s ([distributed] timeout)",
                  (int)request->place->process, (long long)getpid(), host, seconds, request->timeout_s);
}
