/* backends/onednn/kernels/recurrence_loops.c: see recurrence.h. */
#include "backends/onednn/kernels/recurrence.h"
#include "backends/onednn/simd/vector_load.h"
#include "backends/onednn/simd/vector_math.h"
#include "backends/onednn/simd/vector_transpose.h"
#include "backends/shared/integer_math.h"
#include "tenon/attributes.h"

/* TILE_ROWS: rows whose sums, of BLOCKS vectors each, stay in registers beside a line of the panel. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 6 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 3 };
#else
enum { TILE_ROWS = 2 };
#endif
enum {
  BLOCKS = TN_RECURRENCE_BLOCKS,
  AHEAD = 8 /* lines of a panel that are fetched while others are used */
};

/* ---- panels -------------------------------------------------------------------------------------- */

/* V_LANES rows along k, of which n exist, become k lines, `step` floats apart. */
static void recurrence_pack_block(const float *w, int64_t k, int64_t n, int64_t step, float *to) {
  for (int64_t at = 0; at < k; at += V_LANES) {
    vf v[V_LANES];
    int64_t lines = least(V_LANES, k - at);
    for (int64_t i = 0; i < V_LANES; i++) v[i] = i < n ? v_load_upto(w + i * k + at, lines) : (vf){0};
    v_transpose(v);
    for (int64_t i = 0; i < lines; i++) v_store(to + (at + i) * step, v[i]);
  }
}

static void recurrence_pack_rows(const float *w, int64_t k, int64_t step, const int64_t *n, int64_t blocks,
                                 float *panel) {
  for (int64_t b = 0; b < blocks; b++)
    recurrence_pack_block(w + b * step * k, k, n[b], blocks * V_LANES, panel + b * V_LANES);
}

static void recurrence_pack_lines(const float *w, int64_t k, int64_t width, int64_t n, float *panel) {
  for (int64_t p = 0; p < k; p++, w += width, panel += BLOCKS * V_LANES)
    for (int64_t b = 0; b < BLOCKS; b++) {
      int64_t left = n - b * V_LANES;
      v_store(panel + b * V_LANES, left > 0 ? v_load_upto(w + b * V_LANES, left) : (vf){0});
    }
}

/* ---- products ------------------------------------------------------------------------------------ */

