/* core/distributed/wire/socket.h: TCP sockets with deadlines. Times are those of tn_clock_s. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A socket that listens on a port of all addresses, or of this host alone; -1 with errno. IPv6 and IPv4, or
 * IPv4 where the host has no IPv6. */
int tn_socket_listen(int32_t port, bool this_host);
/* The addresses of a host's name; NULL with a static text for the reason. The resolver takes its own time.
 * The caller frees them (NULL is accepted). */
typedef struct addrinfo tn_socket_host;
tn_socket_host *tn_socket_host_find(const char *name, const char **reason);
void tn_socket_host_free(tn_socket_host *host);
/* A connected socket, or -1 with a static text for the reason. `stop` becomes other than 0: it waits no
 * longer; may be NULL. */
int tn_socket_connect(const tn_socket_host *host, int32_t port, double deadline_s, const atomic_int *stop,
                      const char **reason);
/* Ends the connection as well: a child that the application has forked keeps the descriptor, and with it a
 * connection that is only closed. */
void tn_socket_close(int socket);
/* The reason, a static text, where a socket cannot be made because too many files are open; else NULL. */
const char *tn_socket_lacks_descriptors(void);
/* Without delay of small packets, closed by exec; blocking calls return at once. */
void tn_socket_prepare(int socket);

/* All `bytes` bytes, or false: the other end has closed, or the deadline has passed. */
bool tn_socket_send(int socket, const void *data, size_t bytes, double deadline_s);
bool tn_socket_receive(int socket, void *data, size_t bytes, double deadline_s);

/* Whether it has bytes to receive, or has ended, before the deadline. */
bool tn_socket_await(int socket, double deadline_s);
/* Whether the other end has closed; nothing is received. */
bool tn_socket_has_ended(int socket);

/* The address of this end or of the other one in digits; "" where it has none. */
void tn_socket_own_address(int socket, char *text, size_t size);
void tn_socket_peer_address(int socket, char *text, size_t size);
/* The user of the other end of a connection within this host, which has connected or, with `listens`,
 * listens. False: the other end is another host, or the system does not tell (NETLINK_SOCK_DIAG). */
bool tn_socket_peer_user(int socket, bool listens, uint32_t *user);
/* Whether a text is an address by which only this host reaches itself. */
bool tn_address_is_loopback(const char *address);
