/* backends/tcp/guest.c: see guest.h. */
#include "backends/tcp/guest.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backends/tcp/socket.h"

void tn_tcp_guests_init(tn_tcp_guest *guests) {
  for (int32_t i = 0; i < TN_TCP_GUESTS; i++) guests[i].fd = -1;
}

void tn_tcp_guest_drop(tn_tcp_guest *g) {
  if (g->fd >= 0) tn_tcp_close(g->fd);
  g->fd = -1;
}

/* A free place, or that of the oldest guest. */
static tn_tcp_guest *guest_place(tn_tcp_guest *guests) {
  tn_tcp_guest *oldest = &guests[0];
  for (int32_t i = 0; i < TN_TCP_GUESTS; i++) {
    if (guests[i].fd < 0) return &guests[i];
    if (guests[i].since_s < oldest->since_s) oldest = &guests[i];
  }
  tn_tcp_guest_drop(oldest);
  return oldest;
}

tn_tcp_guest *tn_tcp_guest_new(tn_tcp_guest *guests, int fd) {
  tn_tcp_guest *g = guest_place(guests);
  *g = (tn_tcp_guest){.fd = fd, .since_s = tn_monotonic_s()};
  return g;
}

void tn_tcp_guests_drop_old(tn_tcp_guest *guests) {
  double now = tn_monotonic_s();
  for (int32_t i = 0; i < TN_TCP_GUESTS; i++)
    if (guests[i].fd >= 0 && now - guests[i].since_s > TN_TCP_GUEST_S) tn_tcp_guest_drop(&guests[i]);
}

/* A new connection has room for the answer. */
static int32_t guest_answer_greeting(tn_tcp_guest *g, const tn_tcp_prover *prover, int *error) {
  if (!tn_tcp_greeting_valid(&g->greeting)) return TN_TCP_GUEST_WRONG;
  memcpy(g->nonces.caller, g->greeting.nonce, sizeof g->nonces.caller);
  if (!tn_tcp_nonce_draw(g->nonces.listener)) *error = errno;
  if (*error != 0) return TN_TCP_GUEST_WRONG;
  const tn_tcp_answer answer = tn_tcp_answer_make(prover, &g->nonces);
  g->answered = true;
  g->done = 0;
  return tn_tcp_send_record(g->fd, &answer, sizeof answer) ? TN_TCP_GUEST_WAITS : TN_TCP_GUEST_WRONG;
}

int32_t tn_tcp_guest_read(tn_tcp_guest *g, const tn_tcp_prover *prover, int *error) {
  char *to = g->answered ? (char *)&g->hello : (char *)&g->greeting;
  size_t whole = g->answered ? sizeof g->hello : sizeof g->greeting;
  struct iovec rest = {to + g->done, whole - g->done};
  ssize_t got = tn_tcp_receive(g->fd, &rest, 1);
  *error = 0;
  if (got > 0) g->done += (size_t)got;
  if (got < 0) return TN_TCP_GUEST_WRONG;
  if (g->done < whole) return TN_TCP_GUEST_WAITS;
  if (!g->answered) return guest_answer_greeting(g, prover, error);
  return tn_tcp_hello_proved(prover, &g->nonces, &g->hello) ? TN_TCP_GUEST_PROVED : TN_TCP_GUEST_WRONG;
}
