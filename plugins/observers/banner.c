/* plugins/observers/banner.c: the first lines of a run: device, data, model, run folder. */
#include <stdio.h>
#include <string.h>

#include "plugins/observers/observers.h"

enum { COLUMNS = 80, INDENT = 11, LINE = 512 };

typedef struct banner {
  FILE *file;
  size_t columns;
} banner;

/* "title      text", broken at spaces. A word that is longer than a line is not broken. */
static void banner_print(const banner *to, const char *title, const char *text) {
  size_t column = INDENT;
  fprintf(to->file, "%-*s", INDENT, title);
  while (*text != '\0') {
    size_t word = strcspn(text, " ");
    if (column > INDENT && column + 1 + word > to->columns) {
      fprintf(to->file, "\n%*s", INDENT, "");
      column = INDENT;
    } else if (column > INDENT) {
      fprintf(to->file, " ");
      column++;
    }
    fprintf(to->file, "%.*s", (int)word, text);
    column += word;
    text += word + strspn(text + word, " ");
  }
  fprintf(to->file, "\n");
}

/* "60,000" */
static const char *banner_count(char text[32], int64_t value) {
  char digits[32];
  int n = snprintf(digits, sizeof digits, "%lld", (long long)value), k = 0;
  for (int i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0) text[k++] = ',';
    text[k++] = digits[i];
  }
  text[k] = '\0';
  return text;
}

/* Where the user named no backend, the first reason without its details is enough. */
static void banner_print_passed_over(const banner *to, const tn_run_info *run) {
  char text[LINE];
  const char *name_end = strstr(run->passed_over, "': ");
  if (*run->passed_over == '\0') return;
  if (strcmp(run->use, "auto") != 0 || name_end == NULL) {
    banner_print(to, "not used", run->passed_over);
    return;
  }
  size_t n = (size_t)(name_end + 3 - run->passed_over) + strcspn(name_end + 3, ":;");
  snprintf(text, sizeof text, "%.*s; see `tenon doctor`", (int)n, run->passed_over);
  banner_print(to, "not used", text);
}

static void banner_print_backend(const banner *to, const tn_run_info *run) {
  char text[LINE];
  snprintf(text, sizeof text, "%s%s%s%s%s%s", run->backend, *run->extends ? ", extends " : "", run->extends,
           *run->libraries ? ": " : "", run->libraries,
           strcmp(run->use, "auto") == 0 ? "; the fastest here (use = auto)" : "");
  banner_print(to, "backend", text);
  banner_print_passed_over(to, run);
  int n = snprintf(text, sizeof text, "%s, %d thread%s, %s", run->device, run->threads,
                   run->threads == 1 ? "" : "s", run->precision);
  if (run->devices > 1)
    snprintf(text + n, sizeof text - (size_t)n, "; %d devices train together", run->devices);
  banner_print(to, "device", text);
}

static void banner_print_data(const banner *to, const tn_run_info *run) {
  char text[LINE], samples[32], valid[32], classes[32];
  int n = snprintf(text, sizeof text, "%s: %s samples", run->source, banner_count(samples, run->samples));
  if (run->valid_samples > 0)
    n += snprintf(text + n, sizeof text - (size_t)n, ", %s for validation",
                  banner_count(valid, run->valid_samples));
  if (run->classes > 0)
    n += snprintf(text + n, sizeof text - (size_t)n, ", %s classes", banner_count(classes, run->classes));
  n += snprintf(text + n, sizeof text - (size_t)n, ", batch %lld", (long long)run->data_batch);
  if (run->batch != run->data_batch)
    snprintf(text + n, sizeof text - (size_t)n, ", %s samples an update", banner_count(samples, run->batch));
  banner_print(to, "data", text);
}

static void banner_print_run(const banner *to, const tn_run_info *run) {
  char text[LINE], step[32];
  const char *folder = *run->folder ? run->folder : "nothing is written";
  if (run->resumed)
    snprintf(text, sizeof text, "%s, resumed after step %s%s", folder, banner_count(step, run->first_step),
             run->replayed ? ", with the kernels of its plan.json" : "");
  else
    snprintf(text, sizeof text, "%s%s", folder, *run->folder ? ", new" : "");
  banner_print(to, "run", text);
}

static void banner_print_policy(const banner *to, const tn_run_info *run) {
  char text[LINE];
  if (*run->better_policy == '\0') return;
  snprintf(text, sizeof text,
           "in %s this device has more kernels for ops of this model: `tenon plan` sets both side by side",
           run->better_policy);
  banner_print(to, "note", text);
}

/* A line each; a resumed run says what it does otherwise than before. */
static void banner_print_remarks(const banner *to, const char *remarks) {
  char text[LINE];
  while (*remarks != '\0') {
    size_t n = strcspn(remarks, "\n");
    snprintf(text, sizeof text, "%.*s", (int)n, remarks);
    banner_print(to, "note", text);
    remarks += n + (remarks[n] == '\n');
  }
}

void observer_print_banner(FILE *file, const tn_run_info *run, int columns) {
  const banner all = {file, columns > INDENT && columns < COLUMNS ? (size_t)columns : COLUMNS}, *to = &all;
  char text[LINE], parameters[32], frozen[32];
  banner_print_backend(to, run);
  banner_print_data(to, run);
  snprintf(text, sizeof text, "%s parameters%s%s%s, %.1f MiB of memory planned",
           banner_count(parameters, run->parameters), run->frozen > 0 ? ", " : "",
           run->frozen > 0 ? banner_count(frozen, run->frozen) : "", run->frozen > 0 ? " more frozen" : "",
           (double)run->planned_bytes / 1048576.0);
  banner_print(to, "model", text);
  banner_print_run(to, run);
  banner_print_policy(to, run);
  banner_print_remarks(to, run->remarks);
}
