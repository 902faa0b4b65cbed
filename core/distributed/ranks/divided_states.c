/* core/distributed/ranks/divided_states.c: rank 0 decides which state is read or written next; then all ranks
 * exchange the pieces of that state, until rank 0 decides that it is done. So the order is that of rank 0's
 * files, and a failure on rank 0 in the middle of a file leaves no rank behind. */
#include "core/distributed/ranks/divided_states.h"

#include <stdbool.h>
#include <string.h>

/* A decision: DONE, or twice the number of a state, and one more to write it. */
enum { DONE = -1 };

enum { EXCHANGED_BYTES = 8 << 20, LEAST_PIECE_BYTES = 4096 };

/* A state whose elements are exchanged. */
typedef struct divided_state {
  const tn_divided_access *access;
  const tn_placement *state;
  int32_t ranks;
  int64_t held; /* elements of the region on each rank */
  size_t element;
  int64_t piece;       /* elements that a rank hands over at once */
  char *mine, *pieces; /* one piece, and on rank 0, where it reads, one of every rank */
} divided_state;

/* Elements of the region, [start, stop). */
typedef struct divided_span {
  int64_t start, stop;
} divided_span;

/* The elements of the state that a rank holds; empty: start >= stop. */
static divided_span divided_of_rank(const divided_state *d, int32_t rank) {
  int64_t start = d->state->offset, stop = start + tn_type_count(&d->state->type);
  int64_t first = rank * d->held, end = first + d->held;
  return (divided_span){start > first ? start : first, stop < end ? stop : end};
}

static divided_span divided_piece(const divided_state *d, int32_t rank, int64_t number) {
  divided_span span = divided_of_rank(d, rank);
  span.start += number * d->piece;
  if (span.stop > span.start + d->piece) span.stop = span.start + d->piece;
  return span;
}

/* Elements of the state on the rank that holds most of them. */
static int64_t divided_most_held(const divided_state *d) {
  int64_t most = 0;
  for (int32_t r = 0; r < d->ranks; r++) {
    divided_span span = divided_of_rank(d, r);
    if (span.stop - span.start > most) most = span.stop - span.start;
  }
  return most;
}

static size_t divided_bytes(const divided_state *d, divided_span span) {
  return span.stop > span.start ? (size_t)(span.stop - span.start) * d->element : 0;
}

/* Into the rank's part of the region. */
static size_t divided_offset(const divided_state *d, int64_t element) {
  return (size_t)(element - d->access->rank * d->held) * d->element;
}

/* A piece is no longer than the elements of one rank, in reading, and than the state, in writing. */
static tn_status divided_begin(divided_state *d, const tn_divided_access *access, const tn_placement *state,
                               bool reads) {
  const tn_region *region = &access->map->regions.v[state->region];
  *d = (divided_state){.access = access,
                       .state = state,
                       .ranks = region->shards,
                       .held = region->count / region->shards,
                       .element = tn_dtype_size(region->dtype)};
  int64_t room = EXCHANGED_BYTES / d->ranks,
          most = reads ? divided_most_held(d) : tn_type_count(&state->type);
  if (room < LEAST_PIECE_BYTES) room = LEAST_PIECE_BYTES;
  d->piece = room / (int64_t)d->element;
  if (d->piece > most) d->piece = most;
  size_t bytes = (size_t)d->piece * d->element;
  d->mine = tn_alloc(access->env, bytes);
  bool gathers = reads && access->rank == 0;
  if (gathers) d->pieces = tn_alloc(access->env, tn_size_mul(bytes, (size_t)d->ranks));
  return d->mine != NULL && (!gathers || d->pieces != NULL) ? TN_OK : TN_ENOMEM;
}

static void divided_end(const divided_state *d) {
  tn_release(d->access->env, d->mine);
  tn_release(d->access->env, d->pieces);
}

/* ---- reading ---- */

static tn_status divided_read_own(const divided_state *d, divided_span span) {
  size_t bytes = divided_bytes(d, span);
  if (bytes == 0) return TN_OK;
  return tn_executor_read_region(d->access->executor, d->state->region, divided_offset(d, span.start),
                                 d->mine, bytes);
}

