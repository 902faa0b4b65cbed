/* plugins/transforms/pixels/resample.c: resizes in two passes, rows first. Each result is a mean of operands,
 * weighted by a triangle around its centre. Where the picture shrinks, half the base of the triangle is the
 * step between results, so that every operand has a weight. For u8 the weights have 22 bits and each pass
 * rounds, which gives the bits of Pillow's bilinear resize; f32 follows torch's antialiased interpolate.
 *
 * Sums of bytes are integers, so their order does not change the result. The first pass takes LANES rows at
 * once, transposed so that a column of them is contiguous, and both passes vectorize without a gather. */
#include <endian.h>
#include <math.h>
#include <string.h>

#include "plugins/transforms/transforms.h"

enum { WEIGHT_BITS = 22, HALF = 1 << (WEIGHT_BITS - 1), LANES = 32, BLOCK = 8 };

/* Weights along one axis: result i is the sum over k < count[i] of operand start[i] + k times
 * weight[i * taps + k]. */
typedef struct axis {
  int64_t taps, *start, *count;
  float *real;
  int32_t *fixed; /* the same memory as `real`; u8 uses `fixed` */
} axis;

/* The sizes that determine the weights. */
typedef struct sizes {
  int64_t in_height, in_width, height, width, is_u8;
} sizes;

/* A call, with its parts of the scratch memory. The sizes and weights stay valid for the next call with the
 * same sizes. */
typedef struct resample_job {
  picture whole;
  window from;
  sizes sizes;
  axis across, down;
  void *rows;                  /* planes * from.height rows of the result's width */
  uint8_t *transposed, *mixed; /* u8: LANES rows of the operand and of the result, transposed */
  uint32_t *sums;              /* u8: one row */
} resample_job;

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* The weights of one result, which sum to 1. */
static void fill_weights(axis *a, int64_t i, int64_t in, double scale, int is_u8) {
  double reach = scale > 1 ? scale : 1, centre = ((double)i + 0.5) * scale, sum = 0;
  int64_t start = clamp((int64_t)(centre - reach + 0.5), 0, in),
          stop = clamp((int64_t)(centre + reach + 0.5), 0, in);
  a->start[i] = start;
  a->count[i] = stop - start;
  for (int64_t x = start; x < stop; x++) sum += fmax(0, 1 - fabs(((double)x - centre + 0.5) / reach));
  for (int64_t x = start; x < stop; x++) {
    double weight = fmax(0, 1 - fabs(((double)x - centre + 0.5) / reach)) / sum;
    if (is_u8)
      a->fixed[i * a->taps + x - start] = (int32_t)(0.5 + weight * (1 << WEIGHT_BITS));
    else
      a->real[i * a->taps + x - start] = (float)weight;
  }
}

static void fill_axis(axis *a, int64_t in, int64_t out, int is_u8) {
  for (int64_t i = 0; i < out; i++) fill_weights(a, i, in, (double)in / (double)out, is_u8);
}

/* ---- memory ---- */

/* Reserves count * size bytes at *at, aligned for vectors. On overflow *at stays SIZE_MAX. */
static size_t resample_reserve(size_t *at, int64_t count, size_t size) {
  size_t bytes, start = *at;
  if (__builtin_mul_overflow((size_t)count, size, &bytes) || bytes > SIZE_MAX - 63 - start)
    *at = SIZE_MAX;
  else
    *at = start + (bytes + 63) / 64 * 64;
  return start;
}

typedef struct axis_offsets {
  int64_t taps;
  size_t start, count, weight;
} axis_offsets;

static axis_offsets reserve_axis(size_t *at, int64_t in, int64_t out) {
  double scale = (double)in / (double)out;
  axis_offsets p = {.taps = 2 * (int64_t)ceil(scale > 1 ? scale : 1) + 1};
  p.start = resample_reserve(at, out, sizeof(int64_t));
  p.count = resample_reserve(at, out, sizeof(int64_t));
  p.weight = resample_reserve(at, out * p.taps, sizeof(float));
  return p;
}

