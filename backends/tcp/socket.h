/* backends/tcp/socket.h: sockets that never block, never raise SIGPIPE and close in a new program. */
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include "backends/shared/clock.h"
#include "backends/tcp/address.h"

/* Listens at the address, on the first port of first ... last that is free, or on any with first = 0, and
 * writes the port into the address. TN_EIO names the option that may help. */
tn_status tn_tcp_listen(tn_env *env, tn_tcp_address *address, int32_t first, int32_t last, int *listener);
/* Begins a connection, which is there when the socket is writable and tn_tcp_connect_error is 0. -1: errno.
 */
int tn_tcp_connect(const tn_tcp_address *address);
int tn_tcp_connect_error(int fd);
/* A connection that has come. -1 without one, and on an error, which errno names. */
int tn_tcp_accept(int listener);
/* Ends the connection as well: a child that the application has forked keeps the descriptor, and with it a
 * connection that is only closed. */
void tn_tcp_close(int fd);
/* Small messages leave at once, and a host that vanishes is noticed. */
void tn_tcp_tune(int fd);

/* The bytes moved; 0: none at present; -1: the connection is broken, with errno, which is 0 where the other
 * side has closed it. */
ssize_t tn_tcp_send(int fd, struct iovec *pieces, int32_t n);
ssize_t tn_tcp_receive(int fd, struct iovec *pieces, int32_t n);
/* Sends all of a short record or fails: a new connection has room for it. */
bool tn_tcp_send_record(int fd, const void *record, size_t bytes);
