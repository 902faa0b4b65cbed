/* core/distributed/wire/socket_user.c: the user of the other end of a connection within one host. Linux
 * tells it by NETLINK_SOCK_DIAG, which looks one socket up; /proc/net/tcp lists all, and a listener on every
 * port makes it long. */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/distributed/wire/socket.h"

/* An address and port as the system asks for them; false: neither IPv4 nor IPv6. */
static bool user_end(const struct sockaddr_storage *of, __be32 address[4], __be16 *port) {
  memset(address, 0, 4 * sizeof *address);
  if (of->ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)of;
    memcpy(address, &in->sin_addr, sizeof in->sin_addr);
    *port = in->sin_port;
    return true;
  }
  const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)of;
  if (of->ss_family != AF_INET6) return false;
  memcpy(address, &in6->sin6_addr, sizeof in6->sin6_addr);
  *port = in6->sin6_port;
  return true;
}

static bool user_is_loopback(const struct sockaddr_storage *of, const __be32 address[4]) {
  if (of->ss_family == AF_INET) return (ntohl(address[0]) >> 24) == 127;
  const struct in6_addr *in6 = &((const struct sockaddr_in6 *)of)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(in6) || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
}

typedef struct user_question {
  struct nlmsghdr head;
  struct inet_diag_req_v2 socket;
} user_question;

/* The socket whose own end is the peer's. Of one that listens, the other end is left open. */
static bool user_ask(int socket, bool listens, user_question *q) {
  struct sockaddr_storage own = {.ss_family = 0}, peer = {.ss_family = 0};
  socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;
  struct inet_diag_sockid *id = &q->socket.id;
  if (getsockname(socket, (struct sockaddr *)&own, &own_bytes) != 0 ||
      getpeername(socket, (struct sockaddr *)&peer, &peer_bytes) != 0)
    return false;
  if (!user_end(&peer, id->idiag_src, &id->idiag_sport) || !user_end(&own, id->idiag_dst, &id->idiag_dport))
    return false;
  bool here = memcmp(id->idiag_src, id->idiag_dst, sizeof id->idiag_src) == 0;
  if (!here && !user_is_loopback(&peer, id->idiag_src)) return false;
  if (listens) memset(id->idiag_dst, 0, sizeof id->idiag_dst);
  if (listens) id->idiag_dport = 0;
  id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  q->socket.sdiag_family = (__u8)own.ss_family;
  q->socket.sdiag_protocol = IPPROTO_TCP;
  q->socket.idiag_states = ~0U;
  q->head = (struct nlmsghdr){
      .nlmsg_len = sizeof *q, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST};
  return true;
}

static bool user_read(int netlink, uint32_t *user) {
  struct {
    struct nlmsghdr head;
    struct inet_diag_msg socket;
    char rest[1024];
  } answer;
  ssize_t n = recv(netlink, &answer, sizeof answer, 0);
  if (n < (ssize_t)(sizeof answer.head + sizeof answer.socket) ||
      answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return false;
  *user = answer.socket.idiag_uid;
  return true;
}

bool tn_socket_peer_user(int socket_, bool listens, uint32_t *user) {
  user_question q;
  memset(&q, 0, sizeof q);
  if (!user_ask(socket_, listens, &q)) return false;
  int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) return false;
  bool told = send(netlink, &q, sizeof q, 0) == (ssize_t)sizeof q && user_read(netlink, user);
  close(netlink);
  return told;
}