static axis axis_at(char *memory, const axis_offsets *p) {
  void *weight = memory + p->weight;
  return (axis){p->taps, (int64_t *)(memory + p->start), (int64_t *)(memory + p->count), weight, weight};
}

/* Assigns the parts of the scratch memory. Computes the weights unless the last call had the same sizes. */
static tn_status resample_prepare(tn_transform_call *c, resample_job *j) {
  const sizes *s = &j->sizes;
  size_t at = 0;
  int64_t u8 = s->is_u8;
  resample_reserve(&at, 1, sizeof(sizes));
  axis_offsets across = reserve_axis(&at, s->in_width, s->width),
               down = reserve_axis(&at, s->in_height, s->height);
  size_t rows =
      resample_reserve(&at, j->whole.planes * s->in_height, (size_t)s->width * (u8 ? 1 : sizeof(float)));
  size_t transposed = resample_reserve(&at, u8 * (s->in_width + BLOCK), LANES),
         mixed = resample_reserve(&at, u8 * (s->width + BLOCK), LANES);
  size_t sums = resample_reserve(&at, u8 * s->width, sizeof(uint32_t));
  char *memory = tn_transform_scratch(c, at);
  if (memory == NULL) return TN_ENOMEM;
  j->across = axis_at(memory, &across);
  j->down = axis_at(memory, &down);
  j->rows = memory + rows;
  j->transposed = (uint8_t *)memory + transposed;
  j->mixed = (uint8_t *)memory + mixed;
  j->sums = (uint32_t *)(memory + sums);
  if (memcmp(memory, s, sizeof(*s)) == 0) return TN_OK;
  fill_axis(&j->across, s->in_width, s->width, (int)u8);
  fill_axis(&j->down, s->in_height, s->height, (int)u8);
  memcpy(memory, s, sizeof(*s));
  return TN_OK;
}

/* ---- bytes ---- */

/* The row of the operand for a row of the first pass; `row` counts the rows of all planes. */
static const uint8_t *operand_row(const resample_job *j, const uint8_t *in, int64_t row) {
  int64_t plane = row / j->from.height, y = row % j->from.height;
  return in + (plane * j->whole.height + j->from.top + y) * j->whole.width + j->from.left;
}

/* A column of LANES rows; an element of the vector has 8 of them. */
typedef uint64_t eights __attribute__((vector_size(LANES)));
enum { EIGHTS = LANES / BLOCK };

/* Exchanges the bits `mask` of y and `mask << shift` of x. */
ALWAYS_INLINE void exchange(eights *x, eights *y, int shift, uint64_t mask) {
  eights t = ((*x >> shift) ^ *y) & mask;
  *y ^= t;
  *x ^= t << shift;
}

/* Transposes blocks of 8 x 8 bytes: exchanges halves, then quarters, then single bytes (Warren, Hacker's
 * Delight, 7-3). */
ALWAYS_INLINE void transpose_block(eights row[BLOCK]) {
  for (int i = 0; i < 4; i++) exchange(&row[i], &row[i + 4], 32, 0x00000000FFFFFFFF);
  for (int i = 0; i < 4; i++) exchange(&row[i + (i & 2)], &row[i + (i & 2) + 2], 16, 0x0000FFFF0000FFFF);
  for (int i = 0; i < 8; i += 2) exchange(&row[i], &row[i + 1], 8, 0x00FF00FF00FF00FF);
}

