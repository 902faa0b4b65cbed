/* backends/tcp/guest.h: a connection to a rank that has not proved yet that it comes from a rank of the run.
 */
#pragma once

#include "backends/tcp/wire.h"

enum { TN_TCP_GUESTS = 64, TN_TCP_GUEST_S = 2 };

typedef struct tn_tcp_guest {
  int fd; /* -1: the place is free */
  size_t done;
  double since_s;
  bool answered; /* its greeting; its hello follows */
  tn_tcp_nonces nonces;
  tn_tcp_greeting greeting;
  tn_tcp_hello hello;
} tn_tcp_guest;

/* Places of TN_TCP_GUESTS. */
void tn_tcp_guests_init(tn_tcp_guest *guests);
/* Takes a connection. If all places are taken, the connection of the oldest guest is closed. */
tn_tcp_guest *tn_tcp_guest_new(tn_tcp_guest *guests, int fd);
void tn_tcp_guest_drop(tn_tcp_guest *guest);
/* Drops those that have been there for TN_TCP_GUEST_S seconds. */
void tn_tcp_guests_drop_old(tn_tcp_guest *guests);

/* Receives, and answers the greeting. TN_TCP_GUEST_PROVED: the hello comes from a rank of the run.
 * TN_TCP_GUEST_WRONG: to be dropped, with errno in `error` where the system gives no random bytes. */
enum { TN_TCP_GUEST_WAITS, TN_TCP_GUEST_WRONG, TN_TCP_GUEST_PROVED };
int32_t tn_tcp_guest_read(tn_tcp_guest *guest, const tn_tcp_prover *prover, int *error);
