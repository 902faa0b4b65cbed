/* plugins/transforms/transforms.h: the transforms of this plugin, and their functions for pictures. A picture
 * is a value with height and width as its last two dimensions; the product of the others is its number of
 * planes. */
#pragma once

#include "tenon/plugin/transform.h"

/* In front of a function with plain loops, makes GCC vectorize it for each level of the x86-64 psABI; the
 * dynamic loader selects the version. Integers give the same bits at every level, and so do floats where no
 * sum runs along the loop, since products and sums are not fused. There is one version on other
 * architectures, with other compilers, with TRANSFORMS_PLAIN, and under sanitizers, which would run before
 * the selection. */
#if !defined(TRANSFORMS_PLAIN) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&         \
    defined(__linux__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) &&                         \
    !defined(__SANITIZE_THREAD__)
#define VECTORIZED __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define VECTORIZED
#endif

/* For loops in several such functions: compiled for the level of each caller. */
#define ALWAYS_INLINE __attribute__((always_inline)) static inline

typedef struct picture {
  int64_t planes, height, width;
} picture;

/* Fields of one transform, by their place in its list and their types: numbers that go with the picture
 * (docs/decisions/0080-fields-that-move-with-a-picture.md). */
enum { FIELD_PICTURE, FIELD_MASK, FIELD_BOXES, FIELD_POINTS };
int field_kind(int32_t k, const tn_type *type);

/* The sizes of a type that has passed picture_check and has no varying dimension. */
picture picture_of(const tn_type *type);
/* Fails for fields that are not pictures or masks, apart from boxes and points; with `alike`, also for those
 * with different sizes. */
tn_status picture_check(tn_env *env, int32_t n, const tn_type *types, int alike);
void picture_set_size(tn_type *type, int64_t height, int64_t width);

/* The dimension in front of height and width; 1 if there is none. */
int64_t picture_channels(const tn_type *type);
/* Fails for pictures of other types than u8 and f32, and unless `mask` if field 0 is no picture. */
tn_status picture_check_numbers(tn_env *env, int32_t n, const tn_type *types, int mask);

/* Checks an option with one number, or one for each channel; then the number of a plane. */
tn_status channel_check(tn_env *env, const char *name, const tn_floats *list, const tn_type *type);
float channel_number(const tn_floats *list, int64_t plane);
/* Reads an option that is a range: two numbers, the smaller one first. */
tn_status range_check(tn_env *env, const char *name, const tn_floats *range);

/* Reads an option: one number is a square, two numbers are height and width. */
tn_status size_read(const tn_env *env, const tn_ints *size, int64_t *height, int64_t *width);

/* One standard normal number of a pair (Box and Muller). */
float random_normal(tn_rng *rng);
/* From the gamma distribution of shape a >= 1, and from the beta distribution (a, a). */
double random_gamma(tn_rng *rng, double a);
double random_beta(tn_rng *rng, double a);
/* n parts of 1 from the Dirichlet distribution (a, ..., a). */
void random_dirichlet(tn_rng *rng, double a, int64_t n, double *parts);

/* A part of a picture. It may reach outside of the picture, where pixels are zero. */
typedef struct window {
  int64_t top, left, height, width;
} window;
void window_copy(const void *in, const tn_type *type, window from, void *out);

/* Mirrors a picture of any type: the order of columns, or that of rows with `vertical`. */
void flip_apply(const void *in, const tn_type *type, int vertical, void *out);

/* Resizes the part `from` of a call's picture k (u8 or f32) to the size of the result, bilinear with
 * antialiasing, as torchvision's Resize. `from` must be inside the picture. */
tn_status resample(tn_transform_call *c, int32_t k, window from);
/* The same on the device, of whole pictures of a batch. u8 has the bits of `resample` where a result has at
 * most a thousand operands along each axis; f32 differs by the order of sums. */
tn_val resample_build(tn_build *b, tn_val x, int64_t height, int64_t width);
/* Fails unless `resample` supports the pictures. */
tn_status resample_check(tn_env *env, int32_t n, const tn_type *types);

/* How a picture is read between its pixels and outside of it. */
typedef struct sampling {
  int32_t interpolation;
  tn_floats fill;
} sampling;
enum { SAMPLING_NEAREST = 0, SAMPLING_BILINEAR = 1 };
#define SAMPLING_OPTIONS_OF(S, interpolated)                                                                 \
  {"interpolation",                                                                                          \
   TN_OPT_ENUM,                                                                                              \
   0,                                                                                                        \
   (uint32_t)offsetof(S, how.interpolation),                                                                 \
   sizeof(int32_t),                                                                                          \
   interpolated,                                                                                             \
   "nearest|bilinear",                                                                                       \
   "how pixels that lie between those of the picture are made"},                                             \
  {                                                                                                          \
    "fill", TN_OPT_FLOATS, 0, (uint32_t)offsetof(S, how.fill), sizeof(tn_floats), "0", NULL,                 \
        "pixels from outside of the picture; one number, or one per channel"                                 \
  }
#define SAMPLING_OPTIONS(S) SAMPLING_OPTIONS_OF(S, "nearest")
tn_status sampling_check(tn_env *env, const sampling *how, int32_t n, const tn_type *types);

/* From a pixel of the result to its place in the operand, both as x and y from the centre: x' = m[0] x + m[1]
 * y
 * + m[2], y' = m[3] x + m[4] y + m[5]. Angles are counter-clockwise, shears per pixel from the left upper
 * corner. */
typedef struct affine {
  double m[6];
} affine;
affine affine_rotation(double degrees);
affine affine_shear(double across, double down, picture p);
affine affine_shift(double across, double down);
/* torchvision's affine: clockwise degrees, pixels, a factor, degrees of shear across and down. */
affine affine_of(double degrees, double across, double down, double scale, double shear, double shear_down);
/* The index of the nearest pixel of the operand for each pixel of a row, or -1. */
void affine_find_row(const affine *by, picture p, int64_t row, int64_t *places);
/* Writes `out` of u8 or f32 from `in`; `places` are p.width numbers, used by the nearest interpolation. */
void affine_apply(const affine *by, picture p, int is_u8, const void *in, const sampling *how,
                  int64_t *places, void *out);

/* The brightness of three planes of `area` numbers, as torchvision's rgb_to_grayscale. `out` may be the first
 * plane. color_sum_gray is the sum of bytes. */
void color_gray_u8(const uint8_t *in, int64_t area, uint8_t *out);
void color_gray_f32(const float *in, int64_t area, float *out);
int64_t color_sum_gray(const uint8_t *in, int64_t area);
