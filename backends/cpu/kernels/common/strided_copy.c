#include "backends/cpu/kernels/common/strided_copy.h"

#include "backends/cpu/kernels/common/clones.h"
#include "backends/shared/integer_math.h"

#include <string.h>

enum {
  TILE = 32,               /* square tiles of a transposed copy */
  STRIP = 1024,            /* elements along the innermost dimension in a strip of a transposed copy */
  PIECE_BYTES = 1 << 16,   /* of a piece of a copy that is not transposed */
  CHUNK_ELEMENTS = 1 << 14 /* least elements per chunk */
};

/* ---- division into tasks ---- */

/* A copy is transposed if `from` has stride 1 along another dimension than the innermost. Returns that
 * dimension, or -1. */
static int32_t strided_copy_find_across(const tn_strided *p) {
  int32_t last = p->walk.rank - 1;
  if (p->walk.to[last] != 1 || p->walk.from[last] == 1) return -1;
  for (int32_t i = last - 1; i >= 0; i--)
    if (p->walk.from[i] == 1) return i;
  return -1;
}

static void strided_copy_divide(tn_strided *p) {
  int32_t last = p->walk.rank - 1;
  int64_t inner = p->walk.dims[last], piece = p->across < 0 ? PIECE_BYTES / (int64_t)p->size : STRIP;
  p->pieces_across = p->across < 0 ? 1 : divide_up(p->walk.dims[p->across], TILE);
  p->pieces = divide_up(inner, piece) * p->pieces_across;
  p->outer = 1;
  for (int32_t i = 0; i < last; i++)
    if (i != p->across) p->outer *= p->walk.dims[i];
  int64_t work = least(inner, piece) * (p->across < 0 ? 1 : least(p->walk.dims[p->across], TILE));
  p->tasks_per_chunk = work > 0 && work < CHUNK_ELEMENTS ? CHUNK_ELEMENTS / work : 1;
  p->chunks = divide_up(p->outer * p->pieces, p->tasks_per_chunk);
}

tn_strided tn_strided_make(size_t size, const tn_movement *walk) {
  tn_strided p = {.walk = *walk, .size = size};
  p.across = strided_copy_find_across(&p);
  strided_copy_divide(&p);
  return p;
}

/* ---- copy ---- */

typedef uint16_t __attribute__((may_alias)) strided_word16;
typedef uint32_t __attribute__((may_alias)) strided_word32;
typedef uint64_t __attribute__((may_alias)) strided_word64;

/* name_run: n elements at any steps. name_tile: up to TILE runs of up to TILE neighbours, read into a local
 * tile and written from it transposed, so that each cache line is read once and written once. */
#define COPY(name, WORD)                                                                                     \
  static TN_CPU_CLONES void name##_run(WORD *to, int64_t to_step, const WORD *from, int64_t from_step,       \
                                       int64_t n) {                                                          \
    TN_CPU_VECTOR for (int64_t k = 0; k < n; k++) to[k * to_step] = from[k * from_step];                     \
  }                                                                                                          \
  static TN_CPU_CLONES void name##_tile(WORD *to, int64_t to_step, const WORD *from, int64_t from_step,      \
                                        int64_t across, int64_t along) {                                     \
    WORD tile[TILE][TILE];                                                                                   \
    for (int64_t j = 0; j < along; j++)                                                                      \
      memcpy(tile[j], from + j * from_step, (size_t)across * sizeof(WORD));                                  \
    for (int64_t i = 0; i < across; i++)                                                                     \
      for (int64_t j = 0; j < along; j++) to[i * to_step + j] = tile[j][i];                                  \
  }
COPY(copy_1, uint8_t)
COPY(copy_2, strided_word16)
COPY(copy_4, strided_word32)
COPY(copy_8, strided_word64)

static void strided_copy_run(const tn_strided *p, void *to, const void *from, int64_t n) {
  int64_t to_step = p->walk.to[p->walk.rank - 1], from_step = p->walk.from[p->walk.rank - 1];
  if (to_step == 1 && from_step == 1) {
    memcpy(to, from, (size_t)n * p->size);
    return;
  }
  switch (p->size) {
  case 1: copy_1_run(to, to_step, from, from_step, n); break;
  case 2: copy_2_run(to, to_step, from, from_step, n); break;
  case 4: copy_4_run(to, to_step, from, from_step, n); break;
  default: copy_8_run(to, to_step, from, from_step, n); break;
  }
}

