/* tests/bench/page.c: writes the page of a result of cpu.sh.
 *
 *   bench_page FILE.json FOLDER     writes FOLDER/NAME.md and FOLDER/NAME.svg for NAME.json */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "svg.h"

/* ---- plot: one bar per work, on a logarithmic scale of ratios ---- */

enum { LEFT = 190, WIDTH = 560, RIGHT = 70, ROW = 26, TOP = 40, BOTTOM = 46 };
static const double LEAST = 0.125, MOST = 32.0;

static double x_of(double ratio) {
  double within = ratio < LEAST ? LEAST : ratio > MOST ? MOST : ratio;
  return LEFT + WIDTH * log(within / LEAST) / log(MOST / LEAST);
}

static void plot_axis(FILE *to, int rows) {
  int bottom = TOP + rows * ROW;
  for (double ratio = LEAST; ratio <= MOST; ratio *= 2) {
    double x = x_of(ratio);
    bool even = ratio == 1.0;
    svg_line(to, x, TOP - 6, x, bottom, even ? "#444" : "#ddd", even ? 1.5 : 1.0);
    svg_text(to, x, TOP - 12, "middle", "#666", "%g\xc3\x97", ratio);
  }
}

/* A mark across the row, if the target is a ratio. */
static void plot_target(FILE *to, const json_t *work, const char *key, int y, const char *color) {
  char *end = NULL;
  double ratio = strtod(text(work, key), &end);
  if (end == text(work, key) || *end) return;
  svg_line(to, x_of(ratio), y + 2, x_of(ratio), y + ROW - 4, color, 2);
}

static void plot_work(FILE *to, const json_t *work, int y) {
  double low = of_spread(work, "ratio", 0), median = of_spread(work, "ratio", 1),
         high = of_spread(work, "ratio", 2);
  double from = x_of(median < 1 ? median : 1.0), length = fabs(x_of(median) - x_of(1.0));
  int middle = y + ROW / 2;
  svg_text(to, LEFT - 8, middle + 4, "end", "#000", "%s", text(work, "work"));
  if (!json_object_get(work, "ratio")) return;
  svg_box(to, from, y + 5, length, ROW - 10, median < 1 ? "#d98c5f" : "#5f9ed9");
  svg_line(to, x_of(low), middle, x_of(high), middle, "#222", 1);
  plot_target(to, work, "must", y, "#c0392b");
  plot_target(to, work, "aim", y, "#27863f");
  svg_text(to, LEFT + WIDTH + 10, middle + 4, "start", "#000", "%.3g\xc3\x97", median);
}

static void plot(FILE *to, const json_t *result) {
  const json_t *works = json_object_get(result, "works"), *work;
  int rows = (int)json_array_size(works), height = TOP + rows * ROW + BOTTOM;
  size_t i;
  svg_begin(to, LEFT + WIDTH + RIGHT, height);
  plot_axis(to, rows);
  json_array_foreach(works, i, work) { plot_work(to, work, TOP + (int)i * ROW); }
  svg_text(to, LEFT, height - 26, "start", "#666",
           "speed relative to the best peer: median, and a line from the least to the greatest ratio of the "
           "rounds;");
  svg_text(to, LEFT, height - 8, "start", "#666", "red: the required ratio, green: the goal");
  svg_end(to);
}

/* ---- page ---- */

static void write_spread(FILE *to, const json_t *object, const char *key) {
  if (json_object_get(object, key))
    fprintf(to, "%.4g (%.4g\xe2\x80\x93%.4g)", of_spread(object, key, 1), of_spread(object, key, 0),
            of_spread(object, key, 2));
  else
    fputs("\xe2\x80\x93", to);
}

static void write_mib(FILE *to, double mib) {
  if (mib > 0)
    fprintf(to, " | %.0f", mib);
  else
    fputs(" | \xe2\x80\x93", to);
}

static const json_t *best_of(const json_t *work) {
  const json_t *one;
  size_t i;
  json_array_foreach(json_object_get(work, "peers"), i, one) {
    if (is(one, "peer", text(work, "best"))) return one;
  }
  return NULL;
}

static const char *target(const json_t *work, const char *key) {
  return is(work, key, "-") ? "\xe2\x80\x93" : text(work, key);
}

