/* core/data/weighted.c: aliases of weighted samples (Walker, ACM TOMS 1977), made in one pass (Vose, IEEE TSE
 * 1991). Every place stands for two samples; together the places give each sample its part. */
#include "core/data/weighted.h"

#include <math.h>

static tn_status weighted_read(tn_env *env, const tn_source *source, void *self, double *weights, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    weights[i] = -1;
    TN_TRY(source->weight_of(env, self, i, &weights[i]));
    if (!(weights[i] >= 0) || isinf(weights[i]))
      return tn_failf(env, TN_EINVAL, "sample %lld has weight %g, expected a finite number of 0 or more",
                      (long long)i, weights[i]);
  }
  return TN_OK;
}

/* Turns the weights into parts of n, whose mean is 1. Divided by the greatest one first, they have a finite
 * sum. */
static tn_status weighted_scale(tn_env *env, double *weights, int64_t n) {
  double sum = 0, most = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, weights[i]);
  if (most == 0) return tn_failf(env, TN_EINVAL, "all %lld samples have weight 0", (long long)n);
  for (int64_t i = 0; i < n; i++) sum += weights[i] / most;
  for (int64_t i = 0; i < n; i++) weights[i] = weights[i] / most / sum * (double)n;
  return TN_OK;
}

/* Fills places below the mean from those above it. `small` and `large` share one list, from both ends. */
static void weighted_pair(tn_weighted *w, int64_t *list) {
  int64_t n_small = 0, n_large = 0;
  for (int64_t i = 0; i < w->n; i++) {
    w->alias[i] = i;
    if (w->threshold[i] < 1)
      list[n_small++] = i;
    else
      list[w->n - ++n_large] = i;
  }
  while (n_small > 0 && n_large > 0) {
    int64_t small = list[--n_small], large = list[w->n - n_large];
    w->alias[small] = large;
    w->threshold[large] -= 1 - w->threshold[small];
    if (w->threshold[large] >= 1) continue;
    n_large--;
    list[n_small++] = large;
  }
  /* Rounding may leave places on one of the lists: they are whole. */
  while (n_small > 0) w->threshold[list[--n_small]] = 1;
  for (; n_large > 0; n_large--) w->threshold[list[w->n - n_large]] = 1;
}

static tn_status weighted_fill(tn_env *env, const tn_source *source, void *self, tn_weighted *w,
                               int64_t *list) {
  TN_TRY(weighted_read(env, source, self, w->threshold, w->n));
  TN_TRY(weighted_scale(env, w->threshold, w->n));
  weighted_pair(w, list);
  return TN_OK;
}

tn_status tn_weighted_make(tn_env *env, const tn_source *source, void *self, int64_t count, tn_weighted *w) {
  double first;
  *w = (tn_weighted){.n = 0};
  if (source->weight_of == NULL || count < 1) return TN_OK;
  tn_status status = source->weight_of(env, self, 0, &first);
  if (status == TN_EUNAVAILABLE) {
    tn_error_clear(env);
    return TN_OK;
  }
  TN_TRY(status);
  w->n = count;
  w->threshold = tn_alloc(env, tn_size_mul((size_t)count, sizeof(*w->threshold)));
  w->alias = tn_alloc(env, tn_size_mul((size_t)count, sizeof(*w->alias)));
  int64_t *list = tn_alloc(env, tn_size_mul((size_t)count, sizeof(*list)));
  status = w->threshold != NULL && w->alias != NULL && list != NULL
               ? weighted_fill(env, source, self, w, list)
               : TN_ENOMEM;
  tn_release(env, list);
  return status;
}

void tn_weighted_free(const tn_env *env, tn_weighted *w) {
  tn_release(env, w->threshold);
  tn_release(env, w->alias);
}

int64_t tn_weighted_draw(const tn_weighted *w, uint64_t key, int64_t draw) {
  tn_philox drawn = tn_philox_at(key, 0, (uint64_t)draw);
  uint64_t place = (uint64_t)drawn.v[1] << 32 | drawn.v[0], part = (uint64_t)drawn.v[3] << 32 | drawn.v[2];
  int64_t i = (int64_t)((__extension__(unsigned __int128) place * (uint64_t)w->n) >> 64);
  return (double)(part >> 11) * 0x1p-53 < w->threshold[i] ? i : w->alias[i];
}
