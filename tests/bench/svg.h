/* tests/bench/svg.h: the shapes of SVG for plots of results. */
#pragma once

#include <stdio.h>

/* Begins a white picture. Calls until svg_end draw in it; coordinates are pixels from the upper left corner.
 */
void svg_begin(FILE *to, int width, int height);
void svg_end(FILE *to);

void svg_line(FILE *to, double x1, double y1, double x2, double y2, const char *color, double width);
void svg_box(FILE *to, double x, double y, double width, double height, const char *color);

/* `anchor` is the part of the text at x: start, middle or end. */
void svg_text(FILE *to, double x, double y, const char *anchor, const char *color, const char *format, ...)
    __attribute__((format(printf, 6, 7), nonnull(6)));

/* The style of a curve: `dashes` are lengths of dash and gap, or "" for a solid line. */
typedef struct svg_stroke {
  const char *color, *dashes;
  double width;
} svg_stroke;

/* A line through n points. */
void svg_curve(FILE *to, const svg_stroke *stroke, const double *x, const double *y, size_t n);
