/* plugins/observers/bar.c: the text of the progress bar. A list of styles from rich to poor; the first one
 * that fits the terminal is used. Numbers have fixed widths, so that the style does not change from step to
 * step. */
#include "plugins/observers/bar.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct bar_style {
  int width;        /* of the bar; 0: none */
  int letters;      /* of each word of a metric's name */
  int words, rate;  /* "epoch" and "left" are written out; samples per second are shown */
  int train, valid; /* how many metrics */
  int names;        /* the metrics of the validation have their names, else the order of the others */
  int percent;      /* "12%" for "45/157" */
} bar_style;

enum { ALL = BAR_METRICS };
static const bar_style styles[] = {
    {30, 64, 1, 1, ALL, ALL, 1, 0}, {20, 64, 1, 1, ALL, ALL, 1, 0}, {12, 64, 1, 1, ALL, ALL, 1, 0},
    {20, 4, 1, 1, ALL, ALL, 1, 0},  {12, 4, 1, 1, ALL, ALL, 1, 0},  {12, 3, 1, 0, ALL, ALL, 1, 0},
    {12, 3, 0, 0, ALL, ALL, 0, 0},  {12, 3, 0, 0, 2, 2, 0, 0},      {10, 3, 0, 0, 2, 2, 0, 1},
    {8, 3, 0, 0, 2, 1, 0, 1},       {6, 3, 0, 0, 1, 1, 0, 1},       {0, 3, 0, 0, 1, 1, 0, 1},
    {6, 3, 0, 0, 1, 0, 0, 1},       {0, 3, 0, 0, 1, 0, 0, 1},       {0, 3, 0, 0, 0, 0, 0, 1}};

typedef struct bar_line {
  char *text;
  size_t n; /* the length that the whole text would have, as snprintf counts */
} bar_line;

TN_PRINTF(2, 3) static void bar_add(bar_line *line, const char *format, ...) {
  va_list args;
  size_t at = line->n < BAR_TEXT ? line->n : BAR_TEXT - 1;
  va_start(args, format);
  int n = vsnprintf(line->text + at, BAR_TEXT - at, format, args);
  va_end(args);
  line->n += n > 0 ? (size_t)n : 0;
}

void observer_bar_time(char *text, size_t size, double seconds) {
  long s = seconds > 0 ? (long)(seconds + 0.5) : 0;
  if (s >= 3600)
    snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
}

/* Six characters for numbers from 0 to 10000: "0.3456", "12.346". */
static void bar_number(char text[32], double value) {
  double size = fabs(value);
  int digits = size < 10 ? 4 : size < 100 ? 3 : size < 1000 ? 2 : 1;
  if (size < 1e-3 && size > 0)
    snprintf(text, 32, "%.1e", value);
  else
    snprintf(text, 32, size < 10000 ? "%.*f" : "%.*e", digits, value);
}

/* "cross_entropy" with 4 letters a word: "cros_entr". */
static void bar_name(char name[64], const char *full, int letters) {
  int n = 0, in_word = 0;
  for (; *full != '\0' && n < 63; full++) {
    in_word = isalnum((unsigned char)*full) ? in_word + 1 : 0;
    if (in_word <= letters) name[n++] = *full;
  }
  name[n] = '\0';
}

/* With one loss the total is that loss: it is shown once, as `loss`. */
static int bar_repeats_total(const tn_metric *metrics, int32_t i) {
  return i == 1 && strcmp(metrics[0].name, "loss") == 0 &&
         (metrics[1].value == metrics[0].value || isnan(metrics[0].value));
}

int observer_bar_metrics(char *text, size_t size, const char *title, const tn_metric *metrics, int32_t n,
                         int letters, int most) {
  int length = 0, shown = 0;
  *text = '\0';
  for (int32_t i = 0; i < n && shown < most && length < (int)size; i++) {
    char name[64], number[32];
    if (bar_repeats_total(metrics, i)) continue;
    bar_name(name, metrics[i].name, i == 0 && letters == 3 ? 4 : letters); /* "loss" */
    bar_number(number, metrics[i].value);
    length += snprintf(text + length, size - (size_t)length, "%s%s%s%s %s",
                       shown > 0 ? ""
                       : *title  ? "  "
                                 : " ",
                       shown > 0 ? "" : title, letters > 0 ? " " : "", name, number);
    shown++;
  }
  return length;
}

static void bar_add_position(bar_line *line, const bar_facts *facts, const bar_style *style) {
  char total[24];
  double share = facts->steps > 0 ? (double)facts->step / (double)facts->steps : 0;
  int full = (int)((share < 1 ? share : 1) * style->width + 0.5);
  bar_add(line, "%s%lld/%lld%s", style->words ? "epoch " : "", (long long)facts->epoch,
          (long long)facts->epochs, facts->validating ? style->words ? " validation" : " val" : "");
  if (style->width > 0) bar_add(line, " [");
  for (int i = 0; i < style->width; i++) bar_add(line, "%s", i < full ? "=" : " ");
  if (style->width > 0) bar_add(line, "]");
  if (style->percent && facts->steps > 0) {
    bar_add(line, " %3.0f%%", 100 * share);
    return;
  }
  int digits = snprintf(total, sizeof total, "%lld", (long long)facts->steps);
  if (facts->steps > 0)
    bar_add(line, " %*lld/%s", digits, (long long)facts->step, total);
  else
    bar_add(line, " %lld", (long long)facts->step);
}

static void bar_add_metrics(bar_line *line, const bar_facts *facts, const bar_style *style) {
  char text[BAR_TEXT];
  const tn_metric *now = facts->validating ? facts->valid : facts->train;
  int32_t n = facts->validating ? facts->n_valid : facts->n_train;
  observer_bar_metrics(text, sizeof text, "", now, n, style->letters, style->train);
  bar_add(line, "%s", text);
  if (facts->validating || style->valid == 0) return;
  observer_bar_metrics(text, sizeof text, style->words ? "valid" : "val", facts->valid, facts->n_valid,
                       style->names ? style->letters : 0, style->valid);
  bar_add(line, "%s", text);
}

static size_t bar_write(char *text, const bar_facts *facts, const bar_style *style) {
  bar_line line = {.text = text, .n = 0};
  char left[32];
  bar_add_position(&line, facts, style);
  if (style->rate && !facts->validating) bar_add(&line, "  %.0f/s", facts->rate);
  observer_bar_time(left, sizeof left, facts->seconds_left);
  if (!facts->validating) bar_add(&line, style->words ? "  %s left" : " %s", left);
  bar_add_metrics(&line, facts, style);
  return line.n;
}

size_t observer_bar_text(char *text, const bar_facts *facts, int columns) {
  for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
    size_t n = bar_write(text, facts, &styles[i]);
    if (n < BAR_TEXT && (int)n < columns) return n;
  }
  *text = '\0';
  return 0;
}
