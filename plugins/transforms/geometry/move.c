/* plugins/transforms/geometry/move.c: the pixels of a picture or mask. For each row of the result the index
 * of the pixel that each of its pixels comes from is found once, and used for all planes. Pictures that are
 * interpolated have functions of their own: resample.c, affine.c and warp.c. */
#include "plugins/transforms/geometry/geometry.h"

#include <math.h>
#include <string.h>

/* A mask, or a picture whose pixels are taken as they are. */
typedef struct move_job {
  const geometry *g;
  picture in, out;
  window from, to;
  size_t item;
  int32_t dtype;
  int is_mask;
} move_job;

/* ---- from where a pixel comes ---- */

/* Index `i` of n pixels, which may lie outside; -1: it is filled. */
static int64_t move_index(int64_t i, int64_t n, int32_t mode) {
  int64_t period = mode == PADDING_REFLECT ? 2 * n - 2 : 2 * n;
  if ((i >= 0 && i < n) || n == 0) return n == 0 ? -1 : i;
  if (mode == PADDING_CONSTANT) return -1;
  if (mode == PADDING_EDGE || period == 0) return i < 0 ? 0 : n - 1;
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - i - (mode == PADDING_SYMMETRIC);
}

/* torch's nearest interpolation: products of f32. */
static int64_t move_nearest(int64_t i, int64_t in, int64_t out) {
  if (in == out) return i;
  int64_t at = (int64_t)floorf((float)i * ((float)in / (float)out));
  return at < in ? at : in - 1;
}

/* The index along one axis: from the window `to` of the result into the window `from` of the operand. */
static int64_t move_axis(int64_t i, int64_t to, int64_t to_size, int64_t from, int64_t from_size, int64_t n,
                         int32_t mode) {
  i -= to;
  if (to_size != from_size && (i < 0 || i >= to_size)) return -1;
  return move_index(from + move_nearest(i, from_size, to_size), n, mode);
}

static void move_find_part(const move_job *j, int64_t row, int64_t *places) {
  int32_t mode = j->g->padding_mode;
  int64_t y = move_axis(row, j->to.top, j->to.height, j->from.top, j->from.height, j->in.height, mode);
  for (int64_t i = 0; i < j->out.width; i++) {
    int64_t x = move_axis(i, j->to.left, j->to.width, j->from.left, j->from.width, j->in.width, mode);
    places[i] = x < 0 || y < 0 ? -1 : y * j->in.width + x;
  }
}

static void move_find_projective(const move_job *j, int64_t row, int64_t *places) {
  const geometry *g = j->g;
  for (int64_t i = 0; i < j->out.width; i++) {
    double at[2];
    int64_t k = row * j->out.width + i;
    projective_point(&g->places, (double)i + 0.5, (double)row + 0.5, at);
    double x = at[0] - 0.5 + (g->across != NULL ? (double)g->across[k] : 0);
    double y = at[1] - 0.5 + (g->down != NULL ? (double)g->down[k] : 0);
    int inside = x >= -0.5 && y >= -0.5 && x < (double)j->in.width && y < (double)j->in.height;
    int64_t column = inside ? lrint(x) : -1, line = inside ? lrint(y) : -1;
    inside = (uint64_t)column < (uint64_t)j->in.width && (uint64_t)line < (uint64_t)j->in.height;
    places[i] = inside ? line * j->in.width + column : -1;
  }
}

static void move_find(const move_job *j, int64_t row, int64_t *places) {
  if (j->g->kind == GEOMETRY_PART)
    move_find_part(j, row, places);
  else if (j->g->kind == GEOMETRY_AFFINE)
    affine_find_row(&j->g->by, j->in, row, places);
  else
    move_find_projective(j, row, places);
}

/* ---- pixels ---- */

/* The bytes of the number that fills a plane. */
static void move_fill(const move_job *j, int64_t plane, void *bytes) {
  float value = j->is_mask || j->g->how == NULL ? 0.0f : channel_number(&j->g->how->fill, plane);
  if (j->dtype == TN_F32)
    memcpy(bytes, &value, sizeof value);
  else if (j->dtype == TN_U8)
    *(uint8_t *)bytes = (uint8_t)value;
  else if (j->is_mask)
    switch (j->item) {
    case 1: memcpy(bytes, &(int8_t){(int8_t)j->g->mask_fill}, 1); break;
    case 4: memcpy(bytes, &(int32_t){(int32_t)j->g->mask_fill}, 4); break;
    case 8: memcpy(bytes, &(int64_t){j->g->mask_fill}, 8); break;
    default: break;
    }
}

#define MOVE_PICK(T)                                                                                         \
  do {                                                                                                       \
    T blank;                                                                                                 \
    memcpy(&blank, fill, sizeof blank);                                                                      \
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = places[i] >= 0 ? ((const T *)in)[places[i]] : blank;     \
  } while (0)
static void move_pick(const int64_t *places, int64_t n, size_t item, const void *in, const void *fill,
                      void *out) {
  switch (item) {
  case 1: MOVE_PICK(uint8_t); break;
  case 2: MOVE_PICK(uint16_t); break;
  case 4: MOVE_PICK(uint32_t); break;
  default: MOVE_PICK(uint64_t);
  }
}

