/* core/distributed/join/join.c: the two sides of a meeting of processes. */
#include "core/distributed/join/join.h"

#include "core/distributed/wire/socket.h"

tn_status tn_join(tn_env *env, const tn_join_request *request, tn_joined *joined) {
  const tn_process_place *place = request->place;
  *joined = (tn_joined){.n = place->processes};
  joined->sockets = tn_alloc(env, tn_size_mul((size_t)joined->n, sizeof *joined->sockets));
  for (int32_t i = 0; joined->sockets != NULL && i < joined->n; i++) joined->sockets[i] = -1;
  joined->seals = tn_alloc(env, tn_size_mul((size_t)joined->n, sizeof *joined->seals));
  joined->members = tn_alloc(env, tn_size_mul((size_t)joined->n, sizeof *joined->members));
  if (joined->sockets == NULL || joined->seals == NULL || joined->members == NULL) return TN_ENOMEM;
  return place->process == 0 ? tn_join_listen(env, request, joined) : tn_join_connect(env, request, joined);
}

void tn_joined_free(const void *handle, tn_joined *joined) {
  for (int32_t i = 0; joined->sockets != NULL && i < joined->n; i++)
    if (joined->sockets[i] >= 0) tn_socket_close(joined->sockets[i]);
  tn_release(handle, joined->sockets);
  tn_release(handle, joined->seals);
  tn_release(handle, joined->members);
  *joined = (tn_joined){.n = 0};
}
