/* backends/cuda/kernels/strided.h: copies of a strided array to a dense one: units of several elements where
 * both sides have them adjacent, tiles through shared memory where a dimension is adjacent on one side and
 * another on the other. */
#pragma once

#include "backends/cuda/device/movement.cuh"
#include "backends/cuda/modules/modules.h"
#include "backends/shared/movement.h"

/* Part of a prepared kernel, which must not move. */
typedef struct tn_cuda_strided {
  bool in_tiles;
  int32_t unit; /* bytes that `units` copies at once; 0: there is no such copy */
  tn_cuda_function elements, units;
  tn_cuda_grid elements_grid, units_grid;
  union {
    struct {
      struct gather_args elements_args, units_args;
    };
    struct tiles_args tiles_args;
  };
} tn_cuda_strided;

/* The largest unit of 1, 2, 4, 8 or 16 bytes, at least an element of `size` bytes, that divides the n numbers
 * of elements at `numbers`. */
int32_t tn_cuda_unit_bytes(int32_t size, const int64_t *numbers, int32_t n);
bool tn_cuda_aligned(const void *a, const void *b, int32_t bytes);

/* `walk` writes a dense result of elements of `size` bytes, in the order of their places. */
tn_status tn_cuda_strided_prepare(tn_prepare *p, int32_t size, const tn_movement *walk, tn_cuda_strided *s);
tn_status tn_cuda_strided_launch(tn_launch *l, const tn_cuda_strided *s, void *to, const void *from);
void tn_cuda_strided_release(tn_cuda_strided *s);
