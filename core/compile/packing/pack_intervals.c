/* core/compile/packing/pack_intervals.c: offsets by greedy placements in several orders.
 *
 * The first order is by decreasing size, each interval in the smallest gap that fits, after Pisarchyk and
 * Lee, "Efficient memory management for deep neural net inference" (2020). Where that takes more than the
 * lower bound, other orders follow. Those by lifetime and by the first step are improved as in Joslin and
 * Clements, "Squeaky wheel optimization" (1999): a placement ends at the first interval that does not fit
 * below the best arena so far, that interval comes earlier in the order, and the placement begins anew. So
 * the large intervals whose steps are crowded come first, and a failure costs few placements. */
#include "core/compile/packing/pack_intervals.h"

#include <stdlib.h>
#include <string.h>

#include "core/compile/packing/place_intervals.h"

/* ---- orders ---- */

static double weigh_size(const tn_live_interval *v) { return (double)tn_interval_aligned(v->bytes); }
static double weigh_lifetime(const tn_live_interval *v) { return (double)v->last - v->first; }
static double weigh_area(const tn_live_interval *v) { return weigh_size(v) * (weigh_lifetime(v) + 1); }
static double weigh_first(const tn_live_interval *v) { return -(double)v->first; }

/* Where an interval goes that did not fit: the order is not used again; to the front; half the way there; or
 * behind those that have failed more often. */
typedef enum packing_promotion {
  PROMOTE_NONE,
  PROMOTE_TO_FRONT,
  PROMOTE_HALFWAY,
  PROMOTE_BY_FAILURES
} packing_promotion;

typedef struct packing_rule {
  double (*weigh)(const tn_live_interval *interval); /* the largest first */
  tn_interval_fit fit;
  packing_promotion promotion;
} packing_rule;

static const packing_rule rules[] = {
    {weigh_size, TN_FIT_SMALLEST, PROMOTE_NONE},         {weigh_size, TN_FIT_LOWEST, PROMOTE_NONE},
    {weigh_area, TN_FIT_SMALLEST, PROMOTE_NONE},         {weigh_area, TN_FIT_LOWEST, PROMOTE_NONE},
    {weigh_lifetime, TN_FIT_LOWEST, PROMOTE_TO_FRONT},   {weigh_first, TN_FIT_LOWEST, PROMOTE_BY_FAILURES},
    {weigh_lifetime, TN_FIT_SMALLEST, PROMOTE_TO_FRONT}, {weigh_first, TN_FIT_SMALLEST, PROMOTE_BY_FAILURES},
    {weigh_first, TN_FIT_LOWEST, PROMOTE_HALFWAY},       {weigh_lifetime, TN_FIT_SMALLEST, PROMOTE_HALFWAY}};
enum { RULES = sizeof rules / sizeof *rules };

/* In orders that are improved, intervals that are so many times smaller than the lower bound come last: they
 * mostly fit into gaps, and placements that fail are short without them. */
enum { SMALL_RATIO = 512 };

typedef struct packing_entry {
  tn_live_interval *interval;
  double weight;
  int32_t failures; /* of a small one that has not failed: -1 */
} packing_entry;

/* Of equal weights the larger interval first, then that with the earlier start, so that chains of equal sizes
 * get one offset. */
