/* core/distributed/join/lookup.h: the addresses of process 0, by the name of its host. */
#pragma once

#include "core/distributed/join/join.h"
#include "core/distributed/wire/socket.h"

/* tn_socket_host_find of the request's master, on a thread of its own: the resolver may take half a minute,
 * and knows no request to stop. NULL with a reason also where one was made; the thread is then left. */
tn_socket_host *tn_lookup_master(const tn_join_request *request, const char **reason);
