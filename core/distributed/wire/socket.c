/* core/distributed/wire/socket.c: TCP sockets with deadlines. */
#include "core/distributed/wire/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/base/system/system.h"

enum { BACKLOG = 512 };

void tn_socket_prepare(int socket) {
  int one = 1;
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}

void tn_socket_close(int socket) {
  shutdown(socket, SHUT_RDWR);
  close(socket);
}

/* ---- listening ---- */

static int socket_bind(int family, const struct sockaddr *address, socklen_t bytes) {
  int one = 1, zero = 0,
      s = tn_descriptor_move_up(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (s < 0) return -1;
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (family == AF_INET6) setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
  if (bind(s, address, bytes) == 0 && listen(s, BACKLOG) == 0) return s;
  int error = errno;
  close(s);
  errno = error;
  return -1;
}

int tn_socket_listen(int32_t port, bool this_host) {
  struct sockaddr_in v4 = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)port),
                           .sin_addr.s_addr = htonl(this_host ? INADDR_LOOPBACK : INADDR_ANY)};
  struct sockaddr_in6 v6 = {
      .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_any};
  int s = this_host ? -1 : socket_bind(AF_INET6, (const struct sockaddr *)&v6, sizeof v6);
  if (s < 0 && (this_host || errno != EADDRINUSE))
    s = socket_bind(AF_INET, (const struct sockaddr *)&v4, sizeof v4);
  return s;
}

/* ---- waiting ---- */

/* Between two looks at a request to stop. */
static const double LOOK_S = 0.1;

/* Whether the socket becomes ready before the deadline, and before `stop` becomes other than 0 (NULL: never).
 * An error of the socket makes it ready. */
static bool socket_await(int socket, short events, double deadline_s, const atomic_int *stop) {
  for (;;) {
    double left = deadline_s - tn_clock_s();
    struct pollfd p = {.fd = socket, .events = events};
    int n = poll(&p, 1, left <= 0 ? 0 : (int)((left > LOOK_S ? LOOK_S : left) * 1000) + 1);
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
    if (left <= 0 || (stop != NULL && atomic_load(stop) != 0)) return false;
  }
}

bool tn_socket_send(int socket, const void *data, size_t bytes, double deadline_s) {
  const char *from = data;
  while (bytes > 0) {
    ssize_t n = send(socket, from, bytes, MSG_NOSIGNAL);
    if (n > 0) {
      from += n;
      bytes -= (size_t)n;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!socket_await(socket, POLLOUT, deadline_s, NULL)) {
      return false;
    }
  }
  return true;
}

bool tn_socket_receive(int socket, void *data, size_t bytes, double deadline_s) {
  char *to = data;
  while (bytes > 0) {
    ssize_t n = recv(socket, to, bytes, 0);
    if (n == 0) return false;
    if (n > 0) {
      to += n;
      bytes -= (size_t)n;
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!socket_await(socket, POLLIN, deadline_s, NULL)) {
      return false;
    }
  }
  return true;
}

bool tn_socket_await(int socket, double deadline_s) { return socket_await(socket, POLLIN, deadline_s, NULL); }

bool tn_socket_has_ended(int socket) {
  char byte;
  ssize_t n = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* ---- connecting ---- */

/* Where nothing listens on a port of this host, a connection may be given that port itself, and reach
 * itself. */
static bool socket_is_its_peer(int s) {
  struct sockaddr_storage own = {.ss_family = 0}, peer = {.ss_family = 0};
  socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;
  return getsockname(s, (struct sockaddr *)&own, &own_bytes) == 0 &&
         getpeername(s, (struct sockaddr *)&peer, &peer_bytes) == 0 && own_bytes == peer_bytes &&
         memcmp(&own, &peer, own_bytes) == 0;
}

static int socket_try(const struct sockaddr *to, socklen_t to_bytes, double deadline_s,
                      const atomic_int *stop, const char **reason) {
  int s = tn_descriptor_move_up(socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)), error = 0;
  socklen_t bytes = sizeof error;
  if (s < 0) {
    *reason = strerror(errno);
    return -1;
  }
  tn_socket_prepare(s);
  if (connect(s, to, to_bytes) != 0) error = errno;
  if (error == EINPROGRESS) {
    error = ETIMEDOUT;
    if (socket_await(s, POLLOUT, deadline_s, stop)) getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &bytes);
  }
  if (error == 0 && socket_is_its_peer(s)) error = ECONNREFUSED;
  if (error == 0) return s;
  close(s);
  *reason = strerror(error);
  return -1;
}

const char *tn_socket_lacks_descriptors(void) {
  int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0) return errno == EMFILE || errno == ENFILE ? strerror(errno) : NULL;
  close(s);
  return NULL;
}

tn_socket_host *tn_socket_host_find(const char *name, const char **reason) {
  struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
  int error = getaddrinfo(name, NULL, &want, &list);
  if (error == 0) return list;
  *reason = error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error);
  return NULL;
}

void tn_socket_host_free(tn_socket_host *host) {
  if (host != NULL) freeaddrinfo(host);
}

static void socket_set_port(struct sockaddr_storage *address, int32_t port) {
  if (address->ss_family == AF_INET6)
    ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
  else
    ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

int tn_socket_connect(const tn_socket_host *host, int32_t port, double deadline_s, const atomic_int *stop,
                      const char **reason) {
  int s = -1, addresses = 0;
  for (const struct addrinfo *a = host; a != NULL; a = a->ai_next) addresses++;
  for (const struct addrinfo *a = host; s < 0 && a != NULL; a = a->ai_next) {
    double now = tn_clock_s(), share = (deadline_s - now) / addresses--; /* one may lead nowhere */
    struct sockaddr_storage to = {.ss_family = 0};
    memcpy(&to, a->ai_addr, a->ai_addrlen);
    socket_set_port(&to, port);
    s = socket_try((const struct sockaddr *)&to, a->ai_addrlen, now + share, stop, reason);
  }
  return s;
}

/* ---- addresses ---- */

static void socket_address_text(const struct sockaddr *address, socklen_t bytes, char *text, size_t size) {
  static const char v4_in_v6[] = "::ffff:";
  if (getnameinfo(address, bytes, text, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0) text[0] = '\0';
  if (strncmp(text, v4_in_v6, sizeof v4_in_v6 - 1) == 0)
    memmove(text, text + sizeof v4_in_v6 - 1, strlen(text) - (sizeof v4_in_v6 - 1) + 1);
}

void tn_socket_own_address(int socket, char *text, size_t size) {
  struct sockaddr_storage address;
  socklen_t bytes = sizeof address;
  text[0] = '\0';
  if (getsockname(socket, (struct sockaddr *)&address, &bytes) == 0)
    socket_address_text((const struct sockaddr *)&address, bytes, text, size);
}

void tn_socket_peer_address(int socket, char *text, size_t size) {
  struct sockaddr_storage address;
  socklen_t bytes = sizeof address;
  text[0] = '\0';
  if (getpeername(socket, (struct sockaddr *)&address, &bytes) == 0)
    socket_address_text((const struct sockaddr *)&address, bytes, text, size);
}

bool tn_address_is_loopback(const char *address) {
  return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}
