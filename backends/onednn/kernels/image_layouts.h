/* backends/onednn/kernels/image_layouts.h: the layouts of images: row-major; with channels in blocks as wide
 * as a vector, which oneDNN's convolutions prefer; and with channels as the innermost dimension, for any
 * number of them. */
#pragma once

#include <stdbool.h>

#include "backends/onednn/onednn.h"

/* order 0 1 .. rank-1 with dimension 1 in blocks of `size`: nChw16c */
static inline tn_layout tn_channels_blocked(int32_t rank, int32_t size) {
  tn_layout layout = tn_layout_row_major(rank);
  layout.n_blocks = 1;
  layout.block[0] = (tn_block){1, (uint16_t)size};
  return layout;
}

/* order 0 2 3 .. rank-1 1: NHWC */
static inline tn_layout tn_channels_last(int32_t rank) {
  tn_layout layout = tn_layout_row_major(rank);
  for (int32_t i = 1; i + 1 < rank; i++) layout.order[i] = (uint8_t)(i + 1);
  if (rank > 1) layout.order[rank - 1] = 1;
  return layout;
}

/* The ways in which kernels take images; ids of variants, too. */
enum { TN_IMAGE_PLAIN = 0, TN_IMAGE_BLOCKS = 1, TN_IMAGE_LAST = 2, TN_IMAGE_WAYS = 3 };

static inline const char *tn_image_way_name(int32_t way) {
  static const char *const names[] = {"row-major", "blocks", "channels last"};
  return names[way];
}

static inline tn_layout tn_image_layout(int32_t way, int32_t rank, int32_t block) {
  return way == TN_IMAGE_BLOCKS ? tn_channels_blocked(rank, block)
         : way == TN_IMAGE_LAST ? tn_channels_last(rank)
                                : tn_layout_row_major(rank);
}

/* The dimension of memory, from the outermost on, along which a dimension of images extends; that of channels
 * in blocks counts blocks. */
static inline int32_t tn_image_dimension(int32_t way, int32_t rank, int32_t dim) {
  if (way != TN_IMAGE_LAST || dim == 0) return dim;
  return dim == 1 ? rank - 1 : dim - 1;
}

/* The dimensions of memory as a row-major type. In blocks it has one more. */
static inline tn_type tn_image_memory(int32_t way, const tn_type *type, int32_t block) {
  tn_type memory = *type;
  for (int32_t i = 0; i < type->rank; i++)
    memory.dims[tn_image_dimension(way, type->rank, i)] = type->dims[i];
  if (way != TN_IMAGE_BLOCKS) return memory;
  memory.dims[1] /= block;
  memory.dims[memory.rank++] = block;
  return memory;
}

/* Whether images of this type can come in this way. */
static inline bool tn_image_can(int32_t way, const tn_type *type, int32_t block) {
  if (way == TN_IMAGE_PLAIN) return true;
  return type->rank == 4 && (way == TN_IMAGE_LAST || type->dims[1] % block == 0);
}
