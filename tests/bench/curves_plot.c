/* tests/bench/curves_plot.c: plots the smoothed losses, and below them the differences of each run from the
 * first. The first line is the widest and palest, so that lines over it stay visible. */
#include "curves.h"
#include "svg.h"

enum { LEFT = 76, WIDTH = 660, RIGHT = 24, TOP = 48, UPPER = 270, GAP = 44, LOWER = 150, BOTTOM = 48 };

static const svg_stroke strokes[] = {
    {"#f2b56b", "", 6.0}, {"#2166ac", "", 2.4}, {"#111111", "7 5", 1.6}, {"#c0392b", "2 3", 1.6}};
enum { STROKES = sizeof strokes / sizeof *strokes };

/* Maps values `low` .. `high` to the pixels `bottom` .. `top`, with a mark every `step`. */
typedef struct axis {
  double low, high, step;
  int top, bottom;
} axis;

/* The distance of marks: 1, 2 or 5 times a power of ten, for four to nine marks. */
static double nice_step(double span) {
  double step = pow(10.0, floor(log10(span / 4.0)));
  if (span / step >= 20.0) return 5.0 * step;
  return span / step >= 8.0 ? 2.0 * step : step;
}

static axis make_axis(double low, double high, int top, int height) {
  if (!(high > low)) low -= 1e-9, high += 1e-9;
  double step = nice_step(high - low);
  return (axis){step * floor(low / step), step * ceil(high / step), step, top, top + height};
}

static double y_of(const axis *a, double value) {
  return a->bottom - (value - a->low) / (a->high - a->low) * (a->bottom - a->top);
}

static double x_of(size_t step, size_t steps) { return LEFT + WIDTH * (double)step / (double)steps; }

static void plot_frame(FILE *to, const axis *a, size_t steps, const char *title) {
  int marks = (int)lround((a->high - a->low) / a->step);
  for (int i = 0; i <= marks; i++) {
    double value = a->step * (round(a->low / a->step) + i), y = y_of(a, value);
    svg_line(to, LEFT, y, LEFT + WIDTH, y, value == 0.0 ? "#888" : "#ddd", 1);
    svg_text(to, LEFT - 8, y + 4, "end", "#444", "%g", value);
  }
  size_t apart = (size_t)fmax(1.0, nice_step((double)steps));
  for (size_t step = 0; step <= steps; step += apart) {
    svg_line(to, x_of(step, steps), a->top, x_of(step, steps), a->bottom, "#ddd", 1);
    svg_text(to, x_of(step, steps), a->bottom + 18, "middle", "#444", "%zu", step);
  }
  svg_line(to, LEFT, a->top, LEFT, a->bottom, "#444", 1);
  svg_line(to, LEFT, a->bottom, LEFT + WIDTH, a->bottom, "#444", 1);
  svg_text(to, LEFT, a->top - 8, "start", "#222", "%s", title);
}

static void plot_legend(FILE *to, const json_t *runs) {
  const json_t *run;
  size_t i;
  json_array_foreach(runs, i, run) {
    double x[] = {LEFT + 165.0 * (double)i, LEFT + 165.0 * (double)i + 44.0}, y[] = {16.0, 16.0};
    svg_curve(to, &strokes[i % STROKES], x, y, 2);
    svg_text(to, x[1] + 8, 20, "start", "#222", "%s", text(run, "run"));
  }
}

/* The smoothed curves of all runs. */
typedef struct curves {
  size_t runs, steps;
  double loss[CURVES_MOST_RUNS][CURVES_MOST_STEPS];
} curves;

static void smooth(const json_t *runs, curves *c) {
  const json_t *run;
  double losses[CURVES_MOST_STEPS];
  *c = (curves){.steps = CURVES_MOST_STEPS};
  json_array_foreach(runs, c->runs, run) {
    if (c->runs == CURVES_MOST_RUNS) break;
    size_t n = curves_losses(run, "losses", losses);
    if (n < c->steps) c->steps = n;
    for (size_t i = 0; i < n; i++) c->loss[c->runs][i] = curve_smooth(losses, i);
  }
}

/* The value of a step in a panel: the loss, or its difference from that of the first run. */
static double shown(const curves *c, size_t run, size_t i, bool difference) {
  return c->loss[run][i] - (difference ? c->loss[0][i] : 0.0);
}

static axis fit(const curves *c, bool difference, int top, int height) {
  double low = shown(c, 0, 0, difference), high = low;
  for (size_t run = 0; run < c->runs; run++)
    for (size_t i = 0; i < c->steps; i++) {
      low = fmin(low, shown(c, run, i, difference));
      high = fmax(high, shown(c, run, i, difference));
    }
  return make_axis(low, high, top, height);
}

static void plot_panel(FILE *to, const curves *c, bool difference, int top, int height, const char *title) {
  axis a = fit(c, difference, top, height);
  double x[CURVES_MOST_STEPS], y[CURVES_MOST_STEPS];
  plot_frame(to, &a, c->steps, title);
  for (size_t run = 0; run < c->runs; run++) {
    for (size_t i = 0; i < c->steps; i++) {
      x[i] = x_of(i + 1, c->steps);
      y[i] = y_of(&a, shown(c, run, i, difference));
    }
    svg_curve(to, &strokes[run % STROKES], x, y, c->steps);
  }
}

void curves_plot(FILE *to, const json_t *model) {
  static curves c; /* too large for a stack; there is one thread */
  const json_t *runs = json_object_get(model, "runs");
  char title[128];
  smooth(runs, &c);
  svg_begin(to, LEFT + WIDTH + RIGHT, TOP + UPPER + GAP + LOWER + BOTTOM);
  plot_legend(to, runs);
  if (c.runs > 0 && c.steps > 0) {
    snprintf(title, sizeof title, "%s: loss, mean of %d steps", text(model, "model"), CURVE_WINDOW);
    plot_panel(to, &c, false, TOP, UPPER, title);
    snprintf(title, sizeof title, "the same, less that of %s", text(json_array_get(runs, 0), "run"));
    plot_panel(to, &c, true, TOP + UPPER + GAP, LOWER, title);
    svg_text(to, LEFT + WIDTH / 2.0, TOP + UPPER + GAP + LOWER + 38, "middle", "#222", "step");
  }
  svg_end(to);
}
