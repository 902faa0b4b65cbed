/* backends/cpu/kernels/gemm/grid.c: divides a span of pixels into segments, one per row of the grid, for
 * operands that are gathered from images. */
#include "backends/cpu/kernels/gemm/gemm.h"

int64_t tn_gemm_runs(const tn_gemm_grid *g, int64_t p, int64_t n, tn_gemm_segment *runs) {
  int64_t row = p / g->width, column = p % g->width, image = row / g->height, count = 0;
  row %= g->height;
  for (int64_t at = 0; at < n; count++) {
    int64_t length = least(g->width - column, n - at), y = row * g->step_y, x = column * g->step_x;
    runs[count] = (tn_gemm_segment){image * g->image_step + y * g->plane_width + x, y, x, at, length};
    at += length;
    column = 0;
    if (++row < g->height) continue;
    row = 0;
    image++;
  }
  return count;
}
