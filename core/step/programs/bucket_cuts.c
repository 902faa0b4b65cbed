/* core/step/programs/bucket_cuts.c: see bucket_cuts.h.
 *
 * The gradients stand in the order in which they are ready. The first j of them, as buckets that end with the
 * j-th, are summed at the earliest at
 *
 *   end[j] = min over i < j of  max(end[i], ready[j]) + collectives of the gradients i .. j - 1,
 *
 * since an earlier end of the first i never makes the later buckets end later. Of the divisions that end
 * within the slack, the one with the fewest buckets is found by the same recurrence with a given number of
 * them. */
#include "core/step/programs/bucket_cuts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"

/* Neighbours are kept together so that there are no more than about twice as many. */
enum { MOST_ATOMS = 512 };

typedef struct cut_work {
  tn_env *env;
  const tn_cut_problem *problem;
  tn_arena arena;
  double *ready;  /* per gradient: when it and those before it in its part are ready */
  int32_t *order; /* gradients by that time */
  int32_t *atom;  /* per atom, the place of its first gradient in `order`; and their end */
  int32_t n, n_atoms, n_parts;
  double *cost;  /* [i * (n_atoms + 1) + j]: of the collectives of the atoms i .. j - 1 */
  double *sums;  /* scratch: bytes by part */
  int32_t *from; /* [k * (n_atoms + 1) + j]: the division of j atoms into k + 1 buckets, its last cut */
} cut_work;

static bool cut_allows(const tn_cut_problem *problem, double bytes) {
  return problem->most_bytes == 0 || bytes <= problem->most_bytes;
}

/* ---- the order ---- */

static void cut_find_ready(cut_work *w) {
  const tn_ready_gradient *g = w->problem->gradients;
  w->n_parts = 1;
  for (int32_t i = 0; i < w->n; i++) {
    bool follows = i > 0 && g[i - 1].part == g[i].part;
    w->ready[i] = follows && w->ready[i - 1] > g[i].ready_s ? w->ready[i - 1] : g[i].ready_s;
    if (g[i].part >= w->n_parts) w->n_parts = g[i].part + 1;
  }
}

/* A merge sort: stable, so that equal inputs give equal cuts on every machine. */
static void cut_sort(const cut_work *w, int32_t *list, int32_t n, int32_t *scratch) {
  int32_t half = n / 2, a = 0, b = half;
  if (n < 2) return;
  cut_sort(w, list, half, scratch);
  cut_sort(w, list + half, n - half, scratch);
  for (int32_t i = 0; i < n; i++) {
    bool first = b == n || (a < half && w->ready[list[a]] <= w->ready[list[b]]);
    scratch[i] = first ? list[a++] : list[b++];
  }
  memcpy(list, scratch, (size_t)n * sizeof *list);
}

/* Atoms of at least a MOST_ATOMS-th of all bytes, or else of one gradient each. */
static void cut_make_atoms(cut_work *w) {
  const tn_ready_gradient *g = w->problem->gradients;
  double all = 0, bytes = 0;
  for (int32_t i = 0; i < w->n; i++) all += g[i].bytes;
  double least = w->n > MOST_ATOMS ? all / MOST_ATOMS : 0;
  for (int32_t i = 0; i < w->n; i++) {
    if (i == 0 || bytes >= least) {
      w->atom[w->n_atoms++] = i;
      bytes = 0;
    }
    bytes += g[w->order[i]].bytes;
  }
  w->atom[w->n_atoms] = w->n;
}

/* INFINITY: they are not cut so. */
static double cut_parts_s(const cut_work *w, bool one) {
  double all = 0, bytes = 0;
  for (int32_t p = 0; p < w->n_parts; p++) {
    if (w->sums[p] > 0) all += w->problem->collective_s(w->problem->context, w->sums[p]);
    bytes += w->sums[p];
  }
  return one || cut_allows(w->problem, bytes) ? all : INFINITY;
}

