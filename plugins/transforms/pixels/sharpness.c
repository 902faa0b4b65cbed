/* plugins/transforms/pixels/sharpness.c: away from a picture that is blurred with a kernel of 3 x 3. */
#include <string.h>

#include "plugins/transforms/pixels/canvas.h"

/* One row; neighbours have weight 1 and the pixel 5, of 13. A thirteenth is never half way between two bytes.
 */
VECTORIZED static void sharpness_row(const uint8_t *restrict above, const uint8_t *restrict row,
                                     const uint8_t *restrict below, int64_t width, float rest,
                                     uint8_t *restrict out) {
  for (int64_t x = 1; x < width - 1; x++) {
    int sum = above[x - 1] + above[x] + above[x + 1] + row[x - 1] + 5 * row[x] + row[x + 1] + below[x - 1] +
              below[x] + below[x + 1];
    int blurred = (int)((float)sum * (1.0f / 13.0f) + 0.5f);
    float result = (float)row[x] + rest * (float)(blurred - row[x]);
    result = result > 0.0f ? result : 0.0f;
    out[x] = (uint8_t)(int)(result < 255.0f ? result : 255.0f);
  }
}

void canvas_sharpness(canvas *c, float factor) {
  int64_t area = c->height * c->width, w = c->width;
  memcpy(c->spare, c->pixels, (size_t)(c->frames * c->channels * area));
  for (int64_t plane = 0; plane < c->frames * c->channels; plane++)
    for (int64_t y = 1; y < c->height - 1; y++) {
      int64_t at = plane * area + y * w;
      sharpness_row(c->spare + at - w, c->spare + at, c->spare + at + w, w, 1.0f - factor, c->pixels + at);
    }
}
