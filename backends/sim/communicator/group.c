/* backends/sim/communicator/group.c: the ranks of a communicator: arrival, failure, leaving. */
#include "backends/sim/communicator/group.h"

#include <stdio.h>

#include "backends/shared/clock.h"

/* Between two looks at the run while ranks are waited for. */
static const double GROUP_LOOK_S = 0.05;

/* ---- failure ---- */

void tn_sim_group_wake(tn_sim_group *g) {
  pthread_cond_broadcast(&g->changed);
  for (int32_t r = 0; r < g->ranks; r++)
    if (g->parts[r].native != NULL) g->parts[r].native->wake(g->parts[r].native->device);
}

void tn_sim_group_fail(tn_sim_group *g, const char *text) {
  pthread_mutex_lock(&g->lock);
  if (!atomic_load(&g->failed)) snprintf(g->text, sizeof g->text, "%s", text);
  atomic_store(&g->failed, true);
  tn_sim_group_wake(g);
  pthread_mutex_unlock(&g->lock);
}

void tn_sim_group_abort(tn_sim_group *g, int32_t rank) {
  char text[64];
  snprintf(text, sizeof text, "rank %d has given up", (int)rank);
  atomic_store(&g->aborted, true);
  tn_sim_group_fail(g, text);
  pthread_mutex_lock(&g->lock);
  for (int32_t r = 0; r < g->ranks; r++)
    if (g->parts[r].native != NULL) g->parts[r].native->release(g->parts[r].native->device);
  pthread_mutex_unlock(&g->lock);
}

tn_status tn_sim_group_status(tn_env *env, tn_sim_group *g) {
  if (!atomic_load(&g->failed)) return TN_OK;
  pthread_mutex_lock(&g->lock);
  tn_status status = tn_fail(env, TN_ECOMM, NULL, "sim: %s", g->text);
  pthread_mutex_unlock(&g->lock);
  return status;
}

/* ---- enter, leave ---- */

tn_status tn_sim_group_new(tn_env *env, tn_sim_group **group) {
  tn_sim_group *g = tn_new(env, sizeof *g);
  *group = g;
  if (g == NULL) return TN_ENOMEM;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return TN_OK;
}

void tn_sim_group_leave(tn_env *env, tn_sim_part *p) {
  tn_sim_group *g = p->group;
  pthread_mutex_lock(&g->lock);
  p->native = NULL;
  bool last = ++g->left == g->ranks;
  pthread_mutex_unlock(&g->lock);
  if (!last) return;
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
  tn_delete(env, g);
}

/* "1, 3": the ranks that have not entered. The lock must be held. */
static void group_list_missing(const tn_sim_group *g, char *text, size_t size) {
  size_t n = 0;
  text[0] = '\0';
  for (int32_t r = 0; r < g->ranks; r++)
    if (g->parts[r].native == NULL && n < size)
      n += (size_t)snprintf(text + n, size - n, "%s%d", n > 0 ? ", " : "", (int)r);
}

/* Waits for a change, at most a moment: nothing signals that the run has failed. */
static void group_await_change(tn_sim_group *g) {
  struct timespec until = tn_monotonic_in(GROUP_LOOK_S);
  pthread_cond_timedwait(&g->changed, &g->lock, &until);
}

static bool group_run_has_failed(const tn_comm_place *place) {
  return place->has_failed != NULL && place->has_failed(place);
}

/* Waits until all ranks have entered. The lock must be held. */
static void group_await_all(tn_sim_group *g, const tn_comm_place *place) {
  char absent[64];
  double until_s = tn_monotonic_s() + place->timeout_s;
  bool lost = false;
  while (g->present < g->ranks && !atomic_load(&g->failed) && !lost && tn_monotonic_s() < until_s) {
    group_await_change(g);
    lost = group_run_has_failed(place);
  }
  if (g->present == g->ranks || atomic_load(&g->failed)) return;
  group_list_missing(g, absent, sizeof absent);
  if (lost)
    snprintf(g->text, sizeof g->text, "the run has failed before rank %s had come", absent);
  else
    snprintf(g->text, sizeof g->text, "of %d ranks, %s did not come within %g s", (int)g->ranks, absent,
             place->timeout_s);
  atomic_store(&g->failed, true);
}

tn_status tn_sim_group_enter(tn_env *env, tn_sim_group *g, const tn_sim_part *from, int32_t ranks,
                             tn_sim_part **part) {
  tn_sim_part *p = &g->parts[from->rank];
  pthread_mutex_lock(&g->lock);
  g->ranks = ranks;
  p->group = g;
  p->rank = from->rank;
  p->timeout_s = from->timeout_s;
  p->silent = from->silent;
  p->device = from->device;
  p->native = from->native;
  g->present++;
  pthread_cond_broadcast(&g->changed);
  group_await_all(g, from->place);
  if (atomic_load(&g->failed)) tn_sim_group_wake(g);
  pthread_mutex_unlock(&g->lock);
  tn_status status = tn_sim_group_status(env, g);
  *part = status == TN_OK ? p : NULL;
  if (status != TN_OK) tn_sim_group_leave(env, p);
  return status;
}
