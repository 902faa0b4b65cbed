/* Instructions of a region that look at positions: operands that are repeated, indices, and
 * functions of an index, that is, random numbers and values per range. */
#include <string.h>

#include "backends/onednn/pointwise/program.h"

static const void *tile_operand(const tn_tile_insn *insn, const tn_tile_run *run) {
  return run->launch->in[insn->view].data;
}

/* n elements as lanes. */
static void tile_take(const tn_tile_insn *insn, const void *from, int64_t n, void *to) {
  if (insn->widen != NULL)
    insn->widen(from, to, n);
  else if (to != from)
    memcpy(to, from, (size_t)n * tn_dtype_size(insn->dtype));
}

/* ---- 16 lanes for a segment ---- */

enum { GROUP = 16, WIDEST = 8 };

/* The first `period` elements of the segment, again and again. */
static void tile_period(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {
  uint8_t raw[GROUP * WIDEST];
  size_t size = tn_dtype_size(insn->dtype), bytes = (size_t)insn->count * size;
  int64_t at = tn_pw_walk_to(&run->program->base.maps[insn->map], run->segment).offset;
  const uint8_t *from = (const uint8_t *)tile_operand(insn, run) + (size_t)at * size;
  (void)n;
  for (size_t k = 0; k < GROUP * size; k += bytes) memcpy(raw + k, from, bytes);
  tile_take(insn, raw, GROUP, run->reg[insn->out]);
}

/* ---- lanes for a tile ---- */

typedef uint16_t __attribute__((may_alias)) word16;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

#define STRIDED(name, WORD)                                                                                  \
  static void name(const void *from, int64_t step, int64_t n, void *to) {                                    \
    const WORD *x = from;                                                                                    \
    WORD *y = to;                                                                                            \
    if (step == 0) {                                                                                         \
      for (int64_t k = 0; k < n; k++) y[k] = *x;                                                             \
    } else {                                                                                                 \
      for (int64_t k = 0; k < n; k++) y[k] = x[k * step];                                                    \
    }                                                                                                        \
  }
STRIDED(tile_strided_1, uint8_t)
STRIDED(tile_strided_2, word16)
STRIDED(tile_strided_4, word32)
STRIDED(tile_strided_8, word64)

static void tile_copy_run(size_t size, const void *from, int64_t step, int64_t n, void *to) {
  if (step == 1) {
    memcpy(to, from, (size_t)n * size);
    return;
  }
  switch (size) {
  case 1: tile_strided_1(from, step, n, to); break;
  case 2: tile_strided_2(from, step, n, to); break;
  case 4: tile_strided_4(from, step, n, to); break;
  default: tile_strided_8(from, step, n, to); break;
  }
}

static void tile_collect(const tn_pw_map *map, int64_t at, size_t size, const uint8_t *from, int64_t n,
                         uint8_t *to) {
  int64_t step = map->strides[map->rank - 1];
  tn_pw_walk w = tn_pw_walk_to(map, at);
  while (n > 0) {
    int64_t run = tn_pw_walk_run(&w, n);
    tile_copy_run(size, from + (size_t)w.offset * size, step, run, to);
    tn_pw_walk_on(&w, run);
    to += (size_t)run * size;
    n -= run;
  }
}

static void tile_gather(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {
  uint16_t halves[TILE_MOST];
  void *to = insn->widen != NULL ? halves : run->reg[insn->out];
  tile_collect(&run->program->base.maps[insn->map], run->at, tn_dtype_size(insn->dtype),
               tile_operand(insn, run), n, to);
  tile_take(insn, to, n, run->reg[insn->out]);
}

/* A whole tile of an operand that the region, or a segment, goes through again and again. Chunks begin where
 * it does. */
static void tile_cycle(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {
  size_t size = tn_lane_size(insn->lane), once = (size_t)insn->count * size, whole = (size_t)n * size;
  uint8_t *to = run->reg[insn->out];
  int64_t at =
      insn->map == TN_PW_NONE ? 0 : tn_pw_walk_to(&run->program->base.maps[insn->map], run->segment).offset;
  tile_take(insn, (const uint8_t *)tile_operand(insn, run) + (size_t)at * tn_dtype_size(insn->dtype),
            insn->count, to);
  for (size_t done = once; done < whole; done += once) memcpy(to + done, to, once);
}

/* ---- indices ---- */

static void tile_index_of(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {
  tn_pw_indices(&run->program->base.maps[insn->map], run->at, n, run->reg[insn->out]);
}

static bool tile_is_whole_walk(const tn_pw_map *map) { return tn_pw_access_of(map) == TN_PW_SAME; }

static void tile_random(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {
  const tn_pw_map *map = &run->program->base.maps[insn->map];
  uint64_t iteration = (uint64_t) * (const int64_t *)run->reg[insn->in[0]];
  int64_t before = insn->in[1] < 0 ? 0 : *(const int64_t *)run->reg[insn->in[1]] * insn->count;
  if (tile_is_whole_walk(map)) {
    insn->random->run(insn, iteration, before + run->at, n, run->reg[insn->out]);
    return;
  }
  int64_t index[TILE_MOST];
  tn_pw_indices(map, run->at, n, index);
  for (int64_t k = 0; k < n; k++) index[k] += before;
  insn->random->scattered(insn, iteration, index, n, run->reg[insn->out]);
}

/* ---- values per range: tenon/attributes.h, tn_spread_attributes ---- */

/* How many of the elements from k on are in the range [low, high): they ascend, or are looked at. */
static int64_t tile_length_of(const int64_t *index, int64_t first, int64_t k, int64_t n, int64_t low,
                              int64_t high) {
  int64_t run = 1;
  if (index == NULL) return high - (first + k) < n - k ? high - (first + k) : n - k;
  while (k + run < n && index[k + run] >= low && index[k + run] < high) run++;
  return run;
}

static void tile_spread(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {
  const tn_pw_map *map = &run->program->base.maps[insn->map];
  const int64_t *starts = run->program->base.tables + insn->table, *values = starts + insn->n_table;
  size_t size = tn_dtype_size(insn->dtype), lane = tn_lane_size(insn->lane);
  int64_t indices[TILE_MOST], *index = tile_is_whole_walk(map) ? NULL : indices;
  uint8_t *to = run->reg[insn->out];
  if (index != NULL) tn_pw_indices(map, run->at, n, index);
  for (int64_t k = 0, length; k < n; k += length) {
    int64_t r = tn_pw_range_of(starts, insn->n_table, index != NULL ? index[k] : run->at + k);
    int64_t high = r + 1 < insn->n_table ? starts[r + 1] : INT64_MAX;
    uint64_t value = 0;
    tile_take(insn, (const uint8_t *)tile_operand(insn, run) + (size_t)values[r] * size, 1, &value);
    length = tile_length_of(index, run->at, k, n, starts[r], high);
    tile_copy_run(lane, &value, 0, length, to + (size_t)k * lane);
  }
}

tn_tile_fn tn_tile_access(int32_t op) {
  switch (op) {
  case TILE_SPLAT:
  case TILE_PERIOD: return tile_period;
  case TILE_GATHER: return tile_gather;
  case TILE_CYCLE: return tile_cycle;
  case TN_PW_INDEX: return tile_index_of;
  case TN_PW_SPREAD: return tile_spread;
  default: return tile_random;
  }
}