static void strided_copy_tile(const tn_strided *p, void *to, const void *from, int64_t across,
                              int64_t along) {
  int64_t to_step = p->walk.to[p->across], from_step = p->walk.from[p->walk.rank - 1];
  switch (p->size) {
  case 1: copy_1_tile(to, to_step, from, from_step, across, along); break;
  case 2: copy_2_tile(to, to_step, from, from_step, across, along); break;
  case 4: copy_4_tile(to, to_step, from, from_step, across, along); break;
  default: copy_8_tile(to, to_step, from, from_step, across, along); break;
  }
}

typedef struct strided_job {
  const tn_strided *p;
  uint8_t *to;
  const uint8_t *from;
} strided_job;

/* Adds the offsets of iteration `at` of the outer dimensions to *to and *from. */
static void strided_copy_outer_offsets(const tn_strided *p, int64_t at, int64_t *to, int64_t *from) {
  for (int32_t i = p->walk.rank - 2; i >= 0; i--) {
    if (i == p->across) continue;
    int64_t c = at % p->walk.dims[i];
    at /= p->walk.dims[i];
    *to += c * p->walk.to[i];
    *from += c * p->walk.from[i];
  }
}

static void strided_copy_piece(const strided_job *j, int64_t to, int64_t from, int64_t piece) {
  const tn_strided *p = j->p;
  int32_t last = p->walk.rank - 1;
  int64_t length = PIECE_BYTES / (int64_t)p->size, at = piece * length;
  to += at * p->walk.to[last];
  from += at * p->walk.from[last];
  strided_copy_run(p, j->to + to * (int64_t)p->size, j->from + from * (int64_t)p->size,
                   least(length, p->walk.dims[last] - at));
}

/* A strip of TILE elements across and STRIP along, tile by tile. */
static void strided_copy_strip(const strided_job *j, int64_t to, int64_t from, int64_t piece) {
  const tn_strided *p = j->p;
  int32_t last = p->walk.rank - 1;
  int64_t i = piece % p->pieces_across * TILE, k = piece / p->pieces_across * STRIP;
  int64_t across = least(TILE, p->walk.dims[p->across] - i), end = least(p->walk.dims[last], k + STRIP);
  to += i * p->walk.to[p->across];
  from += i;
  for (; k < end; k += TILE)
    strided_copy_tile(p, j->to + (to + k) * (int64_t)p->size,
                      j->from + (from + k * p->walk.from[last]) * (int64_t)p->size, across,
                      least(TILE, end - k));
}

static void strided_copy_chunk(void *arg, int64_t chunk) {
  const strided_job *j = arg;
  const tn_strided *p = j->p;
  int64_t task = chunk * p->tasks_per_chunk, end = least(p->outer * p->pieces, task + p->tasks_per_chunk);
  for (; task < end; task++) {
    int64_t to = p->walk.to_first, from = p->walk.from_first;
    strided_copy_outer_offsets(p, task / p->pieces, &to, &from);
    (p->across < 0 ? strided_copy_piece : strided_copy_strip)(j, to, from, task % p->pieces);
  }
}

void tn_strided_copy(tn_launch *l, const tn_strided *copy, void *to, const void *from) {
  strided_job j = {copy, to, from};
  tn_parallel(l, copy->chunks, strided_copy_chunk, &j);
}

/* ---- bytes ---- */

enum { CHUNK_BYTES = 1 << 18 };

typedef struct byte_block {
  uint8_t *to;
  const uint8_t *from; /* NULL: fill with zeros */
  size_t bytes;
} byte_block;

static void byte_block_chunk(void *arg, int64_t chunk) {
  const byte_block *b = arg;
  size_t at = (size_t)chunk * CHUNK_BYTES, n = b->bytes - at < CHUNK_BYTES ? b->bytes - at : CHUNK_BYTES;
  if (b->from == NULL)
    memset(b->to + at, 0, n);
  else
    memcpy(b->to + at, b->from + at, n);
}

void tn_cpu_copy_bytes(tn_launch *l, void *to, const void *from, size_t bytes) {
  byte_block b = {to, from, bytes};
  if (to == from || bytes == 0) return;
  tn_parallel(l, (int64_t)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES), byte_block_chunk, &b);
}

void tn_cpu_zero_bytes(tn_launch *l, void *to, size_t bytes) {
  byte_block b = {to, NULL, bytes};
  if (bytes == 0) return;
  tn_parallel(l, (int64_t)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES), byte_block_chunk, &b);
}