static tn_status move_nearest_pixels(tn_transform_call *c, const move_job *j, int32_t k) {
  char *memory = tn_transform_scratch(c, j->g->kept + geometry_scratch(&c->out_type[k]));
  if (memory == NULL) return TN_ENOMEM;
  int64_t *places = (int64_t *)(void *)(memory + j->g->kept);
  size_t in_plane = (size_t)(j->in.height * j->in.width) * j->item;
  size_t row = (size_t)j->out.width * j->item, out_plane = (size_t)j->out.height * row;
  for (int64_t y = 0; y < j->out.height; y++) {
    move_find(j, y, places);
    for (int64_t plane = 0; plane < j->out.planes; plane++) {
      uint64_t fill = 0;
      move_fill(j, plane, &fill);
      move_pick(places, j->out.width, j->item, (const char *)c->in[k] + (size_t)plane * in_plane, &fill,
                (char *)c->out[k] + (size_t)plane * out_plane + (size_t)y * row);
    }
  }
  return TN_OK;
}

/* ---- parts that are resized ---- */

static void move_fill_pixels(const move_job *j, const void *fill, int64_t n, char *to) {
  for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * j->item, fill, j->item);
}

/* Moves the rows of the resized part, which begin the memory of the result, to their places, the last one
 * first, and fills the rest. */
static void move_spread(const move_job *j, char *out) {
  window to = j->to;
  size_t row = (size_t)j->out.width * j->item, part = (size_t)to.width * j->item;
  for (int64_t plane = j->out.planes - 1; plane >= 0; plane--) {
    uint64_t fill = 0;
    move_fill(j, plane, &fill);
    for (int64_t y = j->out.height - 1; y >= 0; y--) {
      char *at = out + (size_t)(plane * j->out.height + y) * row;
      int64_t line = y - to.top, inside = line >= 0 && line < to.height ? to.width : 0;
      int64_t left = inside > 0 ? to.left : j->out.width;
      if (inside > 0)
        memmove(at + (size_t)left * j->item, out + (size_t)(plane * to.height + line) * part, part);
      move_fill_pixels(j, &fill, left, at);
      if (inside > 0)
        move_fill_pixels(j, &fill, j->out.width - left - inside, at + (size_t)(left + inside) * j->item);
    }
  }
}

static tn_status move_resized(tn_transform_call *c, const move_job *j, int32_t k) {
  tn_type type = c->out_type[k];
  tn_transform_call one = *c;
  picture_set_size(&type, j->to.height, j->to.width);
  one.n = 1;
  one.in_type = &c->in_type[k];
  one.out_type = &type;
  one.in = &c->in[k];
  one.out = &c->out[k];
  TN_TRY(resample(&one, 0, j->from));
  if (j->to.height != j->out.height || j->to.width != j->out.width) move_spread(j, c->out[k]);
  return TN_OK;
}

static tn_status move_part(tn_transform_call *c, const move_job *j, int32_t k) {
  int same = j->from.height == j->to.height && j->from.width == j->to.width;
  int all = j->to.height == j->out.height && j->to.width == j->out.width;
  int inside = j->from.top >= 0 && j->from.left >= 0 && j->from.top + j->from.height <= j->in.height &&
               j->from.left + j->from.width <= j->in.width;
  if (!same && !j->is_mask) return move_resized(c, j, k);
  if (same && all && (inside || (j->g->how == NULL && !j->is_mask))) {
    window_copy(c->in[k], &c->in_type[k], j->from, c->out[k]);
    return TN_OK;
  }
  if (j->from.height < 1 || j->from.width < 1)
    return tn_fail(c, TN_EINVAL, NULL, "a mask without pixels cannot be resized");
  return move_nearest_pixels(c, j, k);
}

tn_status move_pixels(tn_transform_call *c, const geometry *g, int32_t k) {
  const tn_type *type = &c->in_type[k];
  move_job j = {.g = g, .in = picture_of(type), .out = picture_of(&c->out_type[k]), .from = g->from};
  j.to = g->to;
  j.dtype = type->dtype;
  j.item = tn_dtype_size(type->dtype);
  j.is_mask = field_kind(k, type) == FIELD_MASK;
  if (g->whole) {
    j.from = (window){0, 0, j.in.height, j.in.width};
    j.to = (window){0, 0, j.out.height, j.out.width};
  }
  int smooth = !j.is_mask && g->how != NULL && g->how->interpolation == SAMPLING_BILINEAR;
  switch (g->kind) {
  case GEOMETRY_PART: return move_part(c, &j, k);
  case GEOMETRY_FLIP: flip_apply(c->in[k], type, g->direction, c->out[k]); return TN_OK;
  case GEOMETRY_AFFINE:
    if (smooth) affine_apply(&g->by, j.in, j.dtype == TN_U8, c->in[k], g->how, NULL, c->out[k]);
    return smooth ? TN_OK : move_nearest_pixels(c, &j, k);
  default:
    if (smooth) warp_bilinear(g, j.in, j.out, j.dtype == TN_U8, c->in[k], c->out[k]);
    return smooth ? TN_OK : move_nearest_pixels(c, &j, k);
  }
}
