/* core/step/values/watch_values.c: the sums of parameters as norms, ratios and histograms of groups, which
 * the host adds up in f64. */
#include "core/step/values/watch_values.h"

#include <math.h>
#include <string.h>

#include "core/step/update/watch.h"

enum { WATCH_METRICS = 3 };

/* ---- groups ---- */

/* The number of a group, which is added where it is new. */
static int32_t watch_group_named(tn_watch_values *w, const char *name) {
  for (int32_t i = 1; i < w->n_groups; i++)
    if (tn_text_equal(w->names[i], name)) return i;
  w->names[w->n_groups] = name;
  return w->n_groups++;
}

/* The bytes in front of the first part in which the names differ. */
static size_t watch_common(const tn_watched_parameters *params) {
  size_t common = 0, n = 0;
  for (; params->n > 1; n++) {
    char c = params->paths[0][n];
    for (int32_t i = 1; i < params->n; i++)
      if (params->paths[i][n] != c) return common;
    if (c == '\0') return common;
    if (c == '.') common = n + 1;
  }
  return common;
}

/* Up to the end of that part, and of a number behind it: "h.0" of "h.0.attn.weight". */
static const char *watch_block(tn_arena *arena, const char *path, size_t common) {
  size_t n = common + strcspn(path + common, "."),
         digits = path[n] == '.' ? strspn(path + n + 1, "0123456789") : 0;
  if (digits > 0 && path[n + 1 + digits] == '.') n += 1 + digits;
  return tn_arena_printf(arena, "%.*s", (int)n, path);
}

/* The name of a parameter's group; NULL: out of memory, "": it has none. */
static const char *watch_group_name(tn_arena *arena, const tn_settings *s, const char *path, size_t common) {
  if (tn_text_equal(s->run.watch_groups, "parameters")) return path;
  if (tn_text_equal(s->run.watch_groups, "blocks")) return watch_block(arena, path, common);
  for (int32_t i = 0; i < s->watch_patterns.n; i++)
    if (tn_text_glob(s->watch_patterns.v[i], path)) return s->watch_patterns.v[i];
  return "";
}

static tn_status watch_find_groups(tn_run *run, tn_program_set *set, tn_watch_values *w) {
  size_t n = (size_t)w->params->n, common = watch_common(w->params);
  w->names = tn_arena_alloc(&set->arena, tn_size_mul(n + 1, sizeof *w->names));
  w->group_of = tn_arena_alloc(&set->arena, tn_size_mul(n + 1, sizeof *w->group_of));
  if (w->names == NULL || w->group_of == NULL) return TN_ENOMEM;
  w->n_groups = 1;
  for (int32_t i = w->params->n - 1; i >= 0; i--) { /* about the order of the model */
    const char *name = watch_group_name(&set->arena, &run->settings, w->params->paths[i], common);
    if (name == NULL) return TN_ENOMEM;
    w->group_of[i] = *name != '\0' ? watch_group_named(w, name) : 0;
  }
  return TN_OK;
}

/* ---- the values ---- */