/* Transposes BLOCK columns, of which `bytes` exist. */
ALWAYS_INLINE void transpose_columns_in(const uint8_t *const from[LANES], int64_t x, size_t bytes,
                                        uint8_t *to) {
  eights block[BLOCK];
  for (int i = 0; i < BLOCK; i++) {
    uint64_t eight[EIGHTS] = {0};
    for (int g = 0; g < EIGHTS; g++) {
      memcpy(&eight[g], from[g * BLOCK + i] + x, bytes);
      eight[g] = le64toh(eight[g]);
    }
    memcpy(&block[i], eight, LANES);
  }
  transpose_block(block);
  for (int i = 0; i < BLOCK; i++) {
    uint64_t eight[EIGHTS];
    for (int g = 0; g < EIGHTS; g++) eight[g] = htole64(block[i][g]);
    memcpy(to + (x + i) * LANES, eight, LANES);
  }
}

/* Transposes LANES rows of `width` bytes to columns of LANES bytes, up to the next multiple of BLOCK. */
VECTORIZED static void transpose_in(const uint8_t *const from[LANES], int64_t width, uint8_t *to) {
  int64_t x = 0;
  for (; x + BLOCK <= width; x += BLOCK) transpose_columns_in(from, x, BLOCK, to);
  if (x < width) transpose_columns_in(from, x, (size_t)(width - x), to);
}

ALWAYS_INLINE void transpose_columns_out(const uint8_t *from, int n, int64_t width, int64_t x, size_t bytes,
                                         uint8_t *to) {
  eights block[BLOCK];
  for (int i = 0; i < BLOCK; i++) {
    uint64_t eight[EIGHTS];
    memcpy(eight, from + (x + i) * LANES, LANES);
    for (int g = 0; g < EIGHTS; g++) eight[g] = le64toh(eight[g]);
    memcpy(&block[i], eight, LANES);
  }
  transpose_block(block);
  for (int g = 0; g < EIGHTS; g++)
    for (int i = 0; i < BLOCK && g * BLOCK + i < n; i++) {
      uint64_t eight = htole64(block[i][g]);
      memcpy(to + (g * BLOCK + i) * width + x, &eight, bytes);
    }
}

/* Transposes the columns back to n contiguous rows of `width` bytes. */
VECTORIZED static void transpose_out(const uint8_t *from, int n, int64_t width, uint8_t *to) {
  int64_t x = 0;
  for (; x + BLOCK <= width; x += BLOCK) transpose_columns_out(from, n, width, x, BLOCK, to);
  if (x < width) transpose_columns_out(from, n, width, x, (size_t)(width - x), to);
}

/* The weighted mean of `count` rows of n bytes with stride `step`. Weights are not negative and sum to 1 up
 * to rounding, so a mean is in the range of a byte. */
ALWAYS_INLINE void mix(const uint8_t *restrict in, int64_t step, const int32_t *weight, int64_t count,
                       int64_t n, uint32_t *restrict sums, uint8_t *restrict out) {
  uint32_t first = (uint32_t)weight[0], second = count > 1 ? (uint32_t)weight[1] : 0;
  const uint8_t *next = count > 1 ? in + step : in;
  if (count <= 2) {
    for (int64_t i = 0; i < n; i++)
      out[i] = (uint8_t)((in[i] * first + next[i] * second + HALF) >> WEIGHT_BITS);
    return;
  }
  for (int64_t i = 0; i < n; i++) sums[i] = in[i] * first + next[i] * second + HALF;
  for (int64_t k = 2; k < count; k++) {
    uint32_t w = (uint32_t)weight[k];
    for (int64_t i = 0; i < n; i++) sums[i] += in[k * step + i] * w;
  }
  for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)(sums[i] >> WEIGHT_BITS);
}

VECTORIZED static void mix_transposed(const axis *a, int64_t width, const uint8_t *in, uint8_t *out) {
  uint32_t sums[LANES];
  for (int64_t x = 0; x < width; x++)
    mix(in + a->start[x] * LANES, LANES, a->fixed + x * a->taps, a->count[x], LANES, sums, out + x * LANES);
}

