/* plugins/transforms/resample.c: resizing in two passes, rows first. Each result is a weighted mean of the
 * operands under a triangle around its centre, which is as wide as the step between results where the
 * picture shrinks, so that nothing is skipped. For u8 the weights have 22 bits and each pass rounds,
 * which gives the bits of Pillow's bilinear resize; f32 does as torch's antialiased interpolate. */
#include <math.h>
#include <string.h>

#include "transforms.h"

enum { WEIGHT_BITS = 22 };

/* Weights along one axis: result i is the sum over k < count[i] of operand start[i] + k times
 * weight[i * taps + k]. */
typedef struct axis {
  int64_t taps, *start, *count;
  float *real;
  int32_t *fixed;
} axis;

static void free_axis(const void *handle, axis *a) {
  tn_delete(handle, a->start);
  tn_delete(handle, a->real);
  tn_delete(handle, a->fixed);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* The triangle's weights for one result, summing to 1. */
static void fill_result(axis *a, int64_t i, int64_t in, double scale, int is_u8) {
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

static tn_status make_axis(const void *handle, int64_t in, int64_t out, int is_u8, axis *a) {
  double scale = (double)in / (double)out;
  *a = (axis){.taps = 2 * (int64_t)ceil(scale > 1 ? scale : 1) + 1};
  size_t weights = (size_t)(out * a->taps);
  a->start = tn_new(handle, (size_t)out * 2 * sizeof(int64_t));
  if (is_u8)
    a->fixed = tn_new(handle, weights * sizeof(int32_t));
  else
    a->real = tn_new(handle, weights * sizeof(float));
  if (a->start == NULL || (a->fixed == NULL && a->real == NULL)) return TN_ENOMEM;
  a->count = a->start + out;
  for (int64_t i = 0; i < out; i++) fill_result(a, i, in, scale, is_u8);
  return TN_OK;
}

static uint8_t round_u8(int32_t sum) { return (uint8_t)clamp(sum >> WEIGHT_BITS, 0, 255); }

static void row_u8(const axis *a, const uint8_t *in, uint8_t *out, int64_t width) {
  for (int64_t x = 0; x < width; x++) {
    int32_t sum = 1 << (WEIGHT_BITS - 1);
    const uint8_t *from = in + a->start[x];
    for (int64_t k = 0; k < a->count[x]; k++) sum += from[k] * a->fixed[x * a->taps + k];
    out[x] = round_u8(sum);
  }
}

static void row_f32(const axis *a, const float *in, float *out, int64_t width) {
  for (int64_t x = 0; x < width; x++) {
    float sum = 0;
    const float *from = in + a->start[x];
    for (int64_t k = 0; k < a->count[x]; k++) sum += from[k] * a->real[x * a->taps + k];
    out[x] = sum;
  }
}

/* Result row y out of rows of `width`; whole rows at a time, which vectorizes. */
static void column_u8(const axis *a, int64_t y, const uint8_t *rows, int64_t width, int32_t *sums,
                      uint8_t *out) {
  for (int64_t x = 0; x < width; x++) sums[x] = 1 << (WEIGHT_BITS - 1);
  for (int64_t k = 0; k < a->count[y]; k++) {
    const uint8_t *from = rows + (a->start[y] + k) * width;
    int32_t weight = a->fixed[y * a->taps + k];
    for (int64_t x = 0; x < width; x++) sums[x] += from[x] * weight;
  }
  for (int64_t x = 0; x < width; x++) out[x] = round_u8(sums[x]);
}

static void column_f32(const axis *a, int64_t y, const float *rows, int64_t width, float *out) {
  for (int64_t x = 0; x < width; x++) out[x] = 0;
  for (int64_t k = 0; k < a->count[y]; k++) {
    const float *from = rows + (a->start[y] + k) * width;
    float weight = a->real[y * a->taps + k];
    for (int64_t x = 0; x < width; x++) out[x] += from[x] * weight;
  }
}

/* What both passes work with. `scratch` holds from.height rows of `width`, then a row of sums. */
typedef struct job {
  const tn_type *type;
  window from;
  int64_t height, width;
  axis across, down;
  char *scratch;
} job;

static void resample_plane(const job *j, const char *in, int64_t in_width, char *out) {
  int is_u8 = j->type->dtype == TN_U8;
  size_t item = is_u8 ? 1 : sizeof(float), out_row = (size_t)j->width * item;
  in += (size_t)(j->from.top * in_width + j->from.left) * item;
  for (int64_t y = 0; y < j->from.height; y++) {
    const void *from = in + (size_t)(y * in_width) * item;
    void *to = j->scratch + (size_t)y * out_row;
    if (is_u8)
      row_u8(&j->across, from, to, j->width);
    else
      row_f32(&j->across, from, to, j->width);
  }
  int32_t *sums = (int32_t *)(j->scratch + ((size_t)j->from.height * out_row + 7) / 8 * 8);
  for (int64_t y = 0; y < j->height; y++) {
    void *to = out + (size_t)y * out_row;
    if (is_u8)
      column_u8(&j->down, y, (const uint8_t *)j->scratch, j->width, sums, to);
    else
      column_f32(&j->down, y, (const float *)j->scratch, j->width, to);
  }
}

static tn_status prepare(const void *handle, job *j) {
  int is_u8 = j->type->dtype == TN_U8;
  tn_status status = make_axis(handle, j->from.width, j->width, is_u8, &j->across);
  if (status == TN_OK) status = make_axis(handle, j->from.height, j->height, is_u8, &j->down);
  if (status != TN_OK) return status;
  size_t rows = (size_t)(j->from.height * j->width) * tn_dtype_size(j->type->dtype);
  j->scratch = tn_new(handle, rows + 8 + (size_t)j->width * sizeof(int32_t));
  return j->scratch != NULL ? TN_OK : TN_ENOMEM;
}

tn_status resample(const void *handle, const void *in, const tn_type *type, window from, void *out,
                   int64_t height, int64_t width) {
  picture p = picture_of(type);
  job j = {.type = type, .from = from, .height = height, .width = width};
  if (from.height < 1 || from.width < 1)
    return tn_fail(handle, TN_EINVAL, NULL, "a picture without pixels cannot be resized");
  size_t item = tn_dtype_size(type->dtype);
  tn_status status = prepare(handle, &j);
  for (int64_t plane = 0; status == TN_OK && plane < p.planes; plane++)
    resample_plane(&j, (const char *)in + (size_t)(plane * p.height * p.width) * item, p.width,
                   (char *)out + (size_t)(plane * height * width) * item);
  free_axis(handle, &j.across);
  free_axis(handle, &j.down);
  tn_delete(handle, j.scratch);
  return status;
}

tn_status resample_check(tn_env *env, int32_t n, const tn_type *types) {
  for (int32_t k = 0; k < n; k++)
    if (types[k].dtype != TN_U8 && types[k].dtype != TN_F32)
      return tn_fail(env, TN_EINVAL, NULL, "a field is %s; only u8 and f32 can be resized",
                     tn_dtype_name(types[k].dtype));
  return TN_OK;
}
