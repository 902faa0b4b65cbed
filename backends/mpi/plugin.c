/* backends/mpi/plugin.c: the descriptor: the communicator `mpi`, for devices in host memory. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "backends/mpi/objects.h"
#include "backends/shared/reduce.h"

/* Seconds beyond the timeout for which the thread may be held in a call of MPI. */
enum { PLUGIN_HELD_S = 5 };

static tn_status plugin_identify(tn_env *env, const void *options, const tn_comm_place *place,
                                 void *identity) {
  tn_mpi_identity id;
  (void)options, (void)place;
  if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
    return tn_fail(env, TN_EUNAVAILABLE, NULL, "mpi: the system has no random number for the run");
  memcpy(identity, &id, sizeof id);
  return TN_OK;
}

/* ---- open, close ---- */

/* All processes of a run have the same answer, since one launcher has started them. */
static tn_status plugin_suits(tn_env *env, const void *options, const tn_comm_place *place) {
  (void)options;
  if (place->processes < place->ranks)
    return tn_fail(
        env, TN_EUNSUPPORTED, NULL,
        "mpi: %d ranks in %d process%s, expected one rank in each: mpirun -n %d tenon train FILE.ini",
        (int)place->ranks, (int)place->processes, place->processes == 1 ? "" : "es", (int)place->ranks);
  if (place->ranks == 1 || tn_mpi_launched()) return TN_OK;
  return tn_fail(env, TN_EUNSUPPORTED, NULL, "mpi: started without mpirun: mpirun -n %d tenon train FILE.ini",
                 (int)place->ranks);
}

static void plugin_init_lock(tn_mpi_rank *r) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->asked, &monotonic);
  pthread_cond_init(&r->answered, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

static void plugin_free(tn_env *env, tn_mpi_rank *r) {
  pthread_cond_destroy(&r->answered);
  pthread_cond_destroy(&r->asked);
  pthread_mutex_destroy(&r->lock);
  tn_delete(env, r);
}

/* A rank in which the thread is held, or whose memory MPI may use, is never freed. */
static void plugin_close(tn_env *env, void *communicator) {
  tn_mpi_rank *r = communicator;
  if (tn_mpi_thread_close(r) && !r->kept) plugin_free(env, r);
}

static tn_status plugin_open(tn_env *env, const void *options, const tn_comm_device *device,
                             const tn_comm_place *place, const void *identity, void **communicator) {
  (void)device;
  *communicator = NULL;
  TN_TRY(plugin_suits(env, options, place));
  tn_mpi_rank *r = tn_new(env, sizeof *r + ((size_t)place->ranks + 1) * sizeof *r->cards);
  if (r == NULL) return tn_fail(env, TN_ENOMEM, NULL, "mpi: no memory for a communicator");
  r->options = *(const tn_mpi_options *)options;
  r->cards = (tn_mpi_card *)(r + 1);
  r->rank = place->rank;
  r->ranks = place->ranks;
  r->place = place;
  r->timeout_s = place->timeout_s;
  r->opened_s = tn_monotonic_s();
  memcpy(&r->identity, identity, sizeof r->identity);
  plugin_init_lock(r);
  tn_status status = tn_mpi_thread_open(env, r);
  if (status == TN_OK) *communicator = r;
  if (status != TN_OK && r->state != TN_MPI_OPENING && !r->kept) plugin_free(env, r);
  return status;
}

/* ---- collectives ---- */

static tn_status plugin_answer(tn_env *env, const tn_mpi_rank *r) {
  return r->failed ? tn_fail(env, TN_ECOMM, NULL, "mpi: %s", r->failure) : TN_OK;
}

static tn_status plugin_check_call(tn_env *env, const tn_mpi_rank *r, const tn_collective *w) {
  bool reduces = w->kind == TN_ALL_REDUCE || w->kind == TN_REDUCE_SCATTER;
  if (w->kind < TN_ALL_REDUCE || w->kind > TN_ALL_GATHER)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "mpi: there is no collective %d", (int)w->kind);
  if (reduces && !tn_can_reduce(w->dtype, w->reduction))
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "mpi: %s of %s over ranks", tn_reduction_name(w->reduction),
                   tn_dtype_name(w->dtype));
  if (!reduces && tn_mpi_type(w->dtype) == MPI_DATATYPE_NULL)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "mpi: there is no dtype %d", (int)w->dtype);
  if (w->count < 0 || (w->kind == TN_REDUCE_SCATTER && w->count % r->ranks != 0))
    return tn_fail(env, TN_EINVAL, NULL, "mpi: %lld elements over %d ranks", (long long)w->count,
                   (int)r->ranks);
  int64_t parts = w->kind == TN_ALL_GATHER ? r->ranks : 1;
  if (w->kind != TN_ALL_REDUCE && w->kind != TN_BROADCAST && w->count > INT32_MAX / parts)
    return tn_fail(env, TN_EUNSUPPORTED, NULL,
                   "mpi: a vector of %lld parts of %lld elements, expected 2^31 elements at most",
                   (long long)parts, (long long)w->count);
  if (w->kind == TN_BROADCAST && (w->root < 0 || w->root >= r->ranks))
    return tn_fail(env, TN_EINVAL, NULL, "mpi: broadcast from rank %d of %d", (int)w->root, (int)r->ranks);
  return TN_OK;
}

