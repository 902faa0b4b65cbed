/* backends/onednn/own/attention_loops.c: see attention.h. */
#include "own/attention.h"

#include <math.h>

#include "own/vector_math.h"

enum { TILE = TN_ATTENTION_TILE };

/* Scales a row, and hides what it does not see. */
static void scale_row(const tn_attention_tile *t, int64_t i, float *row) {
  vf scale = v_all(t->scale);
  for (int64_t j = 0; j < TILE; j += V_LANES) v_put(row + j, v_get(row + j) * scale);
  for (int64_t j = t->sees[i]; j < TILE; j++) row[j] = -INFINITY;
}

static float largest_of(const float *row, float most) {
  vf v = v_get(row);
  for (int64_t j = V_LANES; j < TILE; j += V_LANES) v = v_larger(v, v_get(row + j));
  for (int32_t l = 0; l < V_LANES; l++) most = v[l] > most || v[l] != v[l] ? v[l] : most;
  return most;
}

static float exp_row(float *row, float minus) {
  vf sum = v_all(0.0f), m = v_all(minus);
  float all = 0;
  for (int64_t j = 0; j < TILE; j += V_LANES) {
    vf e = v_exp(v_get(row + j) - m);
    sum += e;
    v_put(row + j, e);
  }
  for (int32_t l = 0; l < V_LANES; l++) all += sum[l];
  return all;
}

static void soften(const tn_attention_tile *t, float *largest, float *sum, float *fade) {
  for (int64_t i = 0; i < t->rows; i++) {
    float *row = t->scores + i * TILE;
    scale_row(t, i, row);
    float most = largest_of(row, largest[i]);
    fade[i] = expf(largest[i] - most);
    largest[i] = most;
    sum[i] = sum[i] * fade[i] + exp_row(row, most);
  }
}

static void recall(const tn_attention_tile *t, const float *lse) {
  for (int64_t i = 0; i < t->rows; i++) {
    float *row = t->scores + i * TILE;
    scale_row(t, i, row);
    exp_row(row, lse[i]);
  }
}

static void differ(const tn_attention_tile *p, float *d, const float *delta) {
  for (int64_t i = 0; i < p->rows; i++) {
    const float *row = p->scores + i * TILE;
    for (int64_t j = 0; j < TILE; j += V_LANES) {
      float *at = d + i * TILE + j;
      v_put(at, v_get(row + j) * (v_get(at) - v_all(delta[i])) * v_all(p->scale));
    }
  }
}

static void gather(float *y, const float *more, const float *fade, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) {
    float f = fade != NULL ? fade[i] : 1.0f;
    for (int64_t j = 0; j < width; j++) y[i * width + j] = f * y[i * width + j] + more[i * width + j];
  }
}

static void finish(float *y, float *lse, const float *largest, const float *sum, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) {
    float by = 1.0f / sum[i];
    for (int64_t j = 0; j < width; j++) y[i * width + j] *= by;
    lse[i] = largest[i] + logf(sum[i]);
  }
}

static void dot(const float *x, const float *y, float *delta, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) {
    float lanes[V_LANES] = {0}, all = 0;
    int64_t j = 0;
    vf sum = v_get(lanes);
    for (; j + V_LANES <= width; j += V_LANES) sum += v_get(x + i * width + j) * v_get(y + i * width + j);
    for (int32_t l = 0; l < V_LANES; l++) all += sum[l];
    for (; j < width; j++) all += x[i * width + j] * y[i * width + j];
    delta[i] = all;
  }
}

static void turn(const float *from, float *to, int64_t n, int64_t width) {
  for (int64_t j = 0; j < width; j++) {
    for (int64_t i = 0; i < n; i++) to[j * TILE + i] = from[i * width + j];
    for (int64_t i = n; i < TILE; i++) to[j * TILE + i] = 0;
  }
}

extern const tn_attention_loops TN_LOOP(tn_loops_attention);
const tn_attention_loops TN_LOOP(tn_loops_attention) = {soften, recall, differ, gather, finish, dot, turn};
