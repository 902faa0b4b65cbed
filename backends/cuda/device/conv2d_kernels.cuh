/* backends/cuda/device/conv2d_kernels.cuh: convolutions as products of matrices whose second operand is gathered from
 * images while it goes into shared memory (implicit im2col), in tiles of 64 x 64 results and 16 terms.
 *
 *     forward          y[o, pixel]      = sum over (channel, tap) of weight[o, (channel, tap)] x[(channel, tap), pixel]
 *     gradient of x    dx[c, pixel]     = sum over (channel, tap) of weight[(channel, tap), c] dy[(channel, tap), pixel]
 *     of the weight    dw[o, (c, tap)]  = sum over pixels of y of dy[o, pixel] x[(c, tap), pixel]
 *
 * The gradient of x divides the pixels of dx into phases by their position modulo the stride: the same taps contribute to
 * all pixels of a phase, from adjacent elements of dy, so no product has the zeros between the elements of dy. */
#ifndef TN_CUDA_CONV2D_KERNELS_CUH
#define TN_CUDA_CONV2D_KERNELS_CUH

#include "backends/cuda/device/conv2d.cuh"
#include "backends/cuda/device/tile.cuh"

enum { CONV_FORWARD = 0, CONV_INPUT = 1, CONV_WEIGHT = 2 };
enum { CONV_NOWHERE = -4 * CONV_PLACES }; /* a row outside of every image, with any place of the filter added */

/* A term of the sums: its offsets in both operands, and its shift in the image. */
struct conv_term {
  i64 a, b;
  int row, column;
};
/* A column of the product: its offset and position in the image, and its offset in the result. */
struct conv_column {
  i64 b, to;
  int row, column;
};

/* Along an axis: position i of a phase is `first + i step` in the result; its first tap reads `source_first + i source_step`,
 * and each further one `tap_source` behind. */
struct conv_phase {
  int count, first, step, source_first, source_step, taps, tap_first, tap_step, tap_source;
};

static __device__ inline conv_phase forward_phase(const conv_axis &a) {
  conv_phase p = {a.y, 0, 1, -a.padding, a.stride, a.kernel, 0, 1, a.dilation};
  return p;
}

static __device__ inline conv_phase input_phase(const conv_axis &a, int first) {
  int tap = 0;
  while (tap < a.kernel && (first + a.padding - tap * a.dilation) % a.stride != 0) tap++;
  conv_phase p = {(a.x - first - 1) / a.stride + 1,
                  first,
                  a.stride,
                  (first + a.padding - tap * a.dilation) / a.stride,
                  1,
                  tap < a.kernel ? (a.kernel - 1 - tap) / a.tap_step + 1 : 0,
                  tap,
                  a.tap_step,
                  -(a.tap_step * a.dilation / a.stride)};
  return p;
}

/* The part of the result that a block computes. */
struct conv_block {
  int group, rows, row; /* rows of the product; the first of the tile */
  i64 columns, column;
  int begin, end; /* terms */
  int split;
  conv_phase phase[2];
};

static __device__ inline u32 take(u32 *n, u32 count) {
  u32 rest = *n % count;
  *n /= count;
  return rest;
}

template <int MODE> static __device__ inline conv_block conv_block_of(const conv_args &a, u32 n, int height, int width) {
  conv_block b;
  b.row = (int)take(&n, a.row_tiles) * height;
  b.column = (i64)take(&n, a.column_tiles) * width;
  b.group = (int)take(&n, (u32)a.groups);
  b.rows = MODE == CONV_INPUT ? a.c : a.o;
  b.begin = b.split = 0;
  if (MODE == CONV_WEIGHT) {
    b.columns = (i64)a.c * a.axis[0].kernel * a.axis[1].kernel;
    b.split = (int)n;
    b.begin = b.split * a.split;
    b.end = (int)(a.batch * a.axis[0].y * a.axis[1].y);
    if (b.end - b.begin > a.split) b.end = b.begin + a.split;
    return b;
  }
  if (MODE == CONV_FORWARD) {
    b.phase[0] = forward_phase(a.axis[0]);
    b.phase[1] = forward_phase(a.axis[1]);
  } else {
    b.phase[1] = input_phase(a.axis[1], (int)take(&n, (u32)a.axis[1].phases));
    b.phase[0] = input_phase(a.axis[0], (int)n);
  }
  b.columns = a.batch * b.phase[0].count * b.phase[1].count;
  b.end = (MODE == CONV_INPUT ? a.o : a.c) * b.phase[0].taps * b.phase[1].taps;
  return b;
}

