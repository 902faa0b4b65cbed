/* tests/bench/svg.h: the few shapes of SVG that the plots of results are made of. */
#ifndef TN_TESTS_BENCH_SVG_H
#define TN_TESTS_BENCH_SVG_H

#include <stdio.h>

/* A white picture. The calls until svg_end draw in it, in pixels from the upper left corner. */
void svg_begin(FILE *to, int width, int height);
void svg_end(FILE *to);

void svg_line(FILE *to, double x1, double y1, double x2, double y2, const char *color, double width);
void svg_box(FILE *to, double x, double y, double width, double height, const char *color);

/* `anchor` is which part of the text stands at x: start, middle or end. */
void svg_text(FILE *to, double x, double y, const char *anchor, const char *color, const char *format, ...)
    __attribute__((format(printf, 6, 7), nonnull(6)));

/* How a curve looks: `dashes` are lengths of ink and gap, or "" for one that goes through. */
typedef struct svg_stroke {
  const char *color, *dashes;
  double width;
} svg_stroke;

/* A line through n points. */
void svg_curve(FILE *to, const svg_stroke *stroke, const double *x, const double *y, size_t n);

#endif
