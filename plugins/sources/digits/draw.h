/* plugins/sources/digits/draw.h: draws digits like handwritten ones from strokes. */
#pragma once

#include "tenon/random.h"

enum { DIGIT_SIDE = 28, DIGIT_PIXELS = DIGIT_SIDE * DIGIT_SIDE };

/* One step of a pen: verb and position in a box of 100 x 100, y downwards. 'M' lifts the pen and moves,
 * 'L' draws a line; three 'C' in a row are the controls and the end of a cubic Bezier arc. A verb of
 * 0 ends the shape. */
typedef struct digit_step {
  char verb;
  int8_t x, y;
} digit_step;

enum { DIGIT_SHAPES = 3, DIGIT_STEPS = 24 };
/* Several forms of each digit. */
extern const digit_step digit_shapes[10][DIGIT_SHAPES][DIGIT_STEPS];

/* Draws `digit` into 28 x 28 pixels, light on dark. `rng` determines the picture. */
void digit_draw(tn_rng *rng, int digit, uint8_t pixels[DIGIT_PIXELS]);