/* ---- terms and columns ---- */

/* (channel, tap) of number `n` of `channels * taps`. */
struct conv_tap {
  int channel, row, column;
};
static __device__ inline conv_tap tap_of(int n, int channels, int rows, int columns, int channels_inner) {
  conv_tap t;
  int tap, taps = rows * columns;
  t.channel = channels_inner ? n % channels : n / taps;
  tap = channels_inner ? n / channels : n % taps;
  t.row = tap / columns;
  t.column = tap % columns;
  return t;
}

/* Pixel `n` of images of rows x columns. */
struct conv_pixel {
  i64 image;
  int row, column;
};
static __device__ inline conv_pixel pixel_of(i64 n, int rows, int columns) {
  conv_pixel p;
  if (n <= 0x7fffffff) { /* 64 bits take five times as long */
    u32 line = (u32)n / (u32)columns;
    p.column = (int)((u32)n % (u32)columns);
    p.row = (int)(line % (u32)rows);
    p.image = line / (u32)rows;
    return p;
  }
  p.column = (int)(n % columns);
  n /= columns;
  p.row = (int)(n % rows);
  p.image = n / rows;
  return p;
}

static __device__ inline conv_term no_term() {
  conv_term t = {0, 0, CONV_NOWHERE, 0};
  return t;
}

template <int MODE> static __device__ inline conv_term term_of(const conv_args &a, const conv_block &b, int n) {
  if (n >= b.end) return no_term();
  conv_term t;
  if (MODE == CONV_WEIGHT) {
    const conv_pixel p = pixel_of(n, a.axis[0].y, a.axis[1].y);
    t.row = p.row * a.axis[0].stride - a.axis[0].padding;
    t.column = p.column * a.axis[1].stride - a.axis[1].padding;
    t.a = p.image * a.y_stride.outer + p.row * a.y_stride.row + p.column * a.y_stride.column;
    t.b = p.image * a.x_stride.outer + t.row * a.x_stride.row + t.column * a.x_stride.column;
    return t;
  }
  const conv_strides &source = MODE == CONV_INPUT ? a.y_stride : a.x_stride;
  const conv_tap p = tap_of(n, MODE == CONV_INPUT ? a.o : a.c, b.phase[0].taps, b.phase[1].taps, a.channels_inner);
  t.row = p.row * b.phase[0].tap_source;
  t.column = p.column * b.phase[1].tap_source;
  t.a = (b.phase[0].tap_first + p.row * b.phase[0].tap_step) * a.weight_stride.row +
        (b.phase[1].tap_first + p.column * b.phase[1].tap_step) * a.weight_stride.column +
        p.channel * (MODE == CONV_INPUT ? a.weight_stride.outer : a.weight_stride.channel);
  t.b = p.channel * source.channel + t.row * source.row + t.column * source.column;
  return t;
}

template <int MODE> static __device__ inline conv_column column_of(const conv_args &a, const conv_block &b, i64 n) {
  conv_column c = {0, 0, CONV_NOWHERE, 0};
  if (n >= b.columns) return c;
  if (MODE == CONV_WEIGHT) {
    const conv_tap p = tap_of((int)n, a.c, a.axis[0].kernel, a.axis[1].kernel, a.channels_inner);
    c.row = p.row * a.axis[0].dilation;
    c.column = p.column * a.axis[1].dilation;
    c.b = p.channel * a.x_stride.channel + c.row * a.x_stride.row + c.column * a.x_stride.column;
    c.to = p.channel * a.weight_stride.channel + p.row * a.weight_stride.row + p.column * a.weight_stride.column;
    return c;
  }
  const conv_strides &source = MODE == CONV_INPUT ? a.y_stride : a.x_stride;
  const conv_strides &result = MODE == CONV_INPUT ? a.x_stride : a.y_stride;
  const conv_phase &y = b.phase[0], &x = b.phase[1];
  const conv_pixel p = pixel_of(n, y.count, x.count);
  c.row = p.row * y.source_step + y.source_first;
  c.column = p.column * x.source_step + x.source_first;
  c.b = p.image * source.outer + c.row * source.row + c.column * source.column;
  c.to = p.image * result.outer + (y.first + p.row * y.step) * result.row + (x.first + p.column * x.step) * result.column;
  return c;
}

