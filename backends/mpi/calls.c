/* backends/mpi/calls.c: the calls of MPI that make up a collective. MPI does not promise the order of a sum,
 * so it transports elements, and the ranks reduce them in the order of ranks: a result has the same bits on
 * all ranks, in every run, and those of the communicator `sim`.
 *
 * A long vector is worked off in pieces, two at a time. Of each piece, every rank gets one part of all
 * operands (MPI_Ialltoallv) and reduces it; of an all_reduce, the ranks then exchange the results
 * (MPI_Iallgatherv). That moves as many bytes as a ring does, in place, with memory for two pieces. A short
 * vector is gathered on every rank, which reduces it alone. The calls of a communicator must have the same
 * order on all ranks, so the second stage of a piece always follows the first stage of the next one. */
#include <stdlib.h>
#include <string.h>

#include "backends/mpi/objects.h"
#include "backends/shared/reduce.h"

enum { SHORT = 2048, LARGEST_ELEMENT = 8 };

MPI_Datatype tn_mpi_type(int32_t dtype) {
  switch (dtype) {
  case TN_BOOL:
  case TN_U8: return MPI_UINT8_T;
  case TN_I8: return MPI_INT8_T;
  case TN_I32: return MPI_INT32_T;
  case TN_I64: return MPI_INT64_T;
  case TN_F16:
  case TN_BF16: return MPI_UINT16_T;
  case TN_F32: return MPI_FLOAT;
  case TN_F64: return MPI_DOUBLE;
  default: return MPI_DATATYPE_NULL;
  }
}

/* ---- memory ---- */

bool tn_mpi_calls_new(tn_mpi_calls *c, MPI_Comm comm, int32_t rank, int32_t ranks, int64_t piece) {
  *c = (tn_mpi_calls){.comm = comm, .rank = rank, .ranks = ranks, .piece = piece > ranks ? piece : ranks};
  size_t n = (size_t)ranks;
  c->from = malloc(n * sizeof *c->from);
  bool made = c->from != NULL;
  for (int i = 0; i < TN_MPI_LANES; i++) {
    tn_mpi_lane *lane = &c->lanes[i];
    lane->scattered = lane->gathered = MPI_REQUEST_NULL;
    lane->counts = malloc(6 * n * sizeof *lane->counts);
    lane->received = malloc(((size_t)c->piece + n) * LARGEST_ELEMENT);
    made = made && lane->counts != NULL && lane->received != NULL;
  }
  return made;
}

void tn_mpi_calls_delete(tn_mpi_calls *c) {
  for (int i = 0; i < TN_MPI_LANES; i++) {
    free(c->lanes[i].counts);
    free(c->lanes[i].received);
  }
  free(c->from);
}

/* ---- pieces ---- */

/* A whole vector is cut where the pieces' parts go to ranks; a part of each rank, where it belongs to one. */
static int64_t calls_length(const tn_mpi_calls *c) {
  return c->collective.kind == TN_REDUCE_SCATTER ? c->collective.count / c->ranks : c->collective.count;
}

/* Elements of a piece, of which a lane holds those of all ranks. */
static int64_t calls_step(const tn_mpi_calls *c) {
  bool of_each = c->collective.kind == TN_REDUCE_SCATTER || c->collective.kind == TN_ALL_GATHER;
  return of_each ? c->piece / c->ranks : c->piece;
}

static bool calls_is_short(const tn_mpi_calls *c) {
  const tn_collective *w = &c->collective;
  return w->kind == TN_ALL_REDUCE && w->count <= SHORT && w->count * c->ranks <= c->piece;
}

void tn_mpi_calls_start(tn_mpi_calls *c, const tn_collective *collective) {
  c->collective = *collective;
  c->next = c->reduced = 0;
  int64_t step = calls_step(c);
  c->n = (calls_length(c) + step - 1) / step;
}

typedef struct calls_piece {
  int64_t at, n; /* of the vector, or of each rank's part */
  tn_mpi_lane *lane;
} calls_piece;

static calls_piece calls_piece_of(tn_mpi_calls *c, int64_t k) {
  int64_t step = calls_step(c), length = calls_length(c), at = k * step;
  return (calls_piece){at, length - at < step ? length - at : step, &c->lanes[k % TN_MPI_LANES]};
}

static void *calls_at(const tn_mpi_calls *c, const void *address, int64_t element) {
  return (char *)(uintptr_t)address + (size_t)element * tn_dtype_size(c->collective.dtype);
}

/* The first element of the part that a rank reduces, from the beginning of the operand. */
static int64_t calls_part_start(const tn_mpi_calls *c, const calls_piece *p, int32_t rank) {
  if (c->collective.kind == TN_REDUCE_SCATTER) return rank * calls_length(c) + p->at;
  return p->at + p->n / c->ranks * rank + p->n % c->ranks * rank / c->ranks;
}

static int64_t calls_part_count(const tn_mpi_calls *c, const calls_piece *p, int32_t rank) {
  if (c->collective.kind == TN_REDUCE_SCATTER) return p->n;
  return calls_part_start(c, p, rank + 1) - calls_part_start(c, p, rank);
}

/* ---- the first stage ---- */

