/* backends/tcp/communicator.c: the communicator `tcp`: life, options, and the host's calls. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/shared/reduce.h"
#include "backends/tcp/socket.h"
#include "backends/tcp/tcp.h"

/* ---- options ---- */

static tn_status tcp_parse_ports(tn_env *env, const char *text, int32_t *first, int32_t *last) {
  char *end = NULL;
  *first = *last = 0;
  if (text[0] == '\0') return TN_OK;
  long low = strtol(text, &end, 10), high = low;
  bool good = end != text;
  if (good && *end == '-') {
    const char *second = end + 1;
    high = strtol(second, &end, 10);
    good = end != second;
  }
  if (!good || *end != '\0' || low < 1 || high < low || high > 65535)
    return tn_fail(env, TN_EINVAL, "ports", "ports = %s, expected ports from 1 to 65535, such as 40000-40100",
                   text);
  *first = (int32_t)low;
  *last = (int32_t)high;
  return TN_OK;
}

static tn_status tcp_listen(tn_env *env, const tn_tcp_options *o, const tn_comm_place *place,
                            tn_tcp_address *own, int *listener) {
  int32_t first, last;
  tn_status status = tcp_parse_ports(env, o->ports, &first, &last);
  if (status == TN_OK) status = tn_tcp_address_choose(env, o->address, place->address, own);
  return status == TN_OK ? tn_tcp_listen(env, own, first, last, listener) : status;
}

/* ---- identity ---- */

static tn_status tcp_draw_secret(tn_env *env, uint8_t *secret) {
  if (getrandom(secret, TN_TCP_SECRET, 0) == TN_TCP_SECRET) return TN_OK;
  return tn_fail(env, TN_EIO, NULL, "tcp: the system gives no random bytes: %s", strerror(errno));
}

static tn_status tcp_identify(tn_env *env, const void *options, const tn_comm_place *place, void *bytes) {
  tn_tcp_identity id = {.version = TN_TCP_VERSION};
  tn_tcp_mark(id.magic);
  tn_status status = tcp_draw_secret(env, id.secret);
  if (status == TN_OK) status = tcp_listen(env, options, place, &id.address, &id.listener);
  if (status == TN_OK) memcpy(bytes, &id, sizeof id);
  return status;
}