static int compare_entries(const void *left, const void *right) {
  const packing_entry *x = left, *y = right;
  const tn_live_interval *a = x->interval, *b = y->interval;
  int64_t bytes_a = tn_interval_aligned(a->bytes), bytes_b = tn_interval_aligned(b->bytes);
  if (x->failures != y->failures) return x->failures > y->failures ? -1 : 1;
  if (x->failures >= 0 && x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
  if (bytes_a != bytes_b) return bytes_a > bytes_b ? -1 : 1;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* ---- one order after another ---- */

typedef struct packing {
  const void *handle;
  tn_live_interval *intervals;
  int32_t n;
  const tn_packing_goal *goal;
  int64_t bound, left;         /* placements that are left */
  packing_entry *order[RULES]; /* NULL: not used yet, or for the last time */
  bool used[RULES];
  tn_occupied_bytes *occupied;
  int64_t arena;   /* of the best packing so far */
  int64_t *offset; /* per interval: in it */
} packing;

/* Many placements seldom come closer to the lower bound than a sixty-fourth. */
static int64_t packing_placements(const packing *p) {
  const tn_packing_goal *goal = p->goal;
  if (goal->only_enough && p->bound > goal->enough) return 0;
  bool hard = goal->only_enough && p->bound > goal->enough - goal->enough / 64;
  return hard && goal->placements > TN_PACK_FEW ? TN_PACK_FEW : goal->placements;
}

static tn_status packing_create(packing *p) {
  int32_t last = 0;
  for (int32_t i = 0; i < p->n; i++)
    if (p->intervals[i].last > last) last = p->intervals[i].last;
  p->arena = INT64_MAX;
  p->offset = tn_alloc(p->handle, tn_size_mul((size_t)p->n, sizeof *p->offset));
  if (p->offset == NULL) return TN_ENOMEM;
  TN_TRY(tn_intervals_lower_bound(p->handle, p->intervals, p->n, last + 1, &p->bound));
  p->left = packing_placements(p);
  return tn_occupied_create(p->handle, last, &p->occupied);
}

static void packing_free(packing *p) {
  for (int32_t i = 0; i < RULES; i++) tn_release(p->handle, p->order[i]);
  tn_occupied_destroy(p->occupied);
  tn_release(p->handle, p->offset);
}

static tn_status packing_sort(packing *p, int32_t rule) {
  packing_entry *order = p->order[rule] =
      tn_alloc(p->handle, tn_size_mul((size_t)p->n, sizeof *p->order[rule]));
  if (order == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < p->n; i++) {
    tn_live_interval *interval = &p->intervals[i];
    bool last = rules[rule].promotion != PROMOTE_NONE && interval->bytes < p->bound / SMALL_RATIO;
    order[i] = (packing_entry){interval, rules[rule].weigh(interval), last ? -1 : 0};
  }
  if (p->n > 0) qsort(order, (size_t)p->n, sizeof *order, compare_entries);
  p->used[rule] = true;
  return TN_OK;
}

/* Places the intervals below `most`. *placed: how many of them fit, up to the first that does not. */
static tn_status packing_place(packing *p, int32_t rule, int64_t most, int32_t *placed) {
  bool fits = true;
  tn_occupied_clear(p->occupied);
  for (*placed = 0; *placed < p->n; ++*placed, p->left--) {
    tn_live_interval *interval = p->order[rule][*placed].interval;
    TN_TRY(tn_occupied_place(p->occupied, interval, rules[rule].fit, most, &fits));
    if (!fits) break;
  }
  p->left--;
  return TN_OK;
}

static int64_t packing_end(const tn_live_interval *interval) {
  return interval->offset + tn_interval_aligned(interval->bytes);
}

/* Keeps the offsets as the best ones. Returns the place in the order of the last interval at the end of the
 * arena. */
static int32_t packing_keep(packing *p, int32_t rule) {
  int32_t highest = 0;
  p->arena = 0;
  for (int32_t i = 0; i < p->n; i++) {
    const tn_live_interval *interval = p->order[rule][i].interval;
    p->offset[interval - p->intervals] = interval->offset;
    if (packing_end(interval) < p->arena) continue;
    p->arena = packing_end(interval);
    highest = i;
  }
  return highest;
}

static void packing_promote(packing *p, int32_t rule, int32_t at) {
  packing_entry *order = p->order[rule], entry = order[at];
  packing_promotion promotion = rules[rule].promotion;
  int32_t to = promotion == PROMOTE_TO_FRONT ? 0 : promotion == PROMOTE_HALFWAY ? at / 2 : at;
  entry.failures++;
  while (promotion == PROMOTE_BY_FAILURES && to > 0 && compare_entries(&entry, &order[to - 1]) < 0) to--;
  memmove(order + to + 1, order + to, (size_t)(at - to) * sizeof *order);
  order[to] = entry;
}

/* One placement by a rule. */
static tn_status packing_try(packing *p, int32_t rule) {
  int64_t most = p->arena < INT64_MAX ? p->arena - TN_INTERVAL_ALIGN : INT64_MAX;
  int32_t placed = 0;
  if (p->used[rule] && p->order[rule] == NULL) return TN_OK;
  if (!p->used[rule]) TN_TRY(packing_sort(p, rule));
  TN_TRY(packing_place(p, rule, most, &placed));
  if (placed == p->n) placed = packing_keep(p, rule);
  if (p->n > 0 && rules[rule].promotion != PROMOTE_NONE) {
    packing_promote(p, rule, placed);
    return TN_OK;
  }
  tn_release(p->handle, p->order[rule]);
  p->order[rule] = NULL;
  return TN_OK;
}

static bool packing_ends(const packing *p) {
  return p->left <= 0 || p->arena <= p->bound || p->arena <= p->goal->enough;
}

static tn_status packing_run(packing *p) {
  TN_TRY(packing_create(p));
  TN_TRY(packing_try(p, 0));
  for (int32_t rule = 1; !packing_ends(p); rule = (rule + 1) % RULES) TN_TRY(packing_try(p, rule));
  for (int32_t i = 0; i < p->n; i++) p->intervals[i].offset = p->offset[i];
  return TN_OK;
}

tn_status tn_intervals_pack(const void *handle, tn_live_interval *intervals, int32_t n,
                            const tn_packing_goal *goal, int64_t *arena) {
  packing p = {.handle = handle, .intervals = intervals, .n = n, .goal = goal};
  tn_status status = packing_run(&p);
  *arena = status == TN_OK ? p.arena : 0;
  packing_free(&p);
  return status;
}

tn_status tn_intervals_lower_bound(const void *handle, const tn_live_interval *intervals, int32_t n,
                                   int32_t n_steps, int64_t *bound) {
  int64_t *change = tn_alloc(handle, ((size_t)n_steps + 1) * sizeof *change), live = 0;
  *bound = 0;
  if (change == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    change[intervals[i].first] += tn_interval_aligned(intervals[i].bytes);
    change[intervals[i].last + 1] -= tn_interval_aligned(intervals[i].bytes);
  }
  for (int32_t s = 0; s < n_steps; s++) {
    live += change[s];
    if (live > *bound) *bound = live;
  }
  tn_release(handle, change);
  return TN_OK;
}
