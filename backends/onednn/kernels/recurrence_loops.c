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

V_INLINE vf recurrence_load(int32_t dtype, const void *base, int64_t at, int64_t n) {
  return v_load_upto_as(dtype, base, at, n, 0);
}

/* V_LANES rows along k from element `at` on, of which n exist, become k lines, `step` floats apart. */
static void recurrence_pack_block(int32_t dtype, const void *w, int64_t at, int64_t k, int64_t n,
                                  int64_t step, float *to) {
  for (int64_t line = 0; line < k; line += V_LANES) {
    vf v[V_LANES];
    int64_t lines = least(V_LANES, k - line);
    for (int64_t i = 0; i < V_LANES; i++)
      v[i] = i < n ? recurrence_load(dtype, w, at + i * k + line, lines) : (vf){0};
    v_transpose(v);
    for (int64_t i = 0; i < lines; i++) v_store(to + (line + i) * step, v[i]);
  }
}

static void recurrence_pack_rows(int32_t dtype, const void *w, int64_t at, int64_t k, int64_t step,
                                 const int64_t *n, int64_t blocks, float *panel) {
  for (int64_t b = 0; b < blocks; b++)
    recurrence_pack_block(dtype, w, at + b * step * k, k, n[b], blocks * V_LANES, panel + b * V_LANES);
}

static void recurrence_pack_lines(int32_t dtype, const void *w, int64_t at, int64_t k, int64_t width,
                                  int64_t n, float *panel) {
  for (int64_t p = 0; p < k; p++, at += width, panel += BLOCKS * V_LANES)
    for (int64_t b = 0; b < BLOCKS; b++) {
      int64_t left = n - b * V_LANES;
      v_store(panel + b * V_LANES, left > 0 ? recurrence_load(dtype, w, at + b * V_LANES, left) : (vf){0});
    }
}

static vu recurrence_pair_half(const uint16_t *from, int64_t n) {
  vh x = n >= V_LANES ? v_load_h(from) : v_load_h_part(from, n);
  return __builtin_convertvector(x, vu);
}

static void recurrence_pack_pairs(const void *w, int64_t at, int64_t k, int64_t width, int64_t n,
                                  float *panel) {
  const uint16_t *row = (const uint16_t *)w + at;
  for (int64_t p = 0; p < k; p += 2, row += 2 * width)
    for (int64_t b = 0; b < BLOCKS; b++, panel += V_LANES) {
      int64_t first = b * V_LANES, left = n - first;
      vu pair = {0};
      if (left > 0)
        pair = recurrence_pair_half(row + first, left) | recurrence_pair_half(row + width + first, left)
                                                             << 16;
      v_store_u(panel, pair);
    }
}

/* ---- conversions --------------------------------------------------------------------------------- */

static void recurrence_widen(int32_t dtype, const void *from, int64_t at, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i += V_LANES)
    v_store_upto(to + i, recurrence_load(dtype, from, at + i, n - i), n - i);
}

static void recurrence_narrow(int32_t dtype, const float *from, int64_t n, void *to, int64_t at) {
  for (int64_t i = 0; i < n; i += V_LANES)
    v_store_upto_as(dtype, to, at + i, n - i, v_load_upto(from + i, n - i));
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

V_INLINE vf recurrence_input(int32_t dtype, const tn_recurrence_cell *s, int64_t gate, int64_t u) {
  return recurrence_load(s->x_is_f32 ? TN_F32 : dtype, s->x, gate * s->x_step + u, s->n - u);
}
V_INLINE vf recurrence_gate(int32_t dtype, const tn_recurrence_cell *s, int64_t gate, int64_t u) {
  return recurrence_input(dtype, s, gate, u) + v_load(s->p + gate * s->p_step + u);
}
V_INLINE void recurrence_keep(int32_t dtype, const tn_recurrence_cell *s, int64_t number, int64_t u, vf x) {
  if (s->stored != NULL) v_store_upto_as(dtype, s->stored, number * s->stored_step + u, s->n - u, x);
}
V_INLINE void recurrence_set_state(int32_t dtype, const tn_recurrence_cell *s, int64_t u, vf h) {
  v_store_upto(s->next + u, h, s->n - u);
  if (dtype != TN_F32) v_store_upto_as(dtype, s->y, u, s->n - u, h);
}

V_INLINE void recurrence_lstm(int32_t dtype, const tn_recurrence_cell *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES) {
    vf i = recurrence_sigmoid(recurrence_gate(dtype, s, 0, u)),
       f = recurrence_sigmoid(recurrence_gate(dtype, s, 1, u)),
       g = recurrence_squash(recurrence_gate(dtype, s, 2, u)),
       o = recurrence_sigmoid(recurrence_gate(dtype, s, 3, u));
    vf c = f * v_load_upto(s->c + u, s->n - u) + i * g;
    v_store_upto(s->c + u, c, s->n - u);
    recurrence_set_state(dtype, s, u, o * recurrence_squash(c));
    recurrence_keep(dtype, s, 0, u, i);
    recurrence_keep(dtype, s, 1, u, f);
    recurrence_keep(dtype, s, 2, u, g);
    recurrence_keep(dtype, s, 3, u, o);
    recurrence_keep(dtype, s, 4, u, c);
  }
}

