/* core/train/processes/hello.c: the hello of this process, and the request to stop waiting. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/train/processes/join.h"
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
  snprintf(hello->token, sizeof hello->token, "%s", place->token);
  snprintf(hello->version, sizeof hello->version, "%s", tn_version());
  tn_join_host(hello->host);
}

bool tn_join_stopped(const tn_join_request *request) {
  return request->stop != NULL && atomic_load(request->stop) != 0;
}