static tn_status watch_name_metrics(tn_arena *arena, tn_watch_values *w) {
  static const char *const kinds[WATCH_METRICS] = {"gradient_norm", "weight_norm", "update_ratio"};
  w->n_metrics = WATCH_METRICS * w->n_groups;
  w->metrics = tn_arena_alloc(arena, tn_size_mul((size_t)w->n_metrics, sizeof *w->metrics));
  if (w->metrics == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < w->n_metrics; i++) {
    w->metrics[i].name =
        tn_arena_printf(arena, "%s/%s", kinds[i % WATCH_METRICS], w->names[i / WATCH_METRICS]);
    if (w->metrics[i].name == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* The upper limits of the buckets. */
static const double *watch_limits(tn_arena *arena) {
  double *limits = tn_arena_alloc(arena, TN_WATCH_FINITE * sizeof *limits);
  for (int32_t i = 0; limits != NULL && i < TN_WATCH_FINITE; i++) {
    int32_t steps = i - TN_WATCH_MAGNITUDES; /* below 0 the limit nearer to 0 */
    double magnitude = exp2(TN_WATCH_LEAST + (double)(steps >= 0 ? steps : -steps - 1) / TN_WATCH_PER_OCTAVE);
    limits[i] = steps >= 0 ? magnitude : -magnitude;
  }
  return limits;
}

static tn_status watch_name_histograms(tn_arena *arena, tn_watch_values *w) {
  static const char *const kinds[] = {"gradients", "weights"};
  const double *limits = watch_limits(arena);
  w->n_histograms = 2 * (w->n_groups - 1);
  w->histograms = tn_arena_alloc(arena, tn_size_mul((size_t)w->n_histograms + 1, sizeof *w->histograms));
  if (w->histograms == NULL || limits == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < w->n_histograms; i++) {
    tn_histogram *h = &w->histograms[i];
    h->name = tn_arena_printf(arena, "%s/%s", kinds[i % 2], w->names[1 + i / 2]);
    h->counts = tn_arena_alloc(arena, TN_WATCH_FINITE * sizeof *h->counts);
    if (h->name == NULL || h->counts == NULL) return TN_ENOMEM;
    h->n_buckets = TN_WATCH_FINITE;
    h->limits = limits;
  }
  return TN_OK;
}

tn_status tn_watch_values_bind(tn_run *run, tn_program_set *set, tn_executor *executor, int32_t phase,
                               int32_t slots, tn_watch_values *w) {
  int32_t index = set->index[tn_phase_program(TN_PROGRAM_WATCH, phase)];
  *w = (tn_watch_values){.params = &set->watched[phase]};
  TN_TRY(watch_find_groups(run, set, w));
  w->names[0] = run->settings.n_turns > 0 ? run->settings.turns[phase].name : "all";
  w->sums = tn_arena_alloc(&set->arena, tn_size_mul((size_t)slots, sizeof *w->sums));
  w->counts = tn_arena_alloc(&set->arena, tn_size_mul((size_t)slots, sizeof *w->counts));
  if (w->sums == NULL || w->counts == NULL) return TN_ENOMEM;
  for (int32_t s = 0; s < slots; s++) {
    w->sums[s] = tn_executor_output(executor, index, s, TN_OUTPUT_WATCH_SUMS);
    w->counts[s] = tn_executor_output(executor, index, s, TN_OUTPUT_WATCH_COUNTS);
  }
  TN_TRY(watch_name_metrics(&set->arena, w));
  return run->settings.run.watch_histograms ? watch_name_histograms(&set->arena, w) : TN_OK;
}

/* ---- a step ---- */

/* Adds the squares of a parameter to those of a group. */
static void watch_add_squares(tn_watch_values *w, int32_t group, const float *sums) {
  tn_metric *to = w->metrics + WATCH_METRICS * group;
  for (int32_t k = 0; k < WATCH_METRICS; k++) to[k].value += (double)sums[TN_WATCH_SQUARES + k];
}

/* `range`: the least, the greatest and the sum of the numbers. */
static void watch_add_histogram(tn_histogram *h, const float *range, double squares, const int32_t *counts) {
  double *to = (double *)(uintptr_t)h->counts;
  for (int32_t i = 0; i < TN_WATCH_FINITE; i++) {
    to[i] += counts[i];
    h->n += counts[i];
  }
  h->min = fmin(h->min, (double)range[0]);
  h->max = fmax(h->max, (double)range[1]);
  h->sum += (double)range[2];
  h->squares += squares;
}

static void watch_reset(tn_watch_values *w) {
  for (int32_t i = 0; i < w->n_metrics; i++) w->metrics[i].value = 0;
  for (int32_t i = 0; i < w->n_histograms; i++) {
    tn_histogram *h = &w->histograms[i];
    memset((double *)(uintptr_t)h->counts, 0, TN_WATCH_FINITE * sizeof *h->counts);
    h->n = 0;
    h->min = INFINITY;
    h->max = -INFINITY;
    h->sum = h->squares = 0;
  }
}

/* Sums of squares become norms, and that of the update its ratio to the weights. */
static void watch_close(tn_watch_values *w, bool skipped) {
  for (int32_t g = 0; g < w->n_groups; g++) {
    tn_metric *m = w->metrics + WATCH_METRICS * g;
    for (int32_t k = 0; k < WATCH_METRICS; k++) m[k].value = sqrt(m[k].value);
    m[2].value = skipped || m[2].value == 0 ? 0 : m[2].value / m[1].value;
  }
}

void tn_watch_values_read(tn_watch_values *w, int32_t slot, bool skipped) {
  const int32_t *counts = w->counts[slot];
  watch_reset(w);
  for (int32_t i = 0; i < w->params->n; i++) {
    const float *sums = w->sums[slot] + (size_t)i * TN_WATCH_SUMS;
    int32_t group = w->group_of[i];
    watch_add_squares(w, 0, sums);
    if (group == 0) continue;
    watch_add_squares(w, group, sums);
    for (int32_t k = 0; k < 2 && counts != NULL; k++)
      watch_add_histogram(&w->histograms[2 * (group - 1) + k], sums + TN_WATCH_RANGES + 3 * k,
                          (double)sums[TN_WATCH_SQUARES + k],
                          counts + (size_t)(2 * i + k) * TN_WATCH_BUCKETS);
  }
  watch_close(w, skipped);
}
