/* backends/cuda/device/movement.cuh: the arguments of movement.cu and crop.cu, for host and device. Numbers count units:
 * elements, or several adjacent ones that are moved at once. */
#ifndef TN_CUDA_MOVEMENT_CUH
#define TN_CUDA_MOVEMENT_CUH

#include "backends/cuda/device/divide.cuh"

enum {
  MOVEMENT_RANK = 8,
  MOVEMENT_PARTS = 48,   /* of a launch: its arguments take at most 4 KiB */
  MOVEMENT_CHUNK = 8192, /* elements of a block of `parts` */
  MOVEMENT_TILE = 32,
  MOVEMENT_TILE_ROWS = 8 /* threads of a block of `tiles`: MOVEMENT_TILE x MOVEMENT_TILE_ROWS */
};

/* Unit i of a dense result, whose dims are outermost first, comes from unit first + sum(coordinate * stride). */
struct gather_args {
  void *to;
  const void *from;
  long long count, first;
  int rank, pad;
  struct divider dims[MOVEMENT_RANK];
  long long stride[MOVEMENT_RANK];
};

/* A batch of matrices, transposed. Element (row, column) has its place at row + column * from_column in the operand, and at
 * row * to_row + column in the result. Dimensions of the batch are outermost first. */
struct tiles_args {
  void *to;
  const void *from;
  long long to_first, from_first, rows, columns, to_row, from_column;
  struct divider row_tiles, column_tiles;
  int rank, pad;
  struct divider dims[MOVEMENT_RANK];
  long long to_stride[MOVEMENT_RANK], from_stride[MOVEMENT_RANK];
};

/* A dense result. A unit with coordinate c of dimension d has coordinate (c - low) / step in the operand, where that is a
 * whole number below `size`; other units are zero. */
struct pad_args {
  void *to;
  const void *from;
  long long count;
  int rank, pad;
  struct divider dims[MOVEMENT_RANK], step[MOVEMENT_RANK];
  long long low[MOVEMENT_RANK], size[MOVEMENT_RANK], stride[MOVEMENT_RANK];
};

/* Rows of elements that are dense in the operand and `to_row` apart in the result. */
struct movement_part {
  const void *from; /* NULL: zeros */
  long long to_first, to_row, count;
  struct divider run; /* elements of a row; 0: there is one row */
  unsigned first_block;
  int vector; /* 16 bytes at a time */
};

struct parts_args {
  void *to;
  int n, pad;
  struct movement_part part[MOVEMENT_PARTS];
};

/* Pictures of in[0] x in[1] elements; `planes` of a sample. */
struct crop_args {
  void *to;
  const void *from, *start, *mirror; /* start, mirror: pairs of each sample; NULL: 0 */
  long long count, in[2];
  struct divider planes, out[2];
  int start_is_long, mirror_is_long;
};

#endif