VECTORIZED static void mix_rows(const axis *a, int64_t height, int64_t width, const uint8_t *in,
                                uint32_t *sums, uint8_t *out) {
  for (int64_t y = 0; y < height; y++)
    mix(in + a->start[y] * width, width, a->fixed + y * a->taps, a->count[y], width, sums, out + y * width);
}

static void resample_u8(const resample_job *j, const uint8_t *in, uint8_t *out) {
  int64_t rows = j->whole.planes * j->from.height, width = j->sizes.width, height = j->sizes.height;
  uint8_t *to = j->rows;
  for (int64_t row = 0; row < rows; row += LANES) {
    const uint8_t *from[LANES];
    int n = rows - row < LANES ? (int)(rows - row) : LANES;
    for (int l = 0; l < LANES; l++) from[l] = operand_row(j, in, row + (l < n ? l : 0));
    transpose_in(from, j->from.width, j->transposed);
    mix_transposed(&j->across, width, j->transposed, j->mixed);
    transpose_out(j->mixed, n, width, to + row * width);
  }
  for (int64_t plane = 0; plane < j->whole.planes; plane++)
    mix_rows(&j->down, height, width, to + plane * j->from.height * width, j->sums,
             out + plane * height * width);
}

/* ---- floats ---- */

static void row_f32(const axis *a, const float *in, float *out, int64_t width) {
  for (int64_t x = 0; x < width; x++) {
    float sum = 0;
    const float *from = in + a->start[x];
    for (int64_t k = 0; k < a->count[x]; k++) sum += from[k] * a->real[x * a->taps + k];
    out[x] = sum;
  }
}

static void column_f32(const axis *a, int64_t y, const float *rows, int64_t width, float *out) {
  for (int64_t x = 0; x < width; x++) out[x] = 0;
  for (int64_t k = 0; k < a->count[y]; k++) {
    const float *from = rows + (a->start[y] + k) * width;
    float weight = a->real[y * a->taps + k];
    for (int64_t x = 0; x < width; x++) out[x] += from[x] * weight;
  }
}

static void resample_f32(const resample_job *j, const float *in, float *out) {
  int64_t width = j->sizes.width, height = j->sizes.height;
  float *rows = j->rows;
  in += j->from.top * j->whole.width + j->from.left;
  for (int64_t plane = 0; plane < j->whole.planes; plane++) {
    for (int64_t y = 0; y < j->from.height; y++)
      row_f32(&j->across, in + y * j->whole.width, rows + y * width, width);
    for (int64_t y = 0; y < height; y++) column_f32(&j->down, y, rows, width, out + y * width);
    in += j->whole.height * j->whole.width;
    out += height * width;
  }
}

tn_status resample(tn_transform_call *c, int32_t k, window from) {
  picture whole = picture_of(&c->in_type[k]), result = picture_of(&c->out_type[k]);
  if (from.height < 1 || from.width < 1)
    return tn_fail(c, TN_EINVAL, NULL, "a picture without pixels cannot be resized");
  if (whole.planes == 0 || result.height == 0 || result.width == 0) return TN_OK;
  int is_u8 = c->in_type[k].dtype == TN_U8;
  resample_job j = {
      .whole = whole, .from = from, .sizes = {from.height, from.width, result.height, result.width, is_u8}};
  tn_status status = resample_prepare(c, &j);
  if (status == TN_OK && is_u8) resample_u8(&j, c->in[k], c->out[k]);
  if (status == TN_OK && !is_u8) resample_f32(&j, c->in[k], c->out[k]);
  return status;
}

tn_status resample_check(tn_env *env, int32_t n, const tn_type *types) {
  for (int32_t k = 0; k < n; k++)
    if (field_kind(k, &types[k]) == FIELD_PICTURE && types[k].dtype != TN_U8 && types[k].dtype != TN_F32)
      return tn_fail(env, TN_EINVAL, NULL, "a field is %s; only u8 and f32 can be resized",
                     tn_dtype_name(types[k].dtype));
  return TN_OK;
}
