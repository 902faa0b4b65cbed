/* backends/tcp/failure.c: the first failure of a communicator. */
#include <stdarg.h>
#include <stdio.h>

#include "backends/tcp/tcp.h"

void tn_tcp_fail(tn_tcp *t, const char *format, ...) {
  tn_tcp_failure *f = &t->failure;
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&f->lock);
  if (!atomic_load(&f->set)) vsnprintf(f->text, sizeof f->text, format, args);
  atomic_store(&f->set, true);
  pthread_mutex_unlock(&f->lock);
  va_end(args);
}

tn_status tn_tcp_failed(tn_env *env, tn_tcp *t) {
  tn_tcp_failure *f = &t->failure;
  if (!atomic_load(&f->set)) return TN_OK;
  pthread_mutex_lock(&f->lock);
  tn_status status = tn_fail(env, TN_ECOMM, NULL, "tcp: %s", f->text);
  pthread_mutex_unlock(&f->lock);
  return status;
}

const char *tn_tcp_rank_text(const tn_tcp *t, int32_t rank, char text[TN_TCP_RANK_TEXT]) {
  char address[TN_TCP_ADDRESS_TEXT];
  snprintf(text, TN_TCP_RANK_TEXT, "rank %d (%s)", (int)rank,
           tn_tcp_address_text(&t->peers[rank].address, address));
  return text;
}
