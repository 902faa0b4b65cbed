/* plugins/transforms/photometric/gaussian_blur.c: blurs a picture with a Gauss kernel of random width,
 * mirrored at the border without repeating it, as torchvision's GaussianBlur. Two passes in f32, rows first;
 * torchvision has one pass with the products of the weights, so that results differ by the rounding of sums.
 */
#include <math.h>
#include <string.h>

#include "plugins/transforms/transforms.h"

typedef struct blur_options {
  tn_ints kernel_size;
  tn_floats sigma;
} blur_options;

static const tn_option options[] = {
    TN_OPT(blur_options, kernel_size, TN_OPT_INTS, "3", "[1, 65535]",
           "odd size of the kernel; two numbers: width and height"),
    TN_OPT(blur_options, sigma, TN_OPT_FLOATS, "[0.1, 2]", "[1e-3, 1e6]",
           "standard deviation in pixels; two numbers: at random from the first to the second"),
    TN_OPT_END};

static int64_t blur_kernel_size(const blur_options *o, int down) {
  return o->kernel_size.v[down ? o->kernel_size.n - 1 : 0];
}

static tn_status blur_check_options(tn_env *env, const blur_options *o) {
  const tn_ints *size = &o->kernel_size;
  int odd = size->n == 1 || size->n == 2;
  for (int64_t i = 0; odd && i < size->n; i++) odd = size->v[i] % 2 == 1;
  if (!odd)
    return tn_fail(env, TN_EINVAL, "kernel_size",
                   "kernel_size must be one odd number, or two: width and height");
  if (o->sigma.n == 1) return TN_OK;
  return range_check(env, "sigma", &o->sigma);
}

/* The mirrored border must be inside the picture. */
static tn_status blur_check_room(tn_env *env, const blur_options *o, const tn_type *type) {
  int64_t wide = blur_kernel_size(o, 0) / 2 + 1, high = blur_kernel_size(o, 1) / 2 + 1;
  int64_t height = type->dims[type->rank - 2], width = type->dims[type->rank - 1];
  if ((height < 0 || height >= high) && (width < 0 || width >= wide)) return TN_OK;
  return tn_fail(env, TN_EINVAL, "kernel_size",
                 "a picture of %lld x %lld is too small for this kernel, which needs %lld x %lld",
                 (long long)height, (long long)width, (long long)high, (long long)wide);
}

static tn_status gaussian_blur_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                     tn_type *out) {
  tn_status status = blur_check_options(env, opts);
  if (status == TN_OK) status = picture_check(env, n, in, 0);
  if (status == TN_OK) status = picture_check_numbers(env, n, in, 0);
  for (int32_t k = 0; status == TN_OK && k < n; k++) {
    out[k] = in[k];
    if (field_kind(k, &in[k]) == FIELD_PICTURE) status = blur_check_room(env, opts, &in[k]);
  }
  return status;
}

/* A call, with its parts of the scratch memory. */
typedef struct blur_job {
  int64_t wide, high; /* sizes of the kernel */
  float *across, *down;
  float *padded; /* one row of the operand with its borders */
  float *rows;   /* a plane, blurred along its rows */
  float *sums;   /* one row of the result */
} blur_job;

static void blur_weights(double sigma, int64_t size, float *weights) {
  double sum = 0;
  for (int64_t i = 0; i < size; i++) sum += exp(-0.5 * pow((double)(i - size / 2) / sigma, 2));
  for (int64_t i = 0; i < size; i++)
    weights[i] = (float)(exp(-0.5 * pow((double)(i - size / 2) / sigma, 2)) / sum);
}

static tn_status blur_prepare(tn_transform_call *c, const blur_options *o, double sigma, picture p,
                              blur_job *j) {
  j->wide = blur_kernel_size(o, 0);
  j->high = blur_kernel_size(o, 1);
  int64_t numbers = 2 * (j->wide + p.width) + j->high + p.height * p.width;
  float *memory = tn_transform_scratch(c, (size_t)numbers * sizeof(float));
  if (memory == NULL) return TN_ENOMEM;
  j->across = memory;
  j->down = j->across + j->wide;
  j->padded = j->down + j->high;
  j->sums = j->padded + p.width + j->wide;
  j->rows = j->sums + p.width;
  blur_weights(sigma, j->wide, j->across);
  blur_weights(sigma, j->high, j->down);
  return TN_OK;
}

