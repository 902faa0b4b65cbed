/* core/compile/rematerialization/offload_times.c: the predicted times of copies.
 *
 * Offloads share the link in the order of their makers, and the midpoint waits for those that have not
 * ended, as the steps behind the last readers of awaited ones do. All times are those of steps that have not
 * waited: where one waits, the link is as far as the step. Fetches begin at the midpoint at the earliest, in
 * the order of their readers; each reader waits for all copies up to its own. A copy also takes a part of the
 * bandwidth of the device's memory, so that of two choices without a wait the one with fewer bytes is
 * cheaper. A price for the link leaves it to the values that are dear to compute again. */
#include "core/compile/rematerialization/offload_times.h"

#include <string.h>

#include "core/compile/kernels/catalog.h"
#include "core/compile/kernels/transfer_kernel.h"

static const tn_device_properties *times_device(const tn_offload_times *t) {
  return &t->r->fb->cover->catalog->target.properties;
}

/* Counting sort. */
static tn_status sort_by_maker(tn_offload_times *t, tn_arena *arena) {
  const tn_forward_backward *fb = t->r->fb;
  int32_t *start = tn_arena_alloc(arena, ((size_t)fb->n_groups + 2) * sizeof *start);
  t->by_maker = tn_arena_alloc(arena, fb->idle.n * sizeof *t->by_maker);
  if (start == NULL || t->by_maker == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < fb->idle.n; i++) start[fb->maker[fb->idle.v[i].value] + 1]++;
  for (int32_t g = 0; g < fb->n_groups; g++) start[g + 1] += start[g];
  for (size_t i = 0; i < fb->idle.n; i++) t->by_maker[start[fb->maker[fb->idle.v[i].value]]++] = (int32_t)i;
  return TN_OK;
}

static void find_last_in_forward(tn_offload_times *t, tn_val v) {
  const tn_forward_backward *fb = t->r->fb;
  t->last[v] = fb->maker[v];
  for (int32_t k = fb->start[v]; k < fb->start[v + 1]; k++)
    if (fb->readers[k] <= fb->midpoint) t->last[v] = fb->readers[k];
}

tn_status tn_offload_times_create(const tn_rematerialization *r, tn_arena *arena, tn_offload_times *t) {
  size_t groups = (size_t)r->fb->n_groups;
  *t = (tn_offload_times){.r = r};
  t->begin_s = tn_arena_alloc(arena, (groups + 1) * sizeof *t->begin_s);
  t->fetch_s = tn_arena_alloc(arena, groups * sizeof *t->fetch_s);
  t->gone_s = tn_arena_alloc(arena, r->fb->n_values * sizeof *t->gone_s);
  t->last = tn_arena_alloc(arena, r->fb->n_values * sizeof *t->last);
  if (t->begin_s == NULL || t->fetch_s == NULL || t->gone_s == NULL || t->last == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < r->fb->idle.n; i++) find_last_in_forward(t, r->fb->idle.v[i].value);
  return sort_by_maker(t, arena);
}

static bool is_copied(const tn_rematerialization *r, tn_val v) {
  return r->choice[v].offloaded && r->fetched[v] >= 0;
}

/* begin_s is first the time of the clones before a group. */
static void predict_groups(tn_offload_times *t) {
  const tn_rematerialization *r = t->r;
  const tn_forward_backward *fb = r->fb;
  double now_s = 0;
  memset(t->begin_s, 0, ((size_t)fb->n_groups + 1) * sizeof *t->begin_s);
  for (int32_t g = 0; g <= fb->midpoint; g++)
    if (r->cloned[g] && r->before[g] < fb->n_groups) t->begin_s[r->before[g]] += fb->groups[g].choice.cost_s;
  for (int32_t g = 0; g < fb->n_groups; g++) {
    t->begin_s[g] += now_s;
    now_s = t->begin_s[g] + fb->groups[g].choice.cost_s;
    if (g == fb->midpoint) t->midpoint_s = now_s;
  }
  t->begin_s[fb->n_groups] = now_s;
}

/* The step behind the last reader waits. Returns when the copy has ended. */
static double await_offload(tn_offload_times *t, tn_val v, double link_s) {
  double read_s = t->begin_s[t->last[v] + 1];
  if (link_s <= read_s) return link_s;
  t->cost_s += link_s - read_s;
  return read_s;
}

/* Returns when the last copy to the host ends, and adds the times of fetches to their readers. */
static double predict_offloads(tn_offload_times *t) {
  const tn_forward_backward *fb = t->r->fb;
  double link_s = 0;
  memset(t->fetch_s, 0, (size_t)fb->n_groups * sizeof *t->fetch_s);
  for (size_t i = 0; i < fb->idle.n; i++) {
    tn_val v = fb->idle.v[t->by_maker[i]].value;
    if (!is_copied(t->r, v)) continue;
    double copy_s = tn_transfer_s(times_device(t), fb->bytes[v]), made_s = t->begin_s[fb->maker[v] + 1];
    link_s = (made_s > link_s ? made_s : link_s) + copy_s;
    if (t->r->choice[v].awaited) link_s = await_offload(t, v, link_s);
    t->gone_s[v] = link_s;
    if (t->r->choice[v].late)
      t->cost_s += copy_s;
    else
      t->fetch_s[t->r->fetched[v]] += copy_s;
    t->cost_s += t->price * copy_s + 2 * (double)fb->bytes[v] / times_device(t)->bytes_per_s;
  }
  return link_s;
}

/* The longest that a reader waits: it delays those behind it as well. */
static double predict_fetches(const tn_offload_times *t) {
  const tn_forward_backward *fb = t->r->fb;
  double link_s = t->midpoint_s, wait_s = 0;
  for (int32_t g = fb->midpoint + 1; g < fb->n_groups; g++) {
    if (t->fetch_s[g] == 0) continue;
    link_s += t->fetch_s[g];
    if (link_s - t->begin_s[g] > wait_s) wait_s = link_s - t->begin_s[g];
  }
  return wait_s;
}

void tn_offload_times_update(tn_offload_times *t) {
  t->cost_s = t->r->cost_s;
  predict_groups(t);
  double offloaded_s = predict_offloads(t);
  if (offloaded_s > t->midpoint_s) t->cost_s += offloaded_s - t->midpoint_s;
  t->cost_s += predict_fetches(t);
}

bool tn_offload_times_away(const tn_offload_times *t, tn_val v, double time_s, bool behind) {
  const tn_forward_backward *fb = t->r->fb;
  if (!is_copied(t->r, v)) return false;
  if (!behind) return t->gone_s[v] <= time_s;
  double copy_s = t->r->choice[v].late ? 0 : tn_transfer_s(times_device(t), fb->bytes[v]);
  double back_s = t->begin_s[t->r->fetched[v]] - copy_s;
  return time_s <= (back_s > t->midpoint_s ? back_s : t->midpoint_s);
}