/* ---- operands ---- */

/* Row r of the first operand lies at `a + r a_row`; the second is an image of height x width at `b`. */
template <typename T> struct conv_operands {
  const T *a, *b;
  i64 a_row;
  u32 height, width;
};

template <typename T, int MODE>
static __device__ inline conv_operands<T> operands_of(const conv_args &a, const conv_block &b) {
  conv_operands<T> p;
  const conv_strides &source = MODE == CONV_INPUT ? a.y_stride : a.x_stride;
  i64 channels = MODE == CONV_INPUT ? a.o : a.c;
  p.b = (const T *)(MODE == CONV_INPUT ? a.y : a.x) + b.group * channels * source.channel;
  p.height = (u32)(MODE == CONV_INPUT ? a.axis[0].y : a.axis[0].x);
  p.width = (u32)(MODE == CONV_INPUT ? a.axis[1].y : a.axis[1].x);
  if (MODE == CONV_WEIGHT) {
    p.a = (const T *)a.y + (i64)b.group * a.o * a.y_stride.channel;
    p.a_row = a.y_stride.channel;
  } else {
    p.a = (const T *)a.weight + (i64)b.group * a.o * a.weight_stride.outer;
    p.a_row = MODE == CONV_INPUT ? a.weight_stride.channel : a.weight_stride.outer;
  }
  return p;
}

template <typename T, typename W>
static __device__ inline W read_a(const conv_operands<T> &p, const conv_term &t, int row, int rows) {
  return t.row != CONV_NOWHERE && row < rows ? (W)widen(p.a[t.a + row * p.a_row]) : (W)0;
}
template <typename T, typename W>
static __device__ inline W read_b(const conv_operands<T> &p, const conv_term &t, const conv_column &c) {
  bool inside = (u32)(t.row + c.row) < p.height && (u32)(t.column + c.column) < p.width;
  return inside ? (W)widen(p.b[t.b + c.b]) : (W)0;
}

/* ---- tiles ---- */

template <typename W> struct conv_tile {
  __align__(16) W a[CONV_DEPTH][CONV_SIZE + 4];
  __align__(16) W b[CONV_DEPTH][CONV_SIZE + 4];
  conv_column columns[CONV_SIZE];
  conv_term terms[2][CONV_DEPTH];
  conv_block block; /* here it takes no registers */
};

/* The four numbers of both operands that a thread carries from one tile to the next. Adjacent threads read adjacent rows of a
 * (A_ROWS) or terms; terms (B_TERMS) or adjacent columns of b, as they are adjacent in memory. */
template <typename T, typename W, bool A_ROWS, bool B_TERMS>
static __device__ inline void conv_read(const conv_operands<T> &p, const conv_tile<W> &s, const conv_term *terms,
                                        const conv_block &b, W (&a_next)[4], W (&b_next)[4]) {
  const int size = CONV_SIZE, depth = CONV_DEPTH, t = (int)threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int n = i * CONV_THREADS + t;
    int row = A_ROWS ? n % size : n / depth, term = A_ROWS ? n / size : n % depth;
    a_next[i] = read_a<T, W>(p, terms[term], b.row + row, b.rows);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int n = i * CONV_THREADS + t;
    int column = B_TERMS ? n / depth : n % size, term = B_TERMS ? n % depth : n / size;
    b_next[i] = read_b<T, W>(p, terms[term], s.columns[column]);
  }
}