static void cut_fill_costs(cut_work *w) {
  const tn_ready_gradient *g = w->problem->gradients;
  for (int32_t j = 1; j <= w->n_atoms; j++) {
    memset(w->sums, 0, (size_t)w->n_parts * sizeof *w->sums);
    for (int32_t i = j - 1; i >= 0; i--) {
      for (int32_t k = w->atom[i]; k < w->atom[i + 1]; k++)
        w->sums[g[w->order[k]].part] += g[w->order[k]].bytes;
      w->cost[i * (w->n_atoms + 1) + j] = cut_parts_s(w, i == j - 1);
    }
  }
}

static tn_status cut_prepare(cut_work *w) {
  size_t n = (size_t)w->n;
  w->ready = tn_arena_alloc(&w->arena, tn_size_mul(n, sizeof *w->ready));
  w->order = tn_arena_alloc(&w->arena, tn_size_mul(n, sizeof *w->order));
  w->atom = tn_arena_alloc(&w->arena, tn_size_mul(n + 1, sizeof *w->atom));
  int32_t *scratch = tn_arena_alloc(&w->arena, tn_size_mul(n, sizeof *scratch));
  if (w->ready == NULL || w->order == NULL || w->atom == NULL || scratch == NULL) return TN_ENOMEM;
  cut_find_ready(w);
  for (int32_t i = 0; i < w->n; i++) w->order[i] = i;
  cut_sort(w, w->order, w->n, scratch);
  cut_make_atoms(w);
  size_t places = (size_t)w->n_atoms + 1;
  w->cost = tn_arena_alloc(&w->arena, tn_size_mul(places * places, sizeof *w->cost));
  w->from = tn_arena_alloc(&w->arena, tn_size_mul(places * places, sizeof *w->from));
  w->sums = tn_arena_alloc(&w->arena, tn_size_mul((size_t)w->n_parts, sizeof *w->sums));
  if (w->cost == NULL || w->from == NULL || w->sums == NULL) return TN_ENOMEM;
  cut_fill_costs(w);
  return TN_OK;
}

/* ---- the recurrence ---- */

/* The end of the first j atoms whose last bucket begins with atom i, after those before end at `end`. */
static double cut_end_with(const cut_work *w, double end, int32_t i, int32_t j) {
  double ready = w->ready[w->order[w->atom[j] - 1]];
  return (end > ready ? end : ready) + w->cost[i * (w->n_atoms + 1) + j];
}

/* The earliest end of the first j atoms, by those of fewer atoms in `end`; *from: where the last bucket
 * begins. */
static double cut_best(const cut_work *w, const double *end, int32_t j, int32_t *from) {
  double best = INFINITY;
  *from = 0;
  for (int32_t i = 0; i < j; i++) {
    double now = cut_end_with(w, end[i], i, j);
    if (now < best) {
      best = now;
      *from = i;
    }
  }
  return best;
}

/* With as many buckets as it takes. */
static double cut_earliest_end(const cut_work *w, double *end) {
  int32_t from;
  end[0] = 0;
  for (int32_t j = 1; j <= w->n_atoms; j++) end[j] = cut_best(w, end, j, &from);
  return end[w->n_atoms];
}

/* The fewest buckets that end by `limit`. before, end: scratch, by atoms. */
static int32_t cut_fewest(const cut_work *w, double limit, double *before, double *end) {
  int32_t places = w->n_atoms + 1;
  for (int32_t j = 0; j < places; j++) before[j] = j == 0 ? 0 : INFINITY;
  for (int32_t k = 0; k < w->n_atoms; k++) {
    end[0] = INFINITY;
    for (int32_t j = 1; j < places; j++) end[j] = cut_best(w, before, j, &w->from[k * places + j]);
    if (end[w->n_atoms] <= limit) return k + 1;
    memcpy(before, end, (size_t)places * sizeof *end);
  }
  return w->n_atoms;
}

/* ---- the cuts of each part ---- */

