/* core/distributed/join/hello.c: the hello of this process, the request to stop waiting, and the times
 * of signs of life. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/distributed/join/join.h"
#include "tenon/context.h"

void tn_join_host(char host[TN_HOST_BYTES]) {
  memset(host, 0, TN_HOST_BYTES);
  if (gethostname(host, TN_HOST_BYTES - 1) != 0) snprintf(host, TN_HOST_BYTES, "?");
}

void tn_join_hello(const tn_join_request *request, tn_hello *hello) {
  const tn_process_place *place = request->place;
  *hello = (tn_hello){.process = place->process,
                      .processes = place->processes,
                      .ranks = request->ranks,
                      .pid = (int64_t)getpid()};
  snprintf(hello->version, sizeof hello->version, "%s", tn_version());
  tn_join_host(hello->host);
}

bool tn_join_stopped(const tn_join_request *request) {
  return request->stop != NULL && atomic_load(request->stop) != 0;
}

static const double SILENCE_S = 20, BEATS = 8;

double tn_join_silence_s(const tn_join_request *request) {
  if (request->silence_s > 0) return request->silence_s;
  return request->timeout_s < SILENCE_S ? request->timeout_s : SILENCE_S;
}

double tn_join_beat_s(const tn_join_request *request) {
  double seconds = tn_join_silence_s(request) / BEATS;
  return seconds < 1 ? seconds : 1;
}
