/* tests/bench/svg.c: writes shapes as elements of SVG 1.1. */
#include "svg.h"

#include <stdarg.h>

void svg_begin(FILE *to, int width, int height) {
  fprintf(to,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
          width, height, width, height);
}

void svg_end(FILE *to) { fputs("</svg>\n", to); }

void svg_line(FILE *to, double x1, double y1, double x2, double y2, const char *color, double width) {
  fprintf(to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%g\"/>\n",
          x1, y1, x2, y2, color, width);
}

void svg_box(FILE *to, double x, double y, double width, double height, const char *color) {
  fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width,
          height, color);
}

void svg_text(FILE *to, double x, double y, const char *anchor, const char *color, const char *format, ...) {
  va_list args;
  fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor, color);
  va_start(args, format);
  vfprintf(to, format, args);
  va_end(args);
  fputs("</text>\n", to);
}

void svg_curve(FILE *to, const svg_stroke *stroke, const double *x, const double *y, size_t n) {
  fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" stroke-dasharray=\"%s\" points=\"",
          stroke->color, stroke->width, stroke->dashes[0] ? stroke->dashes : "none");
  for (size_t i = 0; i < n; i++) fprintf(to, "%s%.1f,%.1f", i ? " " : "", x[i], y[i]);
  fputs("\"/>\n", to);
}
