/* plugins/transforms/geometry/geometry.h: transforms that move pixels. Such a transform describes a map from
 * the pixels of the result to those of the operand; geometry_apply moves every field of the call by it:
 *
 *   picture   u8 or f32, height and width as its last dimensions: interpolated
 *   mask      whole numbers of another type than u8: each from the nearest pixel
 *   boxes     f32[n, 4] after the first field, x0 y0 x1 y1 in pixels: by their corners, cut at the border
 *   points    f32[n, 2] after the first field, x y in pixels
 *
 * Places are continuous: pixel i covers i to i + 1. A box without area is no box, and all its numbers are 0.
 *
 * geometry.c   checks of the fields, and the way of all
 * projective.c maps, their inverses, and those between corners
 * warp.c       smooth pixels of pictures through a projective map
 * move.c       pixels of pictures and masks
 * boxes.c      boxes and points
 * build.c      masks and boxes on the device */
#pragma once

#include "plugins/transforms/transforms.h"

/* Results are a part of the operand, mirrored, or taken through a map. */
enum { GEOMETRY_PART, GEOMETRY_FLIP, GEOMETRY_AFFINE, GEOMETRY_PROJECTIVE };
enum { PADDING_CONSTANT, PADDING_EDGE, PADDING_REFLECT, PADDING_SYMMETRIC };
enum { FLIP_HORIZONTAL = 0, FLIP_VERTICAL = 1 };

/* From homogeneous places to places, row by row. */
typedef struct projective {
  double m[9];
} projective;

typedef struct geometry {
  int32_t kind;
  /* PART: `from` of the operand, which may reach outside of it where the size stays, resized to the size of
   * `to` and put there in the result. With `whole` both are all of each field. */
  window from, to;
  int32_t whole, padding_mode;
  int32_t direction;          /* FLIP */
  affine by;                  /* AFFINE: the result has the size of the operand */
  projective places;          /* PROJECTIVE: from the result to the operand; AFFINE: set by geometry_apply */
  const float *across, *down; /* PROJECTIVE: added for each pixel of the result; NULL: nothing */
  size_t kept;                /* bytes of the scratch memory that hold these; a multiple of 8 */
  int32_t needs_centre;       /* PART: a box whose centre is outside of `from` becomes zeros */
  const sampling *how;        /* NULL: nearest, and zeros from outside */
  int64_t mask_fill;
} geometry;

#define MASK_FILL_OPTION(S)                                                                                  \
  TN_OPT(S, mask_fill, TN_OPT_INT, "0", "[-128, 127]", "pixels of masks from outside of the picture")

/* Copies the types and checks that field 0 is a picture or a mask, with `alike` that all have its size. */
tn_status geometry_infer(tn_env *env, int32_t n, const tn_type *in, tn_type *out, int alike);
/* The same for transforms that interpolate: pictures are u8 or f32, and `how` fits them. */
tn_status geometry_infer_sampled(tn_env *env, const sampling *how, int32_t n, const tn_type *in, tn_type *out,
                                 int alike);
/* Sets height and width of the pictures and masks. */
void geometry_set_size(int32_t n, tn_type *types, int64_t height, int64_t width);

/* Whether the centre of a box lies inside of a part. */
static inline int geometry_has_centre(window w, const float box[4]) {
  double x = ((double)box[0] + (double)box[2]) / 2 - (double)w.left;
  double y = ((double)box[1] + (double)box[3]) / 2 - (double)w.top;
  return x > 0 && y > 0 && x < (double)w.width && y < (double)w.height;
}

/* Bytes of scratch memory that geometry_apply takes behind those that are kept. */
static inline size_t geometry_scratch(const tn_type *result) {
  return (size_t)(result->dims[result->rank - 1] + 1) * sizeof(int64_t);
}
/* Moves all fields. */
tn_status geometry_apply(tn_transform_call *c, geometry *g);
tn_status geometry_copy(tn_transform_call *c);
/* Part `from` of the operand's size `in`, as it is or resized, fills the result. */
geometry geometry_part(window from, const tn_type *out);

/* The map that takes the four corners `from` to the corners `to`, x and y each; 0 where three of them lie on
 * a line. */
int projective_between(const double from[8], const double to[8], projective *map);
int projective_inverse(const projective *a, projective *inverse);
void projective_point(const projective *a, double x, double y, double to[2]);
/* `by` in places from the left upper corner. */
projective projective_of_affine(const affine *by, double height, double width);

/* move.c */
tn_status move_pixels(tn_transform_call *c, const geometry *g, int32_t k);
/* warp.c: a picture through `places` and displacements, bilinear. */
void warp_bilinear(const geometry *g, picture in, picture out, int is_u8, const void *from, void *to);
/* boxes.c: boxes and points of field k, as those of the picture in field 0. */
tn_status move_places(tn_transform_call *c, const geometry *g, int32_t k);
/* Cuts a box at the border; a box that keeps no area becomes zeros. */
void box_cut(float box[4], double height, double width);
/* Whether a field has a row for each of n boxes; row i for a box that is left out: zeros, or the class -100.
 */
int box_has_row(const tn_type *type, int64_t n);
void box_clear_row(const tn_type *type, int64_t i, void *values);

/* On the device: boxes (batch, n, 4) or points times `scale` plus `shift`, each (batch or 1, 1, 2) of x and
 * y, then cut at the border; masks by the nearest pixel. */
tn_val geometry_build_places(tn_build *b, tn_val places, tn_val scale, tn_val shift, int64_t height,
                             int64_t width);
tn_val geometry_build_nearest(tn_build *b, tn_val mask, int64_t height, int64_t width);
/* Numbers `draws` i32 (batch, 2) of rows and columns, as f32 (batch, 1, 2) of x and y. */
tn_val geometry_build_draws(tn_build *b, tn_val draws);
/* Kind of field k of a batch. */
int geometry_build_field(tn_build *b, int32_t k);
