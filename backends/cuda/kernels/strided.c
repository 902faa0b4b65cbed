/* backends/cuda/kernels/strided.c: copies of a strided array to a dense one (device/movement.cu). */
#include "backends/cuda/kernels/strided.h"

#include <stdio.h>

#include "backends/cuda/kernels/index.h"

enum { LEAST_OF_TILES = 16 /* rows and columns of a matrix that tiles transpose */ };

int32_t tn_cuda_unit_bytes(int32_t size, const int64_t *numbers, int32_t n) {
  int32_t unit = size;
  while (unit < 16) {
    for (int32_t i = 0; i < n; i++)
      if (numbers[i] % (2 * unit / size) != 0) return unit;
    unit *= 2;
  }
  return unit;
}

bool tn_cuda_aligned(const void *a, const void *b, int32_t bytes) {
  return (((uintptr_t)a | (uintptr_t)b) & (uintptr_t)(bytes - 1)) == 0;
}

/* ---- gather ---- */

static int64_t strided_count(const tn_movement *m) {
  int64_t count = 1;
  for (int32_t i = 0; i < m->rank; i++) count *= m->dims[i];
  return count;
}

/* A unit of `n` elements must not cross the end of a row, and begins at a multiple of itself. */
static int32_t strided_unit(int32_t size, const tn_movement *m) {
  int64_t numbers[TN_MAX_RANK + 2];
  int32_t last = m->rank - 1;
  if (m->from[last] != 1) return size;
  for (int32_t i = 0; i < last; i++) numbers[i] = m->from[i];
  numbers[last] = m->dims[last];
  numbers[last + 1] = m->from_first;
  return tn_cuda_unit_bytes(size, numbers, last + 2);
}

static struct gather_args strided_gather(const tn_movement *m, int64_t per_unit) {
  int32_t last = m->rank - 1;
  struct gather_args a = {.rank = m->rank, .first = m->from_first / per_unit};
  a.count = strided_count(m) / per_unit;
  for (int32_t i = 0; i < m->rank; i++) {
    a.dims[i] = tn_cuda_divider(i == last ? m->dims[i] / per_unit : m->dims[i]);
    a.stride[i] = i == last ? m->from[i] : m->from[i] / per_unit;
  }
  return a;
}

static tn_status strided_request_gather(tn_prepare *p, const struct gather_args *a, int32_t unit,
                                        tn_cuda_function *function, tn_cuda_grid *grid) {
  *grid = tn_cuda_grid_of(a->count, TN_CUDA_THREADS, TN_CUDA_BLOCKS);
  return tn_cuda_request(p, function, "movement.cu", "gather_%d%s", (int)unit, tn_cuda_long(a->count));
}

static tn_status strided_prepare_gather(tn_prepare *p, int32_t size, const tn_movement *m,
                                        tn_cuda_strided *s) {
  int32_t unit = strided_unit(size, m);
  s->elements_args = strided_gather(m, 1);
  tn_status status = strided_request_gather(p, &s->elements_args, size, &s->elements, &s->elements_grid);
  if (status != TN_OK || unit == size) return status;
  s->unit = unit;
  s->units_args = strided_gather(m, unit / size);
  return strided_request_gather(p, &s->units_args, unit, &s->units, &s->units_grid);
}

/* ---- tiles ---- */

/* The dimension that is adjacent in the operand, where it is not the innermost; else -1. */
static int32_t strided_across(const tn_movement *m) {
  int32_t last = m->rank - 1;
  if (m->to[last] != 1 || m->from[last] == 1 || m->dims[last] < LEAST_OF_TILES) return -1;
  for (int32_t i = 0; i < last; i++)
    if (m->from[i] == 1 && m->dims[i] >= LEAST_OF_TILES) return i;
  return -1;
}

static int64_t strided_tiles_of(int64_t extent) { return (extent + MOVEMENT_TILE - 1) / MOVEMENT_TILE; }

/* Returns the number of blocks. */
static int64_t strided_tiles(const tn_movement *m, int32_t across, struct tiles_args *a) {
  int32_t last = m->rank - 1;
  *a = (struct tiles_args){.to_first = m->to_first,
                           .from_first = m->from_first,
                           .rows = m->dims[across],
                           .columns = m->dims[last],
                           .to_row = m->to[across],
                           .from_column = m->from[last]};
  int64_t blocks = strided_tiles_of(a->rows) * strided_tiles_of(a->columns);
  a->row_tiles = tn_cuda_divider(strided_tiles_of(a->rows));
  a->column_tiles = tn_cuda_divider(strided_tiles_of(a->columns));
  for (int32_t i = 0; i < last; i++) {
    if (i == across) continue;
    a->dims[a->rank] = tn_cuda_divider(m->dims[i]);
    a->to_stride[a->rank] = m->to[i];
    a->from_stride[a->rank++] = m->from[i];
    blocks *= m->dims[i];
  }
  return blocks;
}

static tn_status strided_prepare_tiles(tn_prepare *p, int32_t size, int64_t blocks, tn_cuda_strided *s) {
  s->in_tiles = true;
  s->elements_grid =
      (tn_cuda_grid){.blocks = {(uint32_t)blocks, 1, 1}, .threads = {MOVEMENT_TILE, MOVEMENT_TILE_ROWS, 1}};
  return tn_cuda_request(p, &s->elements, "movement.cu", "tiles_%d", (int)size);
}

/* ---- prepare, launch, release ---- */

tn_status tn_cuda_strided_prepare(tn_prepare *p, int32_t size, const tn_movement *walk, tn_cuda_strided *s) {
  int32_t across = strided_across(walk);
  if (strided_count(walk) == 0) return TN_OK;
  if (across >= 0) {
    int64_t blocks = strided_tiles(walk, across, &s->tiles_args);
    if (blocks <= INT32_MAX) return strided_prepare_tiles(p, size, blocks, s);
  }
  return strided_prepare_gather(p, size, walk, s);
}

static tn_status strided_launch_gather(tn_launch *l, const tn_cuda_function *function,
                                       const tn_cuda_grid *grid, const struct gather_args *args, void *to,
                                       const void *from) {
  struct gather_args a = *args;
  a.to = to;
  a.from = from;
  return tn_cuda_launch(l, function, grid, &a, sizeof a);
}

tn_status tn_cuda_strided_launch(tn_launch *l, const tn_cuda_strided *s, void *to, const void *from) {
  if (s->elements_grid.blocks[0] == 0) return TN_OK;
  if (s->in_tiles) {
    struct tiles_args a = s->tiles_args;
    a.to = to;
    a.from = from;
    return tn_cuda_launch(l, &s->elements, &s->elements_grid, &a, sizeof a);
  }
  if (s->unit > 0 && tn_cuda_aligned(to, from, s->unit))
    return strided_launch_gather(l, &s->units, &s->units_grid, &s->units_args, to, from);
  return strided_launch_gather(l, &s->elements, &s->elements_grid, &s->elements_args, to, from);
}

void tn_cuda_strided_release(tn_cuda_strided *s) {
  tn_cuda_withdraw(&s->elements);
  tn_cuda_withdraw(&s->units);
}
