/* plugins/transforms/transforms.h: the transforms of this plugin, and their functions for pictures. A picture
 * is a value with height and width as its last two dimensions; the product of the others is its number of
 * planes. */
#ifndef TENON_TRANSFORMS_H
#define TENON_TRANSFORMS_H

#include "tenon/plugin/transform.h"

/* In front of a function with plain loops, makes GCC vectorize it for each level of the x86-64 psABI; the
 * dynamic loader selects the version. Integers give the same bits at every level. There is one version on
 * other architectures, with other compilers, with TRANSFORMS_PLAIN, and under sanitizers, which would run
 * before the selection. */
#if !defined(TRANSFORMS_PLAIN) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&         \
    defined(__linux__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) &&                         \
    !defined(__SANITIZE_THREAD__)
#define VECTORIZED __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define VECTORIZED
#endif

/* For loops in several such functions: compiled for the level of each caller. */
#define ALWAYS_INLINE __attribute__((always_inline)) static inline

extern const tn_transform resize_transform;
extern const tn_transform center_crop_transform;
extern const tn_transform random_crop_transform;
extern const tn_transform random_resized_crop_transform;
extern const tn_transform random_flip_transform;
extern const tn_transform to_float_transform;
extern const tn_transform normalize_transform;

typedef struct picture {
  int64_t planes, height, width;
} picture;

/* The sizes of a type that has passed picture_check and has no varying dimension. */
picture picture_of(const tn_type *type);
/* Fails for fields that are not pictures; with `alike`, also for pictures with different sizes. */
tn_status picture_check(tn_env *env, int32_t n, const tn_type *types, int alike);
void picture_set_size(tn_type *type, int64_t height, int64_t width);

/* Reads an option: one number is a square, two numbers are height and width. */
tn_status size_read(const tn_env *env, const tn_ints *size, int64_t *height, int64_t *width);

/* A part of a picture. It may reach outside of the picture, where pixels are zero. */
typedef struct window {
  int64_t top, left, height, width;
} window;
void window_copy(const void *in, const tn_type *type, window from, void *out);

/* Resizes the part `from` of a call's picture k (u8 or f32) to the size of the result, bilinear with
 * antialiasing, as torchvision's Resize. `from` must be inside the picture. */
tn_status resample(tn_transform_call *c, int32_t k, window from);
/* The same on the device, of whole pictures of a batch. u8 has the bits of `resample` where a result has at
 * most a thousand operands along each axis; f32 differs by the order of sums. */
tn_val resample_build(tn_build *b, tn_val x, int64_t height, int64_t width);
/* Fails unless `resample` supports the types. */
tn_status resample_check(tn_env *env, int32_t n, const tn_type *types);

#endif