/* The socket that identify has made, in this process. */
static tn_status tcp_take_listener(tn_env *env, const tn_tcp_identity *id, tn_tcp_address *own,
                                   int *listener) {
  struct sockaddr_storage at = {0};
  socklen_t n = sizeof at;
  int listens = 0;
  socklen_t size = sizeof listens;
  *listener = -1;
  if (getsockopt(id->listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
      getsockname(id->listener, (struct sockaddr *)&at, &n) != 0 || !tn_tcp_address_of_socket(&at, own) ||
      memcmp(own, &id->address, sizeof *own) != 0)
    return tn_fail(env, TN_EINVAL, NULL,
                   "tcp: rank 0 opens with an identity that its process has not made, or "
                   "a second time with one");
  *listener = id->listener;
  return TN_OK;
}

/* ---- open, close ---- */

static void tcp_free(tn_env *env, tn_tcp *t) {
  for (int32_t r = 0; t->peers != NULL && r < t->ranks; r++)
    for (int32_t lane = 0; lane < TN_TCP_LANES; lane++)
      if (t->peers[r].lanes[lane] >= 0) tn_tcp_close(t->peers[r].lanes[lane]);
  if (t->wake >= 0) close(t->wake);
  pthread_cond_destroy(&t->changed);
  pthread_mutex_destroy(&t->lock);
  pthread_mutex_destroy(&t->failure.lock);
  tn_delete(env, t->rings);
  tn_delete(env, t->peers);
  tn_delete(env, t);
}

static tn_status tcp_suits(tn_env *env, const void *options, const tn_comm_place *place) {
  (void)options;
  if (place->ranks <= TN_TCP_RANKS) return TN_OK;
  return tn_fail(env, TN_EUNSUPPORTED, NULL, "tcp: %d ranks, expected at most %d", (int)place->ranks,
                 TN_TCP_RANKS);
}

static tn_status tcp_check_place(tn_env *env, const tn_tcp_identity *id, const tn_comm_place *place,
                                 const tn_tcp_options *o) {
  if (!tn_tcp_identity_valid(id))
    return tn_fail(env, TN_EINVAL, NULL, "tcp: the identity is not one of this communicator's version %d",
                   TN_TCP_VERSION);
  if (place->prove == NULL)
    return tn_fail(env, TN_EINVAL, NULL,
                   "tcp: the place has no function `prove`, by which ranks know each other");
  if (place->ranks > TN_TCP_RANKS) return tcp_suits(env, o, place);
  if (place->rank < 0 || place->rank >= place->ranks)
    return tn_fail(env, TN_EINVAL, NULL, "tcp: rank %d of %d", (int)place->rank, (int)place->ranks);
  if (o->direct > o->buffer)
    return tn_fail(env, TN_EINVAL, "direct", "direct = %lld bytes, expected at most those of buffer, %lld",
                   (long long)o->direct, (long long)o->buffer);
  return TN_OK;
}

/* All rings together have at most TCP_RINGS_BYTES, so that many ranks need no more memory than few. A ring
 * holds a whole small operand, and a multiple of 64 bytes, so that no element is divided at its end. */
enum { TCP_RINGS_BYTES = 32 << 20 };
static int64_t tcp_ring_bytes(const tn_tcp_options *o, int32_t ranks) {
  int64_t bytes = TCP_RINGS_BYTES / ranks;
  if (bytes < o->direct) bytes = o->direct;
  if (bytes > o->buffer) bytes = o->buffer;
  return (bytes + 63) / 64 * 64;
}

/* An object without connections and thread. */
static tn_status tcp_new(tn_env *env, const tn_tcp_options *o, const tn_comm_place *place, tn_tcp **out) {
  tn_tcp *t = *out = tn_new(env, sizeof *t);
  if (t == NULL) return TN_ENOMEM;
  t->rank = place->rank;
  t->ranks = place->ranks;
  t->timeout_s = place->timeout_s;
  t->options = *o;
  t->options.buffer = tcp_ring_bytes(o, place->ranks);
  pthread_mutex_init(&t->failure.lock, NULL);
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->changed, NULL);
  t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  t->peers = tn_new(env, (size_t)t->ranks * sizeof *t->peers);
  t->rings = tn_new(env, (size_t)t->ranks * (size_t)t->options.buffer);
  for (int32_t r = 0; t->peers != NULL && r < t->ranks; r++) {
    t->peers[r].ring = t->rings + (size_t)r * (size_t)t->options.buffer;
    for (int32_t lane = 0; lane < TN_TCP_LANES; lane++) t->peers[r].lanes[lane] = -1;
  }
  if (t->peers == NULL || t->rings == NULL) return TN_ENOMEM;
  return t->wake >= 0 ? TN_OK : tn_fail(env, TN_EIO, NULL, "tcp: eventfd: %s", strerror(errno));
}

/* Signals are delivered to the application's threads. */
static tn_status tcp_start_thread(tn_env *env, tn_tcp *t) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&t->thread, NULL, tn_tcp_work, t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error == 0 ? TN_OK
                    : tn_fail(env, TN_EUNAVAILABLE, NULL, "tcp: cannot start a thread: %s", strerror(error));
}

static tn_status tcp_connect(tn_env *env, tn_tcp *t, const tn_tcp_identity *id, const tn_comm_place *place) {
  tn_tcp_address own;
  int listener = -1;
  tn_status status = t->rank == 0 ? tcp_take_listener(env, id, &own, &listener)
                                  : tcp_listen(env, &t->options, place, &own, &listener);
  if (status == TN_OK) status = tn_tcp_join(env, t, id, place, &own, listener);
  return status == TN_OK ? tcp_start_thread(env, t) : status;
}

static tn_status tcp_open(tn_env *env, const void *options, const tn_comm_device *device,
                          const tn_comm_place *place, const void *identity, void **communicator) {
  const tn_tcp_options *o = options;
  tn_tcp_identity id;
  tn_tcp *t = NULL;
  (void)device;
  *communicator = NULL;
  memcpy(&id, identity, sizeof id);
  TN_TRY(tcp_check_place(env, &id, place, o));
  tn_status status = tcp_new(env, o, place, &t);
  if (status == TN_OK) status = tcp_connect(env, t, &id, place);
  if (status == TN_OK)
    *communicator = t;
  else if (t != NULL)
    tcp_free(env, t);
  return status;
}

static void tcp_wake(const tn_tcp *t) {
  const uint64_t one = 1;
  if (write(t->wake, &one, sizeof one) < 0) return; /* a full counter wakes as well */
}

