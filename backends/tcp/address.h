/* backends/tcp/address.h: addresses of IPv4 and IPv6, and the choice of that of this host. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "tenon/api.h"

typedef struct tn_tcp_address {
  uint8_t family, zero; /* 4 or 6 */
  uint16_t port;
  uint8_t bytes[16]; /* of IPv4 the first 4 */
} tn_tcp_address;

enum { TN_TCP_ADDRESS_TEXT = 64 };

/* Whether the text is an address in digits; the port becomes 0. */
bool tn_tcp_address_parse(const char *text, tn_tcp_address *address);
/* "10.0.0.2:4711", "[fe80::1]:4711"; returns `text`. */
const char *tn_tcp_address_text(const tn_tcp_address *address, char text[TN_TCP_ADDRESS_TEXT]);
socklen_t tn_tcp_address_to_socket(const tn_tcp_address *address, struct sockaddr_storage *to);
/* false: a socket of another family. */
bool tn_tcp_address_of_socket(const struct sockaddr_storage *from, tn_tcp_address *address);
bool tn_tcp_address_valid(const tn_tcp_address *address);

/* The address by which other ranks reach this host. `wanted`, the option `address`: an address of this host,
 * a network that one of its addresses is in ("10.0.0.0/8"), or an interface ("eth0"); "": `given`, the
 * host's, and if that is "", too, 127.0.0.1. TN_EINVAL names the option. */
tn_status tn_tcp_address_choose(tn_env *env, const char *wanted, const char *given, tn_tcp_address *address);
