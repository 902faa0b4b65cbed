/* core/formats/canvas.h: pictures that a model has read or made, with masks and boxes drawn over them. */
#pragma once

#include "core/base/env.h"

typedef struct tn_canvas {
  int64_t width, height;
  uint8_t *rgb;
} tn_canvas;

/* The color of a class, of Pascal VOC: class 0 is black, and each bit of the number brightens another part.
 */
void tn_class_color(int64_t number, uint8_t rgb[3]);

/* Whether a value of this type is a picture: f32 or u8, [1 or 3, height, width]. */
bool tn_canvas_takes(const tn_type *type);
/* The value; numbers other than bytes are stretched, so that the least is black and the greatest white. The
 * caller releases canvas->rgb (tn_release). */
tn_status tn_canvas_open(const void *handle, const tn_type *type, const void *value, tn_canvas *canvas);
/* A mask of class numbers as a picture: each in its color. */
tn_status tn_canvas_open_mask(const void *handle, const uint8_t *mask, int64_t width, int64_t height,
                              tn_canvas *canvas);
/* n >= 1 pictures side by side on white, with a gap between them; their tops are at one height. */
tn_status tn_canvas_join(const void *handle, const tn_canvas *parts, int32_t n, tn_canvas *joined);
/* Half of each pixel becomes the color of its class, where that is not 0. The mask is stretched to the
 * canvas. */
void tn_canvas_blend(tn_canvas *canvas, const uint8_t *mask, int64_t width, int64_t height);
/* The outline of a box, x0 y0 x1 y1 in pixels, in the color of its class + 1; parts outside are left out. */
void tn_canvas_outline(tn_canvas *canvas, const float box[4], int64_t number);
