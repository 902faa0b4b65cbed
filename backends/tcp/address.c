/* backends/tcp/address.c: see address.h. */
#include "backends/tcp/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int address_domain(const tn_tcp_address *a) { return a->family == 4 ? AF_INET : AF_INET6; }

static int32_t address_bits(const tn_tcp_address *a) { return a->family == 4 ? 32 : 128; }

bool tn_tcp_address_valid(const tn_tcp_address *a) {
  return (a->family == 4 || a->family == 6) && a->port != 0;
}

bool tn_tcp_address_parse(const char *text, tn_tcp_address *a) {
  memset(a, 0, sizeof *a);
  a->family = 4;
  if (inet_pton(AF_INET, text, a->bytes) == 1) return true;
  a->family = 6;
  return inet_pton(AF_INET6, text, a->bytes) == 1;
}

const char *tn_tcp_address_text(const tn_tcp_address *a, char text[TN_TCP_ADDRESS_TEXT]) {
  char digits[INET6_ADDRSTRLEN] = "?";
  inet_ntop(address_domain(a), a->bytes, digits, sizeof digits);
  snprintf(text, TN_TCP_ADDRESS_TEXT, a->family == 4 ? "%s:%u" : "[%s]:%u", digits, (unsigned)a->port);
  return text;
}

socklen_t tn_tcp_address_to_socket(const tn_tcp_address *a, struct sockaddr_storage *to) {
  memset(to, 0, sizeof *to);
  if (a->family == 4) {
    struct sockaddr_in *in = (struct sockaddr_in *)to;
    in->sin_family = AF_INET;
    in->sin_port = htons(a->port);
    memcpy(&in->sin_addr, a->bytes, 4);
    return sizeof *in;
  }
  struct sockaddr_in6 *in = (struct sockaddr_in6 *)to;
  in->sin6_family = AF_INET6;
  in->sin6_port = htons(a->port);
  memcpy(&in->sin6_addr, a->bytes, 16);
  return sizeof *in;
}

bool tn_tcp_address_of_socket(const struct sockaddr_storage *from, tn_tcp_address *a) {
  memset(a, 0, sizeof *a);
  if (from->ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)from;
    a->family = 4;
    a->port = ntohs(in->sin_port);
    memcpy(a->bytes, &in->sin_addr, 4);
    return true;
  }
  if (from->ss_family != AF_INET6) return false;
  const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)from;
  a->family = 6;
  a->port = ntohs(in->sin6_port);
  memcpy(a->bytes, &in->sin6_addr, 16);
  return true;
}

/* ---- the host's own ---- */

/* "10.0.0.0/8", or an address, which stands for the network of that address alone. */
static bool address_parse_network(const char *text, tn_tcp_address *network, int32_t *bits) {
  char digits[TN_TCP_ADDRESS_TEXT];
  const char *slash = strchr(text, '/');
  size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
  if (n >= sizeof digits) return false;
  memcpy(digits, text, n);
  digits[n] = '\0';
  if (!tn_tcp_address_parse(digits, network)) return false;
  *bits = address_bits(network);
  if (slash == NULL) return true;
  char *end = NULL;
  long value = strtol(slash + 1, &end, 10);
  if (end == slash + 1 || *end != '\0' || value < 0 || value > *bits) return false;
  *bits = (int32_t)value;
  return true;
}

static bool address_in_network(const tn_tcp_address *a, const tn_tcp_address *network, int32_t bits) {
  if (a->family != network->family || memcmp(a->bytes, network->bytes, (size_t)bits / 8) != 0) return false;
  int32_t rest = bits % 8;
  return rest == 0 || (a->bytes[bits / 8] ^ network->bytes[bits / 8]) >> (8 - rest) == 0;
}

/* An address that is reached from one link only needs the link's number as well, which is not the same on all
 * hosts. */
static bool address_is_of_link(const tn_tcp_address *a) {
  return a->family == 6 && a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

/* The first address of this host that is in the network, or, with bits = -1, of the interface. */
static bool address_search(const struct ifaddrs *all, const char *name, const tn_tcp_address *network,
                           int32_t bits, tn_tcp_address *found) {
  for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
    struct sockaddr_storage of = {0};
    if (i->ifa_addr == NULL || (i->ifa_flags & IFF_UP) == 0) continue;
    bool small = i->ifa_addr->sa_family == AF_INET;
    if (!small && i->ifa_addr->sa_family != AF_INET6) continue;
    memcpy(&of, i->ifa_addr, small ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    if (!tn_tcp_address_of_socket(&of, found) || address_is_of_link(found)) continue;
    if (bits < 0 ? strcmp(i->ifa_name, name) == 0 : address_in_network(found, network, bits)) {
      found->port = 0;
      return true;
    }
  }
  return false;
}

/* "lo 127.0.0.1, eth0 10.0.0.2" */
static void address_list_own(const struct ifaddrs *all, char *text, size_t size) {
  size_t n = 0;
  text[0] = '\0';
  for (const struct ifaddrs *i = all; i != NULL && n < size; i = i->ifa_next) {
    char digits[INET6_ADDRSTRLEN] = "";
    if (i->ifa_addr == NULL) continue;
    if (i->ifa_addr->sa_family == AF_INET)
      inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, digits,
                sizeof digits);
    else if (i->ifa_addr->sa_family == AF_INET6)
      inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr, digits,
                sizeof digits);
    if (digits[0] != '\0')
      n += (size_t)snprintf(text + n, size - n, "%s%s %s", n > 0 ? ", " : "", i->ifa_name, digits);
  }
}

static tn_status address_choose_own(tn_env *env, const char *wanted, tn_tcp_address *address) {
  struct ifaddrs *all = NULL;
  tn_tcp_address network = {0};
  int32_t bits = -1;
  if (!address_parse_network(wanted, &network, &bits)) {
    bits = -1;
    if (strchr(wanted, '/') != NULL || strlen(wanted) >= IF_NAMESIZE)
      return tn_fail(env, TN_EINVAL, "address",
                     "address = %s, expected an address of this host, a network such as 10.0.0.0/8, or an "
                     "interface such as eth0",
                     wanted);
  }
  if (getifaddrs(&all) != 0)
    return tn_fail(env, TN_EIO, "address", "cannot list the addresses of this host: %s", strerror(errno));
  bool found = address_search(all, wanted, &network, bits, address);
  char own[512];
  address_list_own(all, own, sizeof own);
  freeifaddrs(all);
  if (found) return TN_OK;
  return tn_fail(
      env, TN_EINVAL, "address",
      "address = %s fits no address of this host, which has %s; expected one of these addresses, a "
      "network such as 10.0.0.0/8, or an interface",
      wanted, own);
}

tn_status tn_tcp_address_choose(tn_env *env, const char *wanted, const char *given, tn_tcp_address *address) {
  if (wanted[0] != '\0') return address_choose_own(env, wanted, address);
  const char *text = given != NULL && given[0] != '\0' ? given : "127.0.0.1";
  if (tn_tcp_address_parse(text, address)) return TN_OK;
  return tn_fail(env, TN_EINVAL, NULL,
                 "tcp: the address of this host is '%s', expected digits of IPv4 or IPv6; [communicator.tcp] "
                 "address names another one",
                 text);
}
