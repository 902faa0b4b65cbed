/* core/compile/packing/place_intervals.c: see place_intervals.h. */
#include "core/compile/packing/place_intervals.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"

/* ---- occupied bytes ---- */

typedef struct byte_range {
  int64_t first, end;
} byte_range;

/* Disjoint, sorted, and with bytes between each two. */
typedef TN_VEC(byte_range) byte_ranges;

/* A node of the segment tree. A placed interval is divided among the highest nodes whose steps it covers. */
typedef struct time_node {
  byte_ranges covered; /* the bytes of intervals at this node */
  byte_ranges any;     /* and of those at nodes below */
} time_node;

/* Placed intervals in a segment tree over the steps: node i has the halves 2 i and 2 i + 1, and node 1 has
 * all steps. Intervals that lie side by side in the arena become one range, so a tight packing of many
 * intervals has few. */
struct tn_occupied_bytes {
  const void *handle;
  time_node *node;
  int32_t steps;     /* a power of two */
  byte_ranges found; /* those that are occupied at some step of an interval */
};

tn_status tn_occupied_create(const void *handle, int32_t last, tn_occupied_bytes **occupied) {
  tn_occupied_bytes *o = *occupied = tn_alloc(handle, sizeof *o);
  if (o == NULL) return TN_ENOMEM;
  *o = (tn_occupied_bytes){.handle = handle, .steps = 1};
  while (o->steps <= last) o->steps *= 2;
  o->node = tn_alloc(handle, tn_size_mul(2 * (size_t)o->steps, sizeof *o->node));
  if (o->node != NULL) return TN_OK;
  tn_release(handle, o);
  *occupied = NULL;
  return TN_ENOMEM;
}

void tn_occupied_destroy(tn_occupied_bytes *o) {
  if (o == NULL) return;
  for (int32_t i = 0; i < 2 * o->steps; i++) {
    tn_vec_free(o->handle, &o->node[i].covered);
    tn_vec_free(o->handle, &o->node[i].any);
  }
  tn_vec_free(o->handle, &o->found);
  tn_release(o->handle, o->node);
  tn_release(o->handle, o);
}

void tn_occupied_clear(tn_occupied_bytes *o) {
  for (int32_t i = 0; i < 2 * o->steps; i++) o->node[i].covered.n = o->node[i].any.n = 0;
}

/* The first range that ends at or behind an offset. */
static size_t find_range(const byte_ranges *ranges, int64_t offset) {
  size_t low = 0, high = ranges->n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (ranges->v[middle].end < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Adds a range, which becomes one with those that it touches. */
static tn_status add_range(const void *handle, byte_ranges *ranges, byte_range new) {
  TN_TRY(tn_vec_reserve(handle, ranges, ranges->n + 1));
  size_t at = find_range(ranges, new.first), end = at;
  for (; end < ranges->n && ranges->v[end].first <= new.end; end++) {
    const byte_range *touched = &ranges->v[end];
    if (touched->first < new.first) new.first = touched->first;
    if (touched->end > new.end) new.end = touched->end;
  }
  memmove(ranges->v + at + 1, ranges->v + end, (ranges->n - end) * sizeof *ranges->v);
  ranges->v[at] = new;
  ranges->n -= end - at;
  ranges->n++;
  return TN_OK;
}

/* A walk down the tree to the nodes that an interval covers. */
typedef struct time_walk {
  tn_occupied_bytes *o;
  const tn_live_interval *interval;
  tn_status (*visit)(struct time_walk *walk, time_node *node, bool covers);
} time_walk;

static tn_status walk_steps(time_walk *w, int32_t node, int32_t first, int32_t last) {
  if (w->interval->last < first || w->interval->first > last) return TN_OK;
  bool covers = w->interval->first <= first && w->interval->last >= last;
  TN_TRY(w->visit(w, &w->o->node[node], covers));
  if (covers) return TN_OK;
  int32_t middle = first + (last - first) / 2;
  TN_TRY(walk_steps(w, 2 * node, first, middle));
  return walk_steps(w, 2 * node + 1, middle + 1, last);
}

static tn_status occupy_node(time_walk *w, time_node *node, bool covers) {
  byte_range bytes = {w->interval->offset, w->interval->offset + tn_interval_aligned(w->interval->bytes)};
  if (covers) TN_TRY(add_range(w->o->handle, &node->covered, bytes));
  return add_range(w->o->handle, &node->any, bytes);
}

/* Intervals live at the same time are at the nodes that the interval covers, below, or above them. */
static tn_status collect_node(time_walk *w, time_node *node, bool covers) {
  const byte_ranges *ranges = covers ? &node->any : &node->covered;
  for (size_t i = 0; i < ranges->n; i++) TN_TRY(tn_vec_push(w->o->handle, &w->o->found, ranges->v[i]));
  return TN_OK;
}

static int compare_ranges(const void *left, const void *right) {
  const byte_range *a = left, *b = right;
  return (a->first > b->first) - (a->first < b->first);
}

static tn_status collect_occupied(tn_occupied_bytes *o, const tn_live_interval *interval) {
  time_walk walk = {o, interval, collect_node};
  o->found.n = 0;
  TN_TRY(walk_steps(&walk, 1, 0, o->steps - 1));
  if (o->found.n > 0) qsort(o->found.v, o->found.n, sizeof *o->found.v, compare_ranges);
  return TN_OK;
}

/* ---- placement ---- */

/* The offset of the gap; the end of the occupied bytes if none fits. */
static int64_t find_gap_offset(const byte_ranges *occupied, int64_t want, tn_interval_fit fit) {
  int64_t end = 0, best = -1, best_gap = INT64_MAX;
  for (size_t i = 0; i < occupied->n && (fit == TN_FIT_SMALLEST || best < 0); i++) {
    int64_t gap = occupied->v[i].first - end;
    if (gap >= want && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    if (occupied->v[i].end > end) end = occupied->v[i].end;
  }
  return best >= 0 ? best : end;
}

tn_status tn_occupied_place(tn_occupied_bytes *o, tn_live_interval *interval, tn_interval_fit fit,
                            int64_t most, bool *placed) {
  int64_t bytes = tn_interval_aligned(interval->bytes);
  time_walk walk = {o, interval, occupy_node};
  TN_TRY(collect_occupied(o, interval));
  interval->offset = find_gap_offset(&o->found, bytes, fit);
  *placed = interval->offset + bytes <= most;
  return *placed ? walk_steps(&walk, 1, 0, o->steps - 1) : TN_OK;
}