/* m rows of n vectors, whose sums stay in registers. */
V_INLINE void recurrence_tile(const tn_recurrence_product *p, int64_t row, const int m, const int n) {
  vf sum[TILE_ROWS][BLOCKS];
  const float *line = p->panel, *a[TILE_ROWS];
#pragma GCC unroll 6
  for (int i = 0; i < m; i++) {
    a[i] = p->a[row + i];
#pragma GCC unroll 4
    for (int j = 0; j < n; j++) sum[i][j] = v_load(p->first[row + i] + j * V_LANES);
  }
  for (int64_t k = 0; k < p->k; k++, line += n * V_LANES) {
    vf b[BLOCKS];
#pragma GCC unroll 4
    for (int j = 0; j < n; j++) {
      __builtin_prefetch(line + (AHEAD * n + j) * V_LANES, 0, 3);
      b[j] = v_load(line + j * V_LANES);
    }
#pragma GCC unroll 6
    for (int i = 0; i < m; i++) {
      vf x = v_splat(a[i][k]);
#pragma GCC unroll 4
      for (int j = 0; j < n; j++) sum[i][j] += x * b[j];
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < m; i++)
#pragma GCC unroll 4
    for (int j = 0; j < n; j++) v_store(p->out[row + i] + j * V_LANES, sum[i][j]);
}

V_INLINE void recurrence_tile_of(const tn_recurrence_product *p, int64_t row, int64_t m, const int n) {
  switch (m) {
  case 1: recurrence_tile(p, row, 1, n); break;
  case 2: recurrence_tile(p, row, 2, n); break;
#if defined(__AVX2__)
  case 3: recurrence_tile(p, row, 3, n); break;
#endif
#if defined(__AVX512F__)
  case 4: recurrence_tile(p, row, 4, n); break;
  case 5: recurrence_tile(p, row, 5, n); break;
  case 6: recurrence_tile(p, row, 6, n); break;
#endif
  default: break;
  }
}

static void recurrence_multiply(const tn_recurrence_product *p) {
  int64_t each = balanced_step(p->rows, TILE_ROWS);
  for (int64_t row = 0; row < p->rows; row += each) {
    if (p->blocks == 3)
      recurrence_tile_of(p, row, least(each, p->rows - row), 3);
    else
      recurrence_tile_of(p, row, least(each, p->rows - row), BLOCKS);
  }
}

/* ---- functions of gates, which are a quarter of a small layer's time: as v_sigmoid and v_tanh, with an
 * estimated reciprocal in place of the division, and a sigmoid that ends at 1e-38 ------------------------ */

V_INLINE vf recurrence_sigmoid(vf x) {
  x = v_clamp(v_neg(x), -87.0f, 87.0f);
  vf t = x * TN_LOG2_E + TN_NEAREST, f = t - TN_NEAREST;
  vf e = v_exp_small((x - f * TN_LN2_HIGH) + f * -TN_LN2_LOW) *
         v_float((v_bits(t) - TN_NEAREST_BITS + 127u) << 23);
  return v_reciprocal(1.0f + e);
}

V_INLINE vf recurrence_squash(vf x) {
  vf a = v_abs(x), z = x * x, near = x + x * (z * v_tanh_part(z));
  vf far = 1.0f - 2.0f * v_reciprocal(v_exp_double(v_clamp(a, 0.0f, 10.0f)) + 1.0f);
  return v_copysign(v_select(v_lt(a, v_splat(0.625f)), near, far), x);
}

/* ---- cells --------------------------------------------------------------------------------------- */

V_INLINE vf recurrence_gate(const tn_recurrence_cell *s, int64_t gate, int64_t u) {
  return v_load_upto(s->x + gate * s->x_step + u, s->n - u) + v_load(s->p + gate * s->p_step + u);
}
V_INLINE void recurrence_keep(const tn_recurrence_cell *s, int64_t number, int64_t u, vf x) {
  if (s->stored != NULL) v_store_upto(s->stored + number * s->stored_step + u, x, s->n - u);
}
V_INLINE void recurrence_set_state(const tn_recurrence_cell *s, int64_t u, vf h) {
  v_store_upto(s->y + u, h, s->n - u);
}

static void recurrence_lstm(const tn_recurrence_cell *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES) {
    vf i = recurrence_sigmoid(recurrence_gate(s, 0, u)), f = recurrence_sigmoid(recurrence_gate(s, 1, u));
    vf g = recurrence_squash(recurrence_gate(s, 2, u)), o = recurrence_sigmoid(recurrence_gate(s, 3, u));
    vf c = f * v_load_upto(s->c + u, s->n - u) + i * g;
    v_store_upto(s->c + u, c, s->n - u);
    recurrence_set_state(s, u, o * recurrence_squash(c));
    recurrence_keep(s, 0, u, i);
    recurrence_keep(s, 1, u, f);
    recurrence_keep(s, 2, u, g);
    recurrence_keep(s, 3, u, o);
    recurrence_keep(s, 4, u, c);
  }
}

static void recurrence_gru(const tn_recurrence_cell *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES) {
    vf r = recurrence_sigmoid(recurrence_gate(s, 0, u)), z = recurrence_sigmoid(recurrence_gate(s, 1, u));
    vf q = v_load(s->p + 2 * s->p_step + u);
    vf m = recurrence_squash(v_load_upto(s->x + 2 * s->x_step + u, s->n - u) + r * q);
    recurrence_set_state(s, u, m + z * (v_load_upto(s->h + u, s->n - u) - m));
    recurrence_keep(s, 0, u, r);
    recurrence_keep(s, 1, u, z);
    recurrence_keep(s, 2, u, m);
    recurrence_keep(s, 3, u, q);
  }
}

static void recurrence_tanh(const tn_recurrence_cell *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES)
    recurrence_set_state(s, u, recurrence_squash(recurrence_gate(s, 0, u)));
}

static void recurrence_relu(const tn_recurrence_cell *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES)
    recurrence_set_state(s, u, v_max(recurrence_gate(s, 0, u), v_splat(0)));
}

/* ---- gradients of cells -------------------------------------------------------------------------- */