V_INLINE void recurrence_gru(int32_t dtype, const tn_recurrence_cell *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES) {
    vf r = recurrence_sigmoid(recurrence_gate(dtype, s, 0, u)),
       z = recurrence_sigmoid(recurrence_gate(dtype, s, 1, u)), q = v_load(s->p + 2 * s->p_step + u);
    vf m = recurrence_squash(recurrence_input(dtype, s, 2, u) + r * q);
    recurrence_set_state(dtype, s, u, m + z * (v_load_upto(s->h + u, s->n - u) - m));
    recurrence_keep(dtype, s, 0, u, r);
    recurrence_keep(dtype, s, 1, u, z);
    recurrence_keep(dtype, s, 2, u, m);
    recurrence_keep(dtype, s, 3, u, q);
  }
}

V_INLINE void recurrence_tanh(int32_t dtype, const tn_recurrence_cell *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES)
    recurrence_set_state(dtype, s, u, recurrence_squash(recurrence_gate(dtype, s, 0, u)));
}

V_INLINE void recurrence_relu(int32_t dtype, const tn_recurrence_cell *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES)
    recurrence_set_state(dtype, s, u, v_max(recurrence_gate(dtype, s, 0, u), v_splat(0)));
}

/* ---- gradients of cells -------------------------------------------------------------------------- */

/* The gradient of the state behind the step. */
V_INLINE vf recurrence_dh(int32_t dtype, const tn_recurrence_cell_grad *s, int64_t u, int64_t left) {
  vf dh = v_load_upto(s->dh + u, left);
  return s->dy != NULL ? dh + recurrence_load(dtype, s->dy, u, left) : dh;
}
V_INLINE vf recurrence_stored(int32_t dtype, const tn_recurrence_cell_grad *s, int64_t number, int64_t u,
                              int64_t left) {
  return recurrence_load(dtype, s->stored, number * s->n + u, left);
}
/* The gradient of a gate, whose parts of the input and of the state are the same. */
V_INLINE void recurrence_set_gate(int32_t dtype, const tn_recurrence_cell_grad *s, int64_t gate, int64_t u,
                                  int64_t left, vf d) {
  v_store_upto_as(dtype, s->d, gate * s->n + u, left, d);
  if (dtype != TN_F32) v_store_upto(s->p + gate * s->n + u, d, left);
}

V_INLINE void recurrence_lstm_grad(int32_t dtype, const tn_recurrence_cell_grad *s) {
  for (int64_t u = 0; u < s->n; u += V_LANES) {
    int64_t left = s->n - u;
    vf i = recurrence_stored(dtype, s, 0, u, left), f = recurrence_stored(dtype, s, 1, u, left),
       g = recurrence_stored(dtype, s, 2, u, left), o = recurrence_stored(dtype, s, 3, u, left);
    vf squashed = recurrence_squash(recurrence_stored(dtype, s, 4, u, left)),
       dh = recurrence_dh(dtype, s, u, left);
    vf c = s->c != NULL ? recurrence_load(dtype, s->c, u, left) : (vf){0};
    vf through = v_load_upto(s->dc + u, left) + dh * o * (1.0f - squashed * squashed);
    recurrence_set_gate(dtype, s, 0, u, left, through * g * i * (1.0f - i));
    recurrence_set_gate(dtype, s, 1, u, left, through * c * f * (1.0f - f));
    recurrence_set_gate(dtype, s, 2, u, left, through * i * (1.0f - g * g));
    recurrence_set_gate(dtype, s, 3, u, left, dh * squashed * o * (1.0f - o));
    v_store_upto(s->dc + u, through * f, left);
    v_store_upto(s->dh + u, (vf){0}, left);
  }
}