/* `to` is NULL on the ranks that only hand over their pieces. */
static tn_status divided_read_pieces(const divided_state *d, char *to) {
  const tn_divided_access *a = d->access;
  int64_t n = (divided_most_held(d) + d->piece - 1) / d->piece;
  size_t stride = (size_t)d->piece * d->element;
  for (int64_t i = 0; i < n; i++) {
    TN_TRY(divided_read_own(d, divided_piece(d, a->rank, i)));
    TN_TRY(tn_ranks_gather(a->ranks, a->env, a->rank, "parts of a state", d->mine, stride, d->pieces));
    for (int32_t r = 0; to != NULL && r < d->ranks; r++) {
      divided_span span = divided_piece(d, r, i);
      size_t bytes = divided_bytes(d, span);
      if (bytes > 0)
        memcpy(to + (size_t)(span.start - d->state->offset) * d->element, d->pieces + r * stride, bytes);
    }
  }
  return TN_OK;
}

static tn_status divided_read_state(const tn_divided_access *access, const tn_placement *state, void *to) {
  divided_state d;
  tn_status status = divided_begin(&d, access, state, true);
  if (status == TN_OK) status = divided_read_pieces(&d, to);
  divided_end(&d);
  return status;
}

/* ---- writing ---- */

/* Writes those of the elements that this rank holds. */
static tn_status divided_write_own(const divided_state *d, divided_span sent) {
  divided_span own = divided_of_rank(d, d->access->rank);
  if (own.start < sent.start) own.start = sent.start;
  if (own.stop > sent.stop) own.stop = sent.stop;
  size_t bytes = divided_bytes(d, own);
  if (bytes == 0) return TN_OK;
  return tn_executor_write_region(d->access->executor, d->state->region, divided_offset(d, own.start),
                                  d->mine + (size_t)(own.start - sent.start) * d->element, bytes);
}

/* `from` is NULL on the ranks that only take their pieces. */
static tn_status divided_write_pieces(const divided_state *d, const char *from) {
  const tn_divided_access *a = d->access;
  int64_t start = d->state->offset, stop = start + tn_type_count(&d->state->type);
  while (start < stop) {
    divided_span sent = {start, stop < start + d->piece ? stop : start + d->piece};
    size_t bytes = divided_bytes(d, sent);
    if (from != NULL) memcpy(d->mine, from + (size_t)(start - d->state->offset) * d->element, bytes);
    TN_TRY(tn_ranks_broadcast(a->ranks, a->env, a->rank, "a state", d->mine, bytes));
    TN_TRY(divided_write_own(d, sent));
    start = sent.stop;
  }
  return TN_OK;
}

static tn_status divided_write_state(const tn_divided_access *access, const tn_placement *state,
                                     const void *from) {
  divided_state d;
  tn_status status = divided_begin(&d, access, state, false);
  if (status == TN_OK) status = divided_write_pieces(&d, from);
  divided_end(&d);
  return status;
}

/* ---- rank 0 and the others ---- */

static tn_status divided_decide(const tn_divided_access *a, int32_t *decision) {
  return tn_ranks_decide(a->ranks, a->env, a->rank, decision);
}

static tn_status divided_read(void *context, const tn_placement *state, void *to) {
  const tn_divided_access *a = context;
  int32_t decision = 2 * (int32_t)(state - a->map->states.v);
  TN_TRY(divided_decide(a, &decision));
  return divided_read_state(a, state, to);
}

static tn_status divided_write(void *context, const tn_placement *state, const void *from) {
  const tn_divided_access *a = context;
  int32_t decision = 2 * (int32_t)(state - a->map->states.v) + 1;
  TN_TRY(divided_decide(a, &decision));
  return divided_write_state(a, state, from);
}

static tn_status divided_serve(const tn_divided_access *a) {
  for (;;) {
    int32_t decision = DONE;
    TN_TRY(divided_decide(a, &decision));
    if (decision == DONE) return TN_OK;
    const tn_placement *state = &a->map->states.v[decision / 2];
    TN_TRY(decision % 2 == 0 ? divided_read_state(a, state, NULL) : divided_write_state(a, state, NULL));
  }
}

static bool divided_has_regions(const tn_state_map *map) {
  for (size_t i = 0; i < map->regions.n; i++)
    if (map->regions.v[i].shards > 1) return true;
  return false;
}

tn_status tn_divided_run(const tn_divided_access *access, tn_status (*body)(void *context), void *context) {
  tn_divided_states states = {divided_read, divided_write, (void *)(uintptr_t)access};
  int32_t decision = DONE;
  if (!divided_has_regions(access->map)) return access->rank == 0 ? body(context) : TN_OK;
  if (access->rank != 0) return divided_serve(access);
  tn_executor_attach_divided(access->executor, &states);
  tn_status status = body(context);
  tn_executor_attach_divided(access->executor, NULL);
  tn_status ended = status == TN_OK || status == TN_ENONFINITE ? divided_decide(access, &decision) : TN_OK;
  return status != TN_OK ? status : ended;
}
