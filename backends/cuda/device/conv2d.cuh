/* backends/cuda/device/conv2d.cuh: the arguments of the convolutions, for host and device.
 *
 * x is (batch, groups * c, ...), the weight (groups * o, c, ...), y (batch, groups * o, ...); any of the three is the result.
 * Offsets and strides count elements. */
#ifndef TN_CUDA_CONV2D_CUH
#define TN_CUDA_CONV2D_CUH

enum {
  CONV_SIZE = 64,  /* rows and columns of a tile */
  CONV_DEPTH = 16, /* its terms of the sums */
  CONV_THREADS = 256,
  CONV_PLACES = 1 << 27 /* positions along an axis, with padding and dilation, are below */
};

/* One spatial dimension. */
struct conv_axis {
  int x, y, kernel, stride, padding, dilation;
  int tap_step; /* stride / gcd(stride, dilation): the distance of taps that contribute to one position of x */
  int phases;   /* of positions of x modulo the stride, for the gradient; else 1 */
};

/* Of a tensor with four dimensions: batch or output channels, channels, height, width. */
struct conv_strides {
  long long outer, channel, row, column;
};

struct conv_args {
  const void *x, *y, *weight, *bias; /* the operands; bias may be NULL */
  void *to;
  struct conv_strides x_stride, y_stride, weight_stride;
  long long batch;
  int groups, c, o; /* c, o: channels of a group */
  int channels_inner; /* in the order of terms or columns, channels are inside taps */
  struct conv_axis axis[2];
  unsigned row_tiles, column_tiles;
  /* The gradient of the weight: part i of `splits` sums `split` terms; `parts` takes the sums of all where there are
   * several. */
  int splits, split;
  void *parts;
  long long count; /* elements of the result */
};

#endif