template <typename W, bool A_ROWS, bool B_TERMS>
static __device__ inline void conv_write(conv_tile<W> &s, const W (&a_next)[4], const W (&b_next)[4]) {
  const int size = CONV_SIZE, depth = CONV_DEPTH, t = (int)threadIdx.x;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int n = i * CONV_THREADS + t;
    s.a[A_ROWS ? n / size : n % depth][A_ROWS ? n % size : n / depth] = a_next[i];
    s.b[B_TERMS ? n % depth : n / size][B_TERMS ? n / depth : n % size] = b_next[i];
  }
}

template <typename T, typename W, int MODE>
static __device__ inline void conv_store(const conv_args &a, const conv_block &b, const conv_column *columns,
                                         const W (&sums)[4][4]) {
  const conv_strides &result = MODE == CONV_INPUT ? a.x_stride : a.y_stride;
  const i64 row_stride = MODE == CONV_WEIGHT ? a.weight_stride.outer : result.channel;
  const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int row = b.row + ty * 4 + i;
    if (row >= b.rows) continue;
    i64 channel = (i64)b.group * b.rows + row;
    W bias = MODE == CONV_FORWARD && a.bias != 0 ? (W)widen(((const T *)a.bias)[channel]) : (W)0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int column = tx * 4 + j;
      if (b.column + column >= b.columns) continue;
      i64 to = channel * row_stride + columns[column].to;
      if (MODE == CONV_WEIGHT && a.splits > 1)
        ((W *)a.parts)[b.split * a.count + to] = sums[i][j];
      else
        narrow((T *)a.to + to, sums[i][j] + bias);
    }
  }
}

/* A tile of results. While a block computes with some terms, it reads the next. */
template <typename T, typename W, int MODE, bool A_ROWS, bool B_TERMS>
static __device__ inline void conv_product(const conv_args &a) {
  __shared__ conv_tile<W> s;
  const int t = (int)threadIdx.x, ty = t / 16, tx = t % 16;
  const conv_block &b = s.block;
  W sums[4][4] = {}, a_next[4], b_next[4];
  if (t == 0) s.block = conv_block_of<MODE>(a, blockIdx.x, 64, 64);
  __syncthreads();
  if (b.column >= b.columns) return;
  const conv_operands<T> p = operands_of<T, MODE>(a, b);
  const int end = b.end;
  if (t < 64) s.columns[t] = column_of<MODE>(a, b, b.column + t);
  if (t < 2 * CONV_DEPTH) s.terms[t / CONV_DEPTH][t % CONV_DEPTH] = term_of<MODE>(a, b, b.begin + t);
  __syncthreads();
  conv_read<T, W, A_ROWS, B_TERMS>(p, s, s.terms[0], b, a_next, b_next);
  for (int k = b.begin, next = 1; k < end; k += CONV_DEPTH, next ^= 1) {
    conv_write<W, A_ROWS, B_TERMS>(s, a_next, b_next);
    __syncthreads();
    if (k + CONV_DEPTH < end) conv_read<T, W, A_ROWS, B_TERMS>(p, s, s.terms[next], b, a_next, b_next);
#pragma unroll
    for (int i = 0; i < CONV_DEPTH; i++) add_term<W, 4, 1, 4, 1>(s.a[i], s.b[i], ty, tx, sums);
    if (t < CONV_DEPTH) s.terms[next ^ 1][t] = term_of<MODE>(a, b, k + 2 * CONV_DEPTH + t);
    __syncthreads();
  }
  conv_store<T, W, MODE>(a, b, s.columns, sums);
}

/* ---- few channels in a group: an element of the result for each thread ---- */

template <typename T, typename W, int MODE>
static __device__ inline W direct_sum(const conv_args &a, const conv_block &b, i64 column) {
  const conv_operands<T> p = operands_of<T, MODE>(a, b);
  const conv_column c = column_of<MODE>(a, b, column);
  W sum = 0;
  for (int k = 0; k < b.end; k++) {
    const conv_term t = term_of<MODE>(a, b, k);
    sum = multiply_add(read_a<T, W>(p, t, b.row, b.rows), read_b<T, W>(p, t, c), sum);
  }
  return sum;
}

