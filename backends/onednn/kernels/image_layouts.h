/* backends/onednn/kernels/image_layouts.h: the layouts of images: row-major, or with channels in blocks as
 * wide as a vector, which oneDNN's convolutions prefer. */
#pragma once

#include "backends/onednn/onednn.h"

/* order 0 1 .. rank-1 with dimension 1 in blocks of `size`: nChw16c */
static inline tn_layout tn_channels_blocked(int32_t rank, int32_t size) {
  tn_layout layout = tn_layout_row_major(rank);
  layout.n_blocks = 1;
  layout.block[0] = (tn_block){1, (uint16_t)size};
  return layout;
}