/* A gradient begins a bucket where the one before it in its part is in another. */
static void cut_mark(const cut_work *w, int32_t buckets, int32_t *bucket, bool *begins) {
  const tn_ready_gradient *g = w->problem->gradients;
  int32_t places = w->n_atoms + 1, end = w->n_atoms;
  for (int32_t k = buckets - 1; k >= 0; k--) {
    int32_t first = w->from[k * places + end];
    for (int32_t i = w->atom[first]; i < w->atom[end]; i++) bucket[w->order[i]] = k;
    end = first;
  }
  for (int32_t i = 0; i < w->n; i++)
    begins[i] = i == 0 || g[i - 1].part != g[i].part || bucket[i - 1] != bucket[i];
}

/* The bytes of the bucket of a gradient. */
static double cut_bucket_bytes(const cut_work *w, const bool *begins, int32_t i) {
  double bytes = 0;
  while (i > 0 && !begins[i]) i--;
  do bytes += w->problem->gradients[i++].bytes;
  while (i < w->n && !begins[i]);
  return bytes;
}

/* Of several parts, one may need fewer cuts than the others. */
static tn_status cut_merge(const cut_work *w, double limit, bool *begins) {
  const tn_ready_gradient *g = w->problem->gradients;
  for (int32_t i = 1; i < w->n && w->n_parts > 1; i++) {
    if (!begins[i] || g[i - 1].part != g[i].part) continue;
    begins[i] = false;
    double end = tn_cut_end_s(w->env, w->problem, begins);
    if (end < 0) return TN_ENOMEM;
    begins[i] = end > limit || !cut_allows(w->problem, cut_bucket_bytes(w, begins, i));
  }
  return TN_OK;
}

static tn_status cut_solve(cut_work *w, bool *begins) {
  size_t places = (size_t)w->n_atoms + 1;
  double *before = tn_arena_alloc(&w->arena, tn_size_mul(places, sizeof *before));
  double *end = tn_arena_alloc(&w->arena, tn_size_mul(places, sizeof *end));
  int32_t *bucket = tn_arena_alloc(&w->arena, tn_size_mul((size_t)w->n, sizeof *bucket));
  if (before == NULL || end == NULL || bucket == NULL) return TN_ENOMEM;
  double limit = cut_earliest_end(w, end) + w->problem->slack_s;
  cut_mark(w, cut_fewest(w, limit, before, end), bucket, begins);
  return cut_merge(w, limit, begins);
}

tn_status tn_cut_buckets(tn_env *env, const tn_cut_problem *problem, bool *begins) {
  cut_work w = {.env = env, .problem = problem, .arena = tn_arena_new(env), .n = problem->n};
  tn_status status = problem->n > 0 ? cut_prepare(&w) : TN_OK;
  if (status == TN_OK && problem->n > 0) status = cut_solve(&w, begins);
  tn_arena_free(&w.arena);
  return status;
}

/* ---- the end ---- */

typedef struct cut_bucket {
  double ready_s, bytes;
  int32_t first;
} cut_bucket;

static int cut_compare(const void *x, const void *y) {
  const cut_bucket *a = x, *b = y;
  if (a->ready_s != b->ready_s) return a->ready_s < b->ready_s ? -1 : 1;
  return a->first < b->first ? -1 : a->first > b->first;
}

double tn_cut_end_s(tn_env *env, const tn_cut_problem *problem, const bool *begins) {
  cut_bucket *buckets = tn_alloc(env, tn_size_mul((size_t)problem->n + 1, sizeof *buckets));
  int32_t n = 0;
  double end = 0;
  if (buckets == NULL) return -1;
  for (int32_t i = 0; i < problem->n; i++) {
    const tn_ready_gradient *g = &problem->gradients[i];
    if (begins[i]) buckets[n++] = (cut_bucket){.first = i};
    cut_bucket *b = &buckets[n - 1];
    b->bytes += g->bytes;
    if (g->ready_s > b->ready_s) b->ready_s = g->ready_s;
  }
  qsort(buckets, (size_t)n, sizeof *buckets, cut_compare);
  for (int32_t i = 0; i < n; i++)
    end = (end > buckets[i].ready_s ? end : buckets[i].ready_s) +
          problem->collective_s(problem->context, buckets[i].bytes);
  tn_release(env, buckets);
  return end;
}
