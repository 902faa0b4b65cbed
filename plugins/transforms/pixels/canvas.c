/* plugins/transforms/pixels/canvas.c: the memory of a canvas, and the ops that change each byte by itself: a
 * table of 256 results is computed in f32 as torchvision computes each pixel. */
#include <string.h>

#include "plugins/transforms/pixels/canvas.h"

tn_status canvas_check(tn_env *env, int32_t n, const tn_type *types, int colors) {
  tn_status status = picture_check(env, n, types, 0);
  for (int32_t k = 0; status == TN_OK && k < n; k++) {
    int64_t channels = picture_channels(&types[k]);
    if (colors && k > 0 && field_kind(k, &types[k]) != FIELD_PICTURE) continue;
    if (types[k].dtype != TN_U8)
      return tn_fail(env, TN_EINVAL, NULL,
                     "a field is %s, expected u8; put this transform in front of to_float and normalize",
                     tn_dtype_name(types[k].dtype));
    if (channels >= 0 && channels != 1 && channels != 3)
      return tn_fail(env, TN_EINVAL, NULL, "a picture has %lld channels, expected 1 or 3",
                     (long long)channels);
  }
  return status;
}

tn_status canvas_open(tn_transform_call *c, int32_t k, canvas *to) {
  const tn_type *type = &c->in_type[k];
  picture p = picture_of(type);
  size_t bytes = tn_type_bytes(type), places = (size_t)p.width * sizeof(int64_t);
  uint8_t *memory = tn_transform_scratch(c, places + bytes + 1);
  if (memory == NULL) return TN_ENOMEM;
  int64_t channels = picture_channels(type);
  *to = (canvas){.pixels = c->out[k],
                 .spare = memory + places,
                 .places = (int64_t *)(void *)memory,
                 .frames = channels > 0 && field_kind(k, type) == FIELD_PICTURE ? p.planes / channels : 0,
                 .channels = channels,
                 .height = p.height,
                 .width = p.width};
  memcpy(to->pixels, c->in[k], bytes);
  return TN_OK;
}

typedef struct table {
  uint8_t of[256];
} table;

static uint8_t table_byte(float x) { return (uint8_t)(x < 0.0f ? 0.0f : x > 255.0f ? 255.0f : x); }

static void table_look_up(const table *t, uint8_t *pixels, int64_t n) {
  for (int64_t i = 0; i < n; i++) pixels[i] = t->of[pixels[i]];
}

/* x factor + offset. */
static table table_line(float factor, float offset) {
  table t;
  for (int i = 0; i < 256; i++) t.of[i] = table_byte((float)i * factor + offset);
  return t;
}

void canvas_brightness(canvas *c, float factor) {
  table t = table_line(factor, 0.0f);
  table_look_up(&t, c->pixels, c->frames * c->channels * c->height * c->width);
}

/* Away from the mean brightness of a picture. */
void canvas_contrast(canvas *c, float factor) {
  int64_t area = c->height * c->width;
  for (int64_t f = 0; area > 0 && f < c->frames; f++) {
    uint8_t *frame = c->pixels + f * c->channels * area;
    int64_t sum = c->channels == 3 ? color_sum_gray(frame, area) : 0;
    for (int64_t i = 0; c->channels == 1 && i < area; i++) sum += frame[i];
    table t = table_line(factor, (float)((double)sum / (double)area) * (1.0f - factor));
    table_look_up(&t, frame, c->channels * area);
  }
}

void canvas_posterize(canvas *c, int bits) {
  table t;
  for (int i = 0; i < 256; i++) t.of[i] = (uint8_t)(i & (0xFF00 >> bits));
  table_look_up(&t, c->pixels, c->frames * c->channels * c->height * c->width);
}

void canvas_solarize(canvas *c, float threshold) {
  table t;
  for (int i = 0; i < 256; i++) t.of[i] = (uint8_t)((float)i >= threshold ? 255 - i : i);
  table_look_up(&t, c->pixels, c->frames * c->channels * c->height * c->width);
}

static table table_stretched(const uint8_t *plane, int64_t area) {
  uint8_t least = 255, most = 0;
  for (int64_t i = 0; i < area; i++) {
    least = plane[i] < least ? plane[i] : least;
    most = plane[i] > most ? plane[i] : most;
  }
  table t;
  float scale = (float)(most - least) * (1.0f / 255.0f);
  for (int i = 0; i < 256; i++) t.of[i] = least < most ? table_byte((float)(i - least) / scale) : (uint8_t)i;
  return t;
}

void canvas_autocontrast(canvas *c) {
  int64_t area = c->height * c->width;
  for (int64_t plane = 0; plane < c->frames * c->channels; plane++) {
    table t = table_stretched(c->pixels + plane * area, area);
    table_look_up(&t, c->pixels + plane * area, area);
  }
}

/* Pillow's scheme: the brightest value that occurs counts for nothing, and a result is the number of pixels
 * below in steps of a 255th of the others. */
static table table_even(const uint8_t *plane, int64_t area) {
  int64_t count[256] = {0}, brightest = 0, below = 0;
  for (int64_t i = 0; i < area; i++) count[plane[i]]++;
  for (int i = 0; i < 256; i++)
    if (count[i] > 0) brightest = count[i];
  int64_t step = (area - brightest) / 255;
  table t;
  for (int i = 0; i < 256; below += count[i], i++) {
    int64_t level = step > 0 ? (below + step / 2) / step : i;
    t.of[i] = (uint8_t)(level < 255 ? level : 255);
  }
  return t;
}

void canvas_equalize(canvas *c) {
  int64_t area = c->height * c->width;
  for (int64_t plane = 0; plane < c->frames * c->channels; plane++) {
    table t = table_even(c->pixels + plane * area, area);
    table_look_up(&t, c->pixels + plane * area, area);
  }
}

void canvas_permute(canvas *c, tn_rng *rng) {
  int64_t area = c->height * c->width;
  size_t bytes = (size_t)area;
  int64_t from[3] = {0, 1, 2};
  if (c->channels != 3 || c->frames == 0) return;
  for (int64_t i = 2; i > 0; i--) {
    int64_t k = tn_rng_below(rng, i + 1), t = from[i];
    from[i] = from[k];
    from[k] = t;
  }
  memcpy(c->spare, c->pixels, (size_t)(c->frames * 3) * bytes);
  for (int64_t plane = 0; plane < c->frames * 3; plane++)
    memcpy(c->pixels + plane * area, c->spare + (plane / 3 * 3 + from[plane % 3]) * area, bytes);
}