/* Blocks are numbered as those of tiles of 1 x CONV_THREADS results. */
template <typename T, typename W, int MODE> static __device__ inline void conv_direct(const conv_args &a) {
  const conv_block b = conv_block_of<MODE>(a, blockIdx.x, 1, CONV_THREADS);
  const conv_strides &result = MODE == CONV_INPUT ? a.x_stride : a.y_stride;
  i64 column = b.column + threadIdx.x, channel = (i64)b.group * b.rows + b.row;
  if (column >= b.columns) return;
  W sum = direct_sum<T, W, MODE>(a, b, column);
  if (MODE == CONV_FORWARD && a.bias != 0) sum += widen(((const T *)a.bias)[channel]);
  narrow((T *)a.to + channel * result.channel + column_of<MODE>(a, b, column).to, sum);
}

/* A block sums an element of the gradient of the weight; blocks are numbered as those of tiles of 1 x 1 results. */
template <typename T, typename W> static __device__ inline void conv_direct_weight(const conv_args &a) {
  __shared__ W sums[CONV_THREADS];
  const conv_block b = conv_block_of<CONV_WEIGHT>(a, blockIdx.x, 1, 1);
  const conv_operands<T> p = operands_of<T, CONV_WEIGHT>(a, b);
  const conv_column c = column_of<CONV_WEIGHT>(a, b, b.column);
  W sum = 0;
  for (int k = b.begin + (int)threadIdx.x; k < b.end; k += CONV_THREADS) {
    const conv_term t = term_of<CONV_WEIGHT>(a, b, k);
    sum = multiply_add(read_a<T, W>(p, t, b.row, b.rows), read_b<T, W>(p, t, c), sum);
  }
  sums[threadIdx.x] = sum;
  for (int half = CONV_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x > 0) return;
  i64 to = ((i64)b.group * b.rows + b.row) * a.weight_stride.outer + c.to;
  if (a.splits > 1)
    ((W *)a.parts)[b.split * a.count + to] = sums[0];
  else
    narrow((T *)a.to + to, sums[0]);
}

/* Adds the parts of the gradient of the weight in their order. */
template <typename T, typename W> static __device__ inline void add_parts(const conv_args &a) {
  for (i64 i = grid_first(); i < a.count; i += grid_step()) {
    W sum = ((const W *)a.parts)[i];
    for (int part = 1; part < a.splits; part++) sum += ((const W *)a.parts)[part * a.count + i];
    narrow((T *)a.to + i, sum);
  }
}

/* CONV_BLOCKS fit into a multiprocessor at once. */
#define CONV_KERNEL(name, call)                                                                                        \
  extern "C" __global__ void __launch_bounds__(CONV_THREADS, CONV_BLOCKS) conv_##name(const conv_args a) { call; }
#define CONV_KERNELS(T, W)                                                                                    \
  CONV_KERNEL(forward_planes, (conv_product<T, W, CONV_FORWARD, false, false>(a)))                           \
  CONV_KERNEL(forward_channels, (conv_product<T, W, CONV_FORWARD, false, true>(a)))                          \
  CONV_KERNEL(input_planes, (conv_product<T, W, CONV_INPUT, true, false>(a)))                                \
  CONV_KERNEL(input_channels, (conv_product<T, W, CONV_INPUT, true, true>(a)))                               \
  CONV_KERNEL(weight_planes, (conv_product<T, W, CONV_WEIGHT, false, true>(a)))                              \
  CONV_KERNEL(weight_channels, (conv_product<T, W, CONV_WEIGHT, true, false>(a)))  \
  CONV_KERNEL(forward_direct, (conv_direct<T, W, CONV_FORWARD>(a)))                                                    \
  CONV_KERNEL(input_direct, (conv_direct<T, W, CONV_INPUT>(a)))                                                        \
  CONV_KERNEL(weight_direct, (conv_direct_weight<T, W>(a)))                                                            \
  CONV_KERNEL(combine, (add_parts<T, W>(a)))

#endif