V_INLINE void recurrence_gru_grad(int32_t dtype, const tn_recurrence_cell_grad *s) {
  int64_t n = s->n;
  for (int64_t u = 0; u < n; u += V_LANES) {
    int64_t left = n - u;
    vf r = recurrence_stored(dtype, s, 0, u, left), z = recurrence_stored(dtype, s, 1, u, left),
       m = recurrence_stored(dtype, s, 2, u, left), q = recurrence_stored(dtype, s, 3, u, left);
    vf dh = recurrence_dh(dtype, s, u, left), dm = dh * (1.0f - z) * (1.0f - m * m);
    vf dr = dm * q * r * (1.0f - r), dz = dh * (v_load_upto(s->h + u, left) - m) * z * (1.0f - z);
    v_store_upto_as(dtype, s->d, u, left, dr);
    v_store_upto_as(dtype, s->d, n + u, left, dz);
    v_store_upto_as(dtype, s->d, 2 * n + u, left, dm);
    v_store_upto(s->p + u, dr, left);
    v_store_upto(s->p + n + u, dz, left);
    v_store_upto(s->p + 2 * n + u, dm * r, left);
    v_store_upto(s->dh + u, dh * z, left);
  }
}

V_INLINE void recurrence_plain_grad(int32_t dtype, const tn_recurrence_cell_grad *s, bool relu) {
  for (int64_t u = 0; u < s->n; u += V_LANES) {
    int64_t left = s->n - u;
    vf y = recurrence_load(dtype, s->y, u, left), dh = recurrence_dh(dtype, s, u, left);
    vf d = relu ? v_select(v_gt(y, v_splat(0)), dh, v_splat(0)) : dh * (1.0f - y * y);
    recurrence_set_gate(dtype, s, 0, u, left, d);
    v_store_upto(s->dh + u, (vf){0}, left);
  }
}
V_INLINE void recurrence_tanh_grad(int32_t dtype, const tn_recurrence_cell_grad *s) {
  recurrence_plain_grad(dtype, s, false);
}
V_INLINE void recurrence_relu_grad(int32_t dtype, const tn_recurrence_cell_grad *s) {
  recurrence_plain_grad(dtype, s, true);
}

#define RECURRENCE_CELL(cell, dtype)                                                                         \
  static void recurrence_##cell##_##dtype(const tn_recurrence_cell *s) { recurrence_##cell(dtype, s); }      \
  static void recurrence_##cell##_grad_##dtype(const tn_recurrence_cell_grad *s) {                           \
    recurrence_##cell##_grad(dtype, s);                                                                      \
  }
#define RECURRENCE_CELLS(dtype)                                                                              \
  RECURRENCE_CELL(lstm, dtype)                                                                               \
  RECURRENCE_CELL(gru, dtype) RECURRENCE_CELL(tanh, dtype) RECURRENCE_CELL(relu, dtype)
RECURRENCE_CELLS(TN_F32)
RECURRENCE_CELLS(TN_BF16)
RECURRENCE_CELLS(TN_F16)

/* The functions of a dtype, by TN_CELL_... */
#define RECURRENCE_TABLE(what)                                                                               \
  {                                                                                                          \
    [TN_CELL_LSTM] = recurrence_lstm##what, [TN_CELL_GRU] = recurrence_gru##what,                            \
    [TN_CELL_TANH] = recurrence_tanh##what, [TN_CELL_RELU] = recurrence_relu##what                           \
  }

const tn_recurrence_loops TN_LOOP(tn_loops_recurrence) = {
    .lanes = V_LANES,
    .pack_rows = recurrence_pack_rows,
    .pack_lines = recurrence_pack_lines,
    .pack_pairs = recurrence_pack_pairs,
    .multiply = recurrence_multiply,
    .widen = recurrence_widen,
    .narrow = recurrence_narrow,
    .cell = {[TN_F32] = RECURRENCE_TABLE(_TN_F32),
             [TN_BF16] = RECURRENCE_TABLE(_TN_BF16),
             [TN_F16] = RECURRENCE_TABLE(_TN_F16)},
    .cell_grad = {[TN_F32] = RECURRENCE_TABLE(_grad_TN_F32),
                  [TN_BF16] = RECURRENCE_TABLE(_grad_TN_BF16),
                  [TN_F16] = RECURRENCE_TABLE(_grad_TN_F16)}};