static int64_t blur_mirrored(int64_t i, int64_t n) { return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i; }

/* A row with its borders, from bytes or from numbers. */
static void blur_pad(const blur_job *j, const uint8_t *bytes, const float *numbers, int64_t width) {
  int64_t border = j->wide / 2;
  float *to = j->padded + border;
  for (int64_t x = 0; bytes != NULL && x < width; x++) to[x] = bytes[x];
  for (int64_t x = 0; bytes == NULL && x < width; x++) to[x] = numbers[x];
  for (int64_t x = 1; x <= border; x++) {
    to[-x] = to[x];
    to[width - 1 + x] = to[width - 1 - x];
  }
}

VECTORIZED static void blur_add(const float *restrict in, float weight, int64_t n, float *restrict sums) {
  for (int64_t x = 0; x < n; x++) sums[x] += in[x] * weight;
}

static void blur_row(const blur_job *j, int64_t width, float *out) {
  for (int64_t x = 0; x < width; x++) out[x] = 0;
  for (int64_t k = 0; k < j->wide; k++) blur_add(j->padded + k, j->across[k], width, out);
}

static void blur_column(const blur_job *j, picture p, int64_t y) {
  for (int64_t x = 0; x < p.width; x++) j->sums[x] = 0;
  for (int64_t k = 0; k < j->high; k++)
    blur_add(j->rows + blur_mirrored(y + k - j->high / 2, p.height) * p.width, j->down[k], p.width, j->sums);
}

VECTORIZED static void blur_round(const float *restrict sums, int64_t n, uint8_t *restrict out) {
  for (int64_t x = 0; x < n; x++) out[x] = (uint8_t)(int)(sums[x] < 255.0f ? sums[x] + 0.5f : 255.0f);
}

/* One plane, of bytes or of numbers. */
static void blur_plane(const blur_job *j, picture p, const uint8_t *bytes, const float *numbers,
                       uint8_t *to_bytes, float *to_numbers) {
  for (int64_t y = 0; y < p.height; y++) {
    blur_pad(j, bytes != NULL ? bytes + y * p.width : NULL, numbers != NULL ? numbers + y * p.width : NULL,
             p.width);
    blur_row(j, p.width, j->rows + y * p.width);
  }
  for (int64_t y = 0; y < p.height; y++) {
    blur_column(j, p, y);
    if (to_bytes != NULL)
      blur_round(j->sums, p.width, to_bytes + y * p.width);
    else
      memcpy(to_numbers + y * p.width, j->sums, (size_t)p.width * sizeof(float));
  }
}

static tn_status blur_field(tn_transform_call *c, const blur_options *o, double sigma, int32_t k) {
  picture p = picture_of(&c->in_type[k]);
  int64_t area = p.height * p.width;
  int is_u8 = c->in_type[k].dtype == TN_U8;
  blur_job j;
  tn_status status = blur_check_room(&c->env, o, &c->in_type[k]);
  if (status == TN_OK) status = blur_prepare(c, o, sigma, p, &j);
  for (int64_t plane = 0; status == TN_OK && plane < p.planes; plane++) {
    if (is_u8)
      blur_plane(&j, p, (const uint8_t *)c->in[k] + plane * area, NULL, (uint8_t *)c->out[k] + plane * area,
                 NULL);
    else
      blur_plane(&j, p, NULL, (const float *)c->in[k] + plane * area, NULL,
                 (float *)c->out[k] + plane * area);
  }
  return status;
}

static tn_status gaussian_blur_apply(tn_transform_call *c, const void *opts) {
  const blur_options *o = opts;
  tn_rng rng = tn_rng_at(c->key, 0);
  double sigma = tn_rng_between(&rng, o->sigma.v[0], o->sigma.v[o->sigma.n - 1]);
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < c->n; k++) {
    if (field_kind(k, &c->in_type[k]) == FIELD_PICTURE)
      status = blur_field(c, o, sigma, k);
    else
      memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
  }
  return status;
}

const tn_transform gaussian_blur_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "gaussian_blur",
                    "blurs a picture with random strength (training only)", blur_options, options),
    .training_only = 1,
    .types = "u8 or f32 [channels, height, width]",
    .example = "transforms = gaussian_blur(5), to_float",
    .infer = gaussian_blur_infer,
    .apply = gaussian_blur_apply,
};