/* The ring is full only where the host has begun that many collectives without awaiting one. */
static tn_status plugin_run(tn_env *env, void *communicator, const tn_collective *w, void *stream) {
  tn_mpi_rank *r = communicator;
  (void)stream;
  tn_status status = plugin_check_call(env, r, w);
  if (status != TN_OK || w->count == 0) return status;
  pthread_mutex_lock(&r->lock);
  while (r->begun - r->ended == TN_MPI_RING && !r->failed) pthread_cond_wait(&r->answered, &r->lock);
  status = plugin_answer(env, r);
  if (status == TN_OK) {
    tn_mpi_entry *entry = &r->ring[r->begun++ % TN_MPI_RING];
    entry->collective = *w;
    snprintf(entry->name, sizeof entry->name, "%s", w->name != NULL ? w->name : "?");
    pthread_cond_signal(&r->asked);
  }
  pthread_mutex_unlock(&r->lock);
  return status;
}

static tn_status plugin_await(tn_env *env, void *communicator, uint64_t n) {
  tn_mpi_rank *r = communicator;
  atomic_fetch_add(&r->waiting, 1);
  pthread_mutex_lock(&r->lock);
  while (r->ended < n && r->ended < r->begun && !r->failed) pthread_cond_wait(&r->answered, &r->lock);
  tn_status status = plugin_answer(env, r);
  pthread_mutex_unlock(&r->lock);
  atomic_fetch_sub(&r->waiting, 1);
  return status;
}

/* ---- failure ---- */

static tn_status plugin_status(tn_env *env, void *communicator) {
  tn_mpi_rank *r = communicator;
  pthread_mutex_lock(&r->lock);
  double away = tn_monotonic_s() - r->seen_s;
  bool held = !r->failed && r->begun > r->ended && away > r->timeout_s + PLUGIN_HELD_S;
  pthread_mutex_unlock(&r->lock);
  if (held)
    tn_mpi_fail(r, false, "MPI has not returned for %.0f s on rank %d, in a collective", away, (int)r->rank);
  pthread_mutex_lock(&r->lock);
  tn_status status = plugin_answer(env, r);
  pthread_mutex_unlock(&r->lock);
  return status;
}

static void plugin_abort(tn_env *env, void *communicator) {
  tn_mpi_rank *r = communicator;
  (void)env;
  pthread_mutex_lock(&r->lock);
  r->aborting = true;
  pthread_cond_broadcast(&r->asked);
  pthread_mutex_unlock(&r->lock);
}

static const tn_option options[] = {
    TN_OPT(tn_mpi_options, piece, TN_OPT_INT, "262144", "[1, 1073741824]",
           "elements that are sent and reduced together; a longer vector is several pieces"),
    TN_OPT_END};

static const tn_communicator mpi = {
    .item = TN_ITEM(tn_communicator, TN_COMMUNICATOR, "mpi",
                    "collectives between the processes of mpirun, in host memory", tn_mpi_options, options),
    .families = "cpu,onednn",
    .identity_bytes = sizeof(tn_mpi_identity),
    .identify = plugin_identify,
    .open = plugin_open,
    .close = plugin_close,
    .run = plugin_run,
    .status = plugin_status,
    .abort = plugin_abort,
    .await = plugin_await,
    .suits = plugin_suits};

TN_PLUGIN(mpi, "0.1.0", "MIT", &mpi.item)
