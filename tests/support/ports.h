/* tests/support/ports.h: TCP ports of the loopback device that no other test has. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORTS_BLOCK = 32 };

/* A socket that has the port, or -1. */
static inline int ports_lock(int port) {
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0 || bind(s, (const struct sockaddr *)&address, sizeof address) == 0) return s;
  close(s);
  return -1;
}

/* Takes one of the blocks that follow each other from port `first` on. Returns the first of its
 * PORTS_BLOCK - 1 ports; its last port is the lock, a socket that the caller closes at the end. 0: all blocks
 * are in use. */
static inline int ports_take(int first, int blocks, int *lock) {
  for (int i = 0, at = (int)getpid(); i < blocks; i++, at++) {
    int port = first + PORTS_BLOCK * (at % blocks);
    *lock = ports_lock(port + PORTS_BLOCK - 1);
    if (*lock >= 0) return port;
  }
  return 0;
}