/* Every rank sends each other one its part, and keeps its own where it is. */
static int calls_scatter(tn_mpi_calls *c, const calls_piece *p, MPI_Datatype type) {
  int *sent = p->lane->counts, *sent_at = sent + c->ranks, *got = sent_at + c->ranks,
      *got_at = got + c->ranks;
  int64_t base = calls_part_start(c, p, 0), mine = calls_part_count(c, p, c->rank);
  for (int32_t r = 0; r < c->ranks; r++) {
    sent[r] = r == c->rank ? 0 : (int)calls_part_count(c, p, r);
    sent_at[r] = (int)(calls_part_start(c, p, r) - base);
    got[r] = r == c->rank ? 0 : (int)mine;
    got_at[r] = (int)(r * mine);
  }
  return MPI_Ialltoallv(calls_at(c, c->collective.from, base), sent, sent_at, type, p->lane->received, got,
                        got_at, type, c->comm, &p->lane->scattered);
}

static int calls_gather(tn_mpi_calls *c, const calls_piece *p, MPI_Datatype type) {
  const tn_collective *w = &c->collective;
  int *got = p->lane->counts, *got_at = got + c->ranks;
  void *mine = calls_at(c, w->to, c->rank * w->count + p->at);
  for (int32_t r = 0; r < c->ranks; r++) {
    got[r] = (int)p->n;
    got_at[r] = (int)(r * w->count);
  }
  const void *from = calls_at(c, w->from, p->at);
  if (from != mine) memcpy(mine, from, (size_t)p->n * tn_dtype_size(w->dtype));
  return MPI_Iallgatherv(MPI_IN_PLACE, 0, type, calls_at(c, w->to, p->at), got, got_at, type, c->comm,
                         &p->lane->scattered);
}

static int calls_broadcast(tn_mpi_calls *c, const calls_piece *p, MPI_Datatype type) {
  const tn_collective *w = &c->collective;
  const void *from = calls_at(c, w->from, p->at);
  void *to = calls_at(c, w->to, p->at);
  if (w->root == c->rank && from != to) memcpy(to, from, (size_t)p->n * tn_dtype_size(w->dtype));
  return MPI_Ibcast(to, (int)p->n, type, w->root, c->comm, &p->lane->scattered);
}

static int calls_begin(tn_mpi_calls *c) {
  const tn_collective *w = &c->collective;
  calls_piece p = calls_piece_of(c, c->next++);
  MPI_Datatype type = tn_mpi_type(w->dtype);
  if (w->kind == TN_BROADCAST) return calls_broadcast(c, &p, type);
  if (w->kind == TN_ALL_GATHER) return calls_gather(c, &p, type);
  if (!calls_is_short(c)) return calls_scatter(c, &p, type);
  return MPI_Iallgather(w->from, (int)w->count, type, p.lane->received, (int)w->count, type, c->comm,
                        &p.lane->scattered);
}

/* ---- the second stage ---- */

static void calls_reduce(tn_mpi_calls *c, const calls_piece *p) {
  const tn_collective *w = &c->collective;
  bool whole = calls_is_short(c);
  int64_t n = whole ? p->n : calls_part_count(c, p, c->rank),
          start = whole ? 0 : calls_part_start(c, p, c->rank);
  for (int32_t r = 0; r < c->ranks; r++)
    c->from[r] = r == c->rank ? calls_at(c, w->from, start) : calls_at(c, p->lane->received, r * n);
  void *to = calls_at(c, w->to, w->kind == TN_REDUCE_SCATTER ? p->at : start);
  tn_reduce(w->dtype, w->reduction, c->ranks, c->from, to, n);
}

static int calls_exchange(tn_mpi_calls *c, const calls_piece *p) {
  int *got = p->lane->counts + 4 * c->ranks, *got_at = got + c->ranks;
  MPI_Datatype type = tn_mpi_type(c->collective.dtype);
  for (int32_t r = 0; r < c->ranks; r++) {
    got[r] = (int)calls_part_count(c, p, r);
    got_at[r] = (int)(calls_part_start(c, p, r) - p->at);
  }
  return MPI_Iallgatherv(MPI_IN_PLACE, 0, type, calls_at(c, c->collective.to, p->at), got, got_at, type,
                         c->comm, &p->lane->gathered);
}

static int calls_finish(tn_mpi_calls *c, const calls_piece *p) {
  int32_t kind = c->collective.kind;
  if (kind == TN_ALL_REDUCE || kind == TN_REDUCE_SCATTER) calls_reduce(c, p);
  return kind == TN_ALL_REDUCE && !calls_is_short(c) ? calls_exchange(c, p) : MPI_SUCCESS;
}

/* ---- progress ---- */

static int calls_test(MPI_Request *request, int *ended) {
  MPI_Status status;
  return MPI_Test(request, ended, &status);
}

/* The next piece, if its first stage has ended, and the second stage of the piece whose lane it has. */
static int calls_advance_piece(tn_mpi_calls *c, bool *moved) {
  calls_piece p = calls_piece_of(c, c->reduced);
  int ended = 0, error = calls_test(&p.lane->scattered, &ended);
  if (error == MPI_SUCCESS && ended) error = calls_test(&p.lane->gathered, &ended);
  if (error != MPI_SUCCESS || !ended) return error;
  error = calls_finish(c, &p);
  c->reduced++;
  *moved = true;
  return error == MPI_SUCCESS && c->next < c->n ? calls_begin(c) : error;
}

int tn_mpi_calls_advance(tn_mpi_calls *c, bool *moved, bool *done) {
  int error = MPI_SUCCESS, ended = 1;
  *moved = *done = false;
  while (error == MPI_SUCCESS && c->next < c->n && c->next < TN_MPI_LANES) error = calls_begin(c);
  if (error == MPI_SUCCESS && c->reduced < c->n) return calls_advance_piece(c, moved);
  for (int i = 0; error == MPI_SUCCESS && ended && i < TN_MPI_LANES; i++)
    error = calls_test(&c->lanes[i].gathered, &ended);
  *done = error == MPI_SUCCESS && ended;
  return error;
}
