/* plugins/transforms/transforms.h: the transforms of this plugin, and what they share. A picture is any
 * value whose last two dimensions are height and width; those before count its planes. */
#ifndef TENON_TRANSFORMS_H
#define TENON_TRANSFORMS_H

#include "tenon/plugin/transform.h"

/* In front of a function with plain loops: GCC vectorizes it for each level of the x86-64 psABI and chooses
 * when the plugin is loaded. Integers give the same bits at every level. Sanitizers would run before the
 * choice can be made; with them, elsewhere, and with TRANSFORMS_PLAIN, there is one version. */
#if !defined(TRANSFORMS_PLAIN) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&         \
    defined(__linux__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) &&                         \
    !defined(__SANITIZE_THREAD__)
#define VECTORIZED __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define VECTORIZED
#endif

/* For the loops that they share: compiled for the level of each caller. */
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

/* Of an actual type, which has passed picture_check. */
picture picture_of(const tn_type *type);
/* Refuses fields that are no pictures; with `alike`, ones of different sizes, too. */
tn_status picture_check(tn_env *env, int32_t n, const tn_type *types, int alike);
void picture_set_size(tn_type *type, int64_t height, int64_t width);

/* One number is a square, two are height and width. */
tn_status size_read(const tn_env *env, const tn_ints *size, int64_t *height, int64_t *width);

/* Part of a picture: top and left may lie outside, where pixels are zero. */
typedef struct window {
  int64_t top, left, height, width;
} window;
void window_copy(const void *in, const tn_type *type, window from, void *out);

/* Resizes the part of a call's picture k (u8 or f32) inside `from`, which must not reach outside, to the size
 * of the result: bilinear with antialiasing, as torchvision's Resize does it. */
tn_status resample(tn_transform_call *c, int32_t k, window from);
/* Whether `resample` can do the type. */
tn_status resample_check(tn_env *env, int32_t n, const tn_type *types);

#endif
