/* backends/tcp/socket.c: see socket.h. */
#include "backends/tcp/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

/* Connections that wait to be accepted. */
enum { SOCKET_BACKLOG = 1024 };

/* ---- making connections ---- */

/* Where the application has closed its standard streams, text that is printed there would go into a socket of
 * their numbers. */
static int tcp_socket_move_up(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), reason = errno;
  close(fd);
  errno = reason;
  return moved;
}

static int tcp_socket_new(const tn_tcp_address *a) {
  int family = a->family == 4 ? AF_INET : AF_INET6;
  return tcp_socket_move_up(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static bool tcp_socket_bind(int fd, const tn_tcp_address *a) {
  struct sockaddr_storage to;
  socklen_t n = tn_tcp_address_to_socket(a, &to);
  return bind(fd, (struct sockaddr *)&to, n) == 0 && listen(fd, SOCKET_BACKLOG) == 0;
}

static int tcp_socket_listen_at(tn_tcp_address *a) {
  struct sockaddr_storage at = {0};
  socklen_t n = sizeof at;
  int fd = tcp_socket_new(a), yes = 1;
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (tcp_socket_bind(fd, a) && getsockname(fd, (struct sockaddr *)&at, &n) == 0 &&
      tn_tcp_address_of_socket(&at, a))
    return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static tn_status tcp_socket_fail_listen(tn_env *env, const tn_tcp_address *a, int32_t first, int32_t last) {
  int error = errno;
  char text[TN_TCP_ADDRESS_TEXT];
  if (error == EADDRINUSE && first > 0)
    return tn_fail(env, TN_EIO, "ports", "ports = %d-%d: none of them is free at %s; give a wider range",
                   (int)first, (int)last, tn_tcp_address_text(a, text));
  return tn_fail(env, TN_EIO, error == EADDRNOTAVAIL ? "address" : NULL, "tcp: cannot listen at %s: %s%s",
                 tn_tcp_address_text(a, text), strerror(error),
                 error == EADDRNOTAVAIL ? "; expected an address of this host in [communicator.tcp] address"
                                        : "");
}

tn_status tn_tcp_listen(tn_env *env, tn_tcp_address *address, int32_t first, int32_t last, int *listener) {
  int32_t port = first;
  do {
    address->port = (uint16_t)port;
    *listener = tcp_socket_listen_at(address);
  } while (*listener < 0 && errno == EADDRINUSE && ++port <= last);
  return *listener >= 0 ? TN_OK : tcp_socket_fail_listen(env, address, first, last);
}

int tn_tcp_connect(const tn_tcp_address *address) {
  struct sockaddr_storage to;
  socklen_t n = tn_tcp_address_to_socket(address, &to);
  int fd = tcp_socket_new(address);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, n) == 0 || errno == EINPROGRESS) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int tn_tcp_connect_error(int fd) {
  int error = 0;
  socklen_t n = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 ? error : errno;
}

int tn_tcp_accept(int listener) {
  return tcp_socket_move_up(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

void tn_tcp_close(int fd) {
  shutdown(fd, SHUT_RDWR);
  close(fd);
}

/* Without traffic, a host that does not answer is noticed after 10 s + 3 * 5 s. Failures to set an option are
 * ignored: the timeout of collectives notices it later. */
void tn_tcp_tune(int fd) {
  static const int on = 1, idle_s = 10, every_s = 5, probes = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* ---- moving bytes ---- */

static bool tcp_socket_would_wait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

ssize_t tn_tcp_send(int fd, struct iovec *pieces, int32_t n) {
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n};
  ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 && tcp_socket_would_wait(errno) ? 0 : sent;
}

ssize_t tn_tcp_receive(int fd, struct iovec *pieces, int32_t n) {
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n};
  ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
  if (got > 0) return got;
  if (got < 0) return tcp_socket_would_wait(errno) ? 0 : -1;
  errno = 0;
  return -1;
}

bool tn_tcp_send_record(int fd, const void *record, size_t bytes) {
  struct iovec piece = {(void *)(uintptr_t)record, bytes};
  return tn_tcp_send(fd, &piece, 1) == (ssize_t)bytes;
}