static void write_work(FILE *to, const json_t *work) {
  const json_t *tenon = json_object_get(work, "tenon"), *best = best_of(work);
  fprintf(to, "| %s | %s | %zu | ", text(work, "work"), text(tenon, "backend"),
          json_array_size(json_object_get(tenon, "rounds")));
  write_spread(to, tenon, "ms");
  fprintf(to, " | %s | ", best ? text(best, "peer") : "\xe2\x80\x93");
  write_spread(to, best, "ms");
  fputs(" | ", to);
  write_spread(to, work, "ratio");
  fprintf(to, " | %.4g | %s | %s", number(work, "ratio_of_least"), target(work, "must"), target(work, "aim"));
  write_mib(to, number(tenon, "peak_rss_mib"));
  write_mib(to, number(best, "peak_rss_mib"));
  fprintf(to, " | %.2f%s |\n", of_spread(work, "load", 1),
          json_is_true(json_object_get(work, "busy")) ? ", busy" : "");
}

static void write_peers(FILE *to, const json_t *work) {
  const json_t *one;
  size_t i;
  json_array_foreach(json_object_get(work, "peers"), i, one) {
    fprintf(to, "| %s | %s | %s | ", text(work, "work"), text(one, "peer"), text(one, "args"));
    write_spread(to, one, "ms");
    fputs(" | ", to);
    write_spread(to, one, "ratio");
    fputs(" |\n", to);
  }
  json_array_foreach(json_object_get(work, "skipped"), i, one) {
    fprintf(to, "| %s | %s | skipped: %s | | |\n", text(work, "work"), text(one, "who"), text(one, "reason"));
  }
}

static void write_page(FILE *to, const json_t *result, const char *name) {
  const json_t *works = json_object_get(result, "works"), *work;
  size_t i;
  fprintf(to, "# Speed on a CPU\n\nMade by `tests/bench/cpu.sh` and `bench_page`; do not edit.\n\n");
  fprintf(to, "%s, %.0f threads of %.0f processors, %.0f MiB, Linux %s. ISA: %s.\n", text(result, "cpu"),
          number(result, "threads"), number(result, "processors"), number(result, "memory_mib"),
          text(result, "kernel"), text(result, "isa"));
  fprintf(to, "Tenon %s (%s), %s.\n\n", text(result, "tenon"), text(result, "commit"), text(result, "date"));
  if (number(result, "beside") > 0)
    fprintf(to, "Busy processes that ran beside all measurements: %.0f.\n\n", number(result, "beside"));
  fprintf(to,
          "Times are the median (least\xe2\x80\x93"
          "greatest) of the rounds. In each round all frameworks run once, "
          "one after the other. A ratio is the time of the peer divided by the time of Tenon in the same "
          "round; the ratio of least times divides the least times of all rounds. A work is marked busy "
          "if other processes used the machine during its rounds.\n\n![Ratios](%s.svg)\n\n",
          name);
  fprintf(to, "| work | backend | rounds | Tenon, ms | best peer | peer, ms | ratio | ratio of least times | "
              "required | goal | Tenon, MiB | peer, MiB | load |\n"
              "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  json_array_foreach(works, i, work) { write_work(to, work); }
  fprintf(to, "\nAll peers:\n\n| work | peer | options | ms | ratio |\n|---|---|---|---|---|\n");
  json_array_foreach(works, i, work) { write_peers(to, work); }
}

/* ---- files ---- */

static FILE *open_beside(const char *folder, const char *name, const char *suffix) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
  FILE *file = fopen(path, "w");
  if (!file) perror(path);
  return file;
}

static int close_file(FILE *file) { return file && !ferror(file) && fclose(file) == 0 ? 0 : 74; }

int main(int argc, char **argv) {
  json_error_t error;
  char name[256];
  if (argc != 3) {
    fprintf(stderr, "usage: bench_page FILE.json FOLDER\n");
    return 2;
  }
  const char *slash = strrchr(argv[1], '/'), *base = slash ? slash + 1 : argv[1], *dot = strrchr(base, '.');
  snprintf(name, sizeof name, "%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
  json_t *result = json_load_file(argv[1], 0, &error);
  if (!result) {
    fprintf(stderr, "bench_page: %s: %s\n", argv[1], error.text);
    return 65;
  }
  FILE *page = open_beside(argv[2], name, ".md"), *picture = open_beside(argv[2], name, ".svg");
  if (page) write_page(page, result, name);
  if (picture) plot(picture, result);
  int failed = close_file(page) | close_file(picture);
  json_decref(result);
  return failed;
}
