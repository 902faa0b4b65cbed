/* tests/attack/families/squatter.h: a program that listens on ports that a job will want. */
#pragma once

#include "tests/attack/attack.h"

typedef enum squatter_way {
  SQUATTER_SILENT, /* takes connections and says nothing */
  SQUATTER_CLOSES,
  SQUATTER_GARBAGE, /* answers with random bytes */
  SQUATTER_ECHO,    /* answers with the bytes that came */
  SQUATTER_RELAYS,  /* passes bytes on to the port of process 0, in both directions */
  SQUATTER_CHANGES, /* the same, with a bit changed now and then */
  SQUATTER_WAYS
} squatter_way;

extern const char *const squatter_words[SQUATTER_WAYS];

/* Listens on the ports whose bit is set in `ports`, from `first` on, in a child process; *taken is how many
 * it got. The bytes that come are kept in squatter.bytes. */
pid_t squatter_start(squatter_way way, int first, uint32_t ports, uint64_t seed, int *taken);
void squatter_stop(pid_t pid);
/* Whether a port of 127.0.0.1 is free. */
bool squatter_is_free(int port);