/* The gradient of the state behind the step. */
V_INLINE vf recurrence_dh(const tn_recurrence_cell_grad *s, int64_t u, int64_t left) {
  vf dh = v_load_upto(s->dh + u, left);
  return s->dy != NULL ? dh + v_load_upto(s->dy + u, left) : dh;
}
V_INLINE vf recurrence_stored(const tn_recurrence_cell_grad *s, int64_t number, int64_t u, int64_t left) {
  return v_load_upto(s->stored + number * s->n + u, left);
}

static void recurrence_lstm_grad(const tn_recurrence_cell_grad *s) {
  int64_t n = s->n;
  for (int64_t u = 0; u < n; u += V_LANES) {
    int64_t left = n - u;
    vf i = recurrence_stored(s, 0, u, left), f = recurrence_stored(s, 1, u, left),
       g = recurrence_stored(s, 2, u, left), o = recurrence_stored(s, 3, u, left);
    vf squashed = recurrence_squash(recurrence_stored(s, 4, u, left)), dh = recurrence_dh(s, u, left);
    vf c = s->c != NULL ? v_load_upto(s->c + u, left) : (vf){0};
    vf through = v_load_upto(s->dc + u, left) + dh * o * (1.0f - squashed * squashed);
    v_store_upto(s->d + u, through * g * i * (1.0f - i), left);
    v_store_upto(s->d + n + u, through * c * f * (1.0f - f), left);
    v_store_upto(s->d + 2 * n + u, through * i * (1.0f - g * g), left);
    v_store_upto(s->d + 3 * n + u, dh * squashed * o * (1.0f - o), left);
    v_store_upto(s->dc + u, through * f, left);
    v_store_upto(s->dh + u, (vf){0}, left);
  }
}

static void recurrence_gru_grad(const tn_recurrence_cell_grad *s) {
  int64_t n = s->n;
  for (int64_t u = 0; u < n; u += V_LANES) {
    int64_t left = n - u;
    vf r = recurrence_stored(s, 0, u, left), z = recurrence_stored(s, 1, u, left),
       m = recurrence_stored(s, 2, u, left), q = recurrence_stored(s, 3, u, left);
    vf dh = recurrence_dh(s, u, left), dm = dh * (1.0f - z) * (1.0f - m * m);
    vf dr = dm * q * r * (1.0f - r), dz = dh * (v_load_upto(s->h + u, left) - m) * z * (1.0f - z);
    v_store_upto(s->d + u, dr, left);
    v_store_upto(s->d + n + u, dz, left);
    v_store_upto(s->d + 2 * n + u, dm, left);
    v_store_upto(s->p + u, dr, left);
    v_store_upto(s->p + n + u, dz, left);
    v_store_upto(s->p + 2 * n + u, dm * r, left);
    v_store_upto(s->dh + u, dh * z, left);
  }
}

V_INLINE void recurrence_plain_grad(const tn_recurrence_cell_grad *s, int32_t cell) {
  for (int64_t u = 0; u < s->n; u += V_LANES) {
    int64_t left = s->n - u;
    vf y = v_load_upto(s->y + u, left), dh = recurrence_dh(s, u, left);
    vf d = cell == TN_CELL_RELU ? v_select(v_gt(y, v_splat(0)), dh, v_splat(0)) : dh * (1.0f - y * y);
    v_store_upto(s->d + u, d, left);
    v_store_upto(s->dh + u, (vf){0}, left);
  }
}
static void recurrence_tanh_grad(const tn_recurrence_cell_grad *s) { recurrence_plain_grad(s, TN_CELL_TANH); }
static void recurrence_relu_grad(const tn_recurrence_cell_grad *s) { recurrence_plain_grad(s, TN_CELL_RELU); }

const tn_recurrence_loops TN_LOOP(tn_loops_recurrence) = {
    .lanes = V_LANES,
    .pack_rows = recurrence_pack_rows,
    .pack_lines = recurrence_pack_lines,
    .multiply = recurrence_multiply,
    .cell = {[TN_CELL_LSTM] = recurrence_lstm,
             [TN_CELL_GRU] = recurrence_gru,
             [TN_CELL_TANH] = recurrence_tanh,
             [TN_CELL_RELU] = recurrence_relu},
    .cell_grad = {[TN_CELL_LSTM] = recurrence_lstm_grad,
                  [TN_CELL_GRU] = recurrence_gru_grad,
                  [TN_CELL_TANH] = recurrence_tanh_grad,
                  [TN_CELL_RELU] = recurrence_relu_grad}};