static void tcp_close(tn_env *env, void *communicator) {
  tn_tcp *t = communicator;
  pthread_mutex_lock(&t->lock);
  t->stop = true;
  pthread_mutex_unlock(&t->lock);
  tcp_wake(t);
  pthread_join(t->thread, NULL);
  tcp_free(env, t);
}

/* ---- collectives ---- */

static tn_status tcp_check_collective(tn_env *env, const tn_tcp *t, const tn_collective *c) {
  if (c->kind < TN_ALL_REDUCE || c->kind > TN_ALL_GATHER)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "tcp: there is no collective %d", (int)c->kind);
  bool reduces = c->kind == TN_ALL_REDUCE || c->kind == TN_REDUCE_SCATTER;
  if (tn_dtype_size(c->dtype) == 0 || (reduces && !tn_can_reduce(c->dtype, c->reduction)))
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "tcp: %s%s%s of %s", tn_collective_name(c->kind),
                   reduces ? ", " : "", reduces ? tn_reduction_name(c->reduction) : "",
                   tn_dtype_name(c->dtype));
  if (c->count < 0 || (c->kind == TN_REDUCE_SCATTER && c->count % t->ranks != 0))
    return tn_fail(env, TN_EINVAL, NULL, "tcp: %s of %lld elements over %d ranks",
                   tn_collective_name(c->kind), (long long)c->count, (int)t->ranks);
  if (c->kind == TN_BROADCAST && (c->root < 0 || c->root >= t->ranks))
    return tn_fail(env, TN_EINVAL, NULL, "tcp: broadcast from rank %d of %d", (int)c->root, (int)t->ranks);
  return TN_OK;
}

static tn_status tcp_run(tn_env *env, void *communicator, const tn_collective *call, void *stream) {
  tn_tcp *t = communicator;
  (void)stream;
  TN_TRY(tn_tcp_failed(env, t));
  TN_TRY(tcp_check_collective(env, t, call));
  pthread_mutex_lock(&t->lock);
  bool room = t->pushed - t->ended < TN_TCP_QUEUE;
  if (room) t->queue[t->pushed++ % TN_TCP_QUEUE] = *call;
  pthread_mutex_unlock(&t->lock);
  if (!room)
    return tn_fail(env, TN_ECOMM, NULL,
                   "tcp: %d collectives wait already, expected fewer before one is awaited", TN_TCP_QUEUE);
  tcp_wake(t);
  return TN_OK;
}

static tn_status tcp_await(tn_env *env, void *communicator, uint64_t n) {
  tn_tcp *t = communicator;
  pthread_mutex_lock(&t->lock);
  if (n > t->pushed) n = t->pushed;
  while (t->ended < n) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
  return tn_tcp_failed(env, t);
}

static tn_status tcp_status(tn_env *env, void *communicator) { return tn_tcp_failed(env, communicator); }

static void tcp_abort(tn_env *env, void *communicator) {
  tn_tcp *t = communicator;
  (void)env;
  tn_tcp_fail(t, "rank %d has given up", (int)t->rank);
  tcp_wake(t);
}

static const tn_option tcp_options[] = {
    TN_OPT(tn_tcp_options, address, TN_OPT_TEXT, "", NULL,
           "by which other ranks reach this host: one of its addresses, a network that one is in "
           "(10.0.0.0/8), or "
           "an interface (eth0); empty: the address that the run has found"),
    TN_OPT(tn_tcp_options, ports, TN_OPT_TEXT, "", NULL,
           "range of ports that ranks listen on, such as 40000-40100; empty: any free port"),
    TN_OPT(tn_tcp_options, direct, TN_OPT_SIZE, "16KiB", ">= 0",
           "an all_reduce or broadcast of at most so many bytes sends whole operands, which takes one way "
           "instead of two; must be equal on all ranks"),
    TN_OPT(tn_tcp_options, buffer, TN_OPT_SIZE, "512KiB", "[4096, 1073741824]",
           "bytes of sums that are received ahead from each other rank; at most 32 MiB from all"),
    TN_OPT_END};

const tn_communicator tn_tcp_communicator = {
    .item = TN_ITEM(tn_communicator, TN_COMMUNICATOR, "tcp",
                    "collectives between processes, on one host or several, in host memory", tn_tcp_options,
                    tcp_options),
    .families = "cpu,onednn",
    .identity_bytes = sizeof(tn_tcp_identity),
    .identify = tcp_identify,
    .open = tcp_open,
    .close = tcp_close,
    .run = tcp_run,
    .status = tcp_status,
    .abort = tcp_abort,
    .await = tcp_await,
    .suits = tcp_suits,
};
