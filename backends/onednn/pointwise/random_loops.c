/* Random numbers inside regions (tenon/attributes.h, tn_random_attributes): Philox 4x32-10 (tenon/random.h)
 * for many counters at once, so that masks are made where they are needed and never stored. */
#include <math.h>

#include "backends/onednn/pointwise/program.h"
#include "backends/onednn/simd/vector_load.h"
#include "backends/onednn/simd/vector_math.h"
#include "backends/shared/integer_math.h"
#include "tenon/random.h"

enum {
  GROUPS = TILE_MOST / 4 + V_LANES, /* of four words; a tile may begin inside of one */
  WORDS = 4 * GROUPS
};

/* Ten rounds for one vector of counters. */
static inline void rounds(uint64_t key, vu c[4]) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int32_t i = 0; i < 10; i++) {
    vu high0, low0, high1, low1;
    v_multiply_wide(c[0], 0xD2511F53u, &high0, &low0);
    v_multiply_wide(c[2], 0xCD9E8D57u, &high1, &low1);
    c[0] = high1 ^ c[1] ^ k0;
    c[2] = high0 ^ c[3] ^ k1;
    c[1] = low1;
    c[3] = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/* Counters lo, lo + 1 ... as halves. */
static inline void count_from(uint64_t lo, vu *low, vu *high) {
  uint32_t steps[V_LANES];
  for (int32_t l = 0; l < V_LANES; l++) steps[l] = (uint32_t)l;
  vu first = v_splat_u((uint32_t)lo);
  *low = first + v_load_u(steps);
  *high = v_splat_u((uint32_t)(lo >> 32)) - (vu)(*low < first); /* a truth is -1 */
}

/* x0 y0 x1 y1 ... */
static inline void zip(vu x, vu y, vu *front, vu *back) {
  vu at_front, at_back;
  for (int32_t l = 0; l < V_LANES; l++) {
    at_front[l] = (uint32_t)(l / 2 + l % 2 * V_LANES);
    at_back[l] = at_front[l] + V_LANES / 2;
  }
  *front = __builtin_shuffle(x, y, at_front);
  *back = __builtin_shuffle(x, y, at_back);
}

/* The words of the groups lo, lo + 1 ... as they follow each other. */
static void words_of(uint64_t key, uint64_t hi, uint64_t lo, int64_t groups, uint32_t *words) {
  for (int64_t g = 0; g < groups; g += V_LANES, words += 4 * V_LANES) {
    vu c[4], even[2], odd[2], made[4];
    count_from(lo + (uint64_t)g, &c[0], &c[1]);
    c[2] = v_splat_u((uint32_t)hi);
    c[3] = v_splat_u((uint32_t)(hi >> 32));
    rounds(key, c);
    zip(c[0], c[2], &even[0], &even[1]);
    zip(c[1], c[3], &odd[0], &odd[1]);
    for (int32_t i = 0; i < 2; i++) zip(even[i], odd[i], &made[2 * i], &made[2 * i + 1]);
    for (int32_t i = 0; i < 4; i++) v_store_u(words + i * V_LANES, made[i]);
  }
}

/* ---- numbers of whole groups ---- */

static inline vf uniform_of(vu word) { return __builtin_convertvector((vi)(word >> 8), vf) * 0x1p-24f; }

static void uniform_f32(const tn_tile_insn *insn, const uint32_t *words, float *d, int64_t n) {
  const float low = (float)insn->a, width = (float)insn->b - low;
  for (int64_t k = 0; k < n; k += V_LANES) v_store(d + k, low + width * uniform_of(v_load_u(words + k)));
}

static void uniform_f64(const tn_tile_insn *insn, const uint32_t *words, double *d, int64_t n) {
  const double low = insn->a, width = insn->b - insn->a;
  for (int64_t k = 0; k < n; k++) d[k] = low + width * (double)tn_uniform_of(words[k]);
}

/* Box and Muller: two words, two numbers. */
static void normal_f32(const tn_tile_insn *insn, const uint32_t *words, float *d, int64_t n) {
  const float mean = (float)insn->a, deviation = (float)insn->b;
  for (int64_t k = 0; k < n; k += 2 * V_LANES) {
    uint32_t even[V_LANES], odd[V_LANES];
    float x[V_LANES], y[V_LANES];
    vf sine, cosine;
    for (int32_t l = 0; l < V_LANES; l++) {
      even[l] = words[k + 2 * l];
      odd[l] = words[k + 2 * l + 1];
    }
    vf r = v_sqrt(-2.0f * v_log(1.0f - uniform_of(v_load_u(even))));
    v_sine_cosine(uniform_of(v_load_u(odd)), &sine, &cosine);
    v_store(x, mean + deviation * (r * cosine));
    v_store(y, mean + deviation * (r * sine));
    for (int32_t l = 0; l < V_LANES; l++) {
      d[k + 2 * l] = x[l];
      d[k + 2 * l + 1] = y[l];
    }
  }
}

static void normal_f64(const tn_tile_insn *insn, const uint32_t *words, double *d, int64_t n) {
  const double turn = 6.283185307179586476925;
  for (int64_t k = 0; k < n; k += 2) {
    double r = sqrt(-2 * log(1 - (double)tn_uniform_of(words[k])));
    double angle = turn * (double)tn_uniform_of(words[k + 1]);
    d[k] = insn->a + insn->b * (r * cos(angle));
    d[k + 1] = insn->a + insn->b * (r * sin(angle));
  }
}

static void numbers(const tn_tile_insn *insn, const uint32_t *words, void *d, int64_t n) {
  bool wide = insn->lane == TN_LANE_F64;
  if (insn->op == TN_PW_UNIFORM)
    wide ? uniform_f64(insn, words, d, n) : uniform_f32(insn, words, d, n);
  else
    wide ? normal_f64(insn, words, d, n) : normal_f32(insn, words, d, n);
}

/* ---- numbers of any ---- */

static void TN_LOOP(run)(const tn_tile_insn *insn, uint64_t iteration, int64_t first, int64_t n, void *to) {
  uint32_t words[WORDS];
  double made[WORDS];
  int64_t skip = first % 4, groups = round_up((skip + n + 3) / 4, V_LANES);
  size_t size = tn_lane_size(insn->lane);
  words_of(insn->bits, iteration, (uint64_t)(first / 4), groups, words);
  bool direct = skip == 0 && n % (4 * V_LANES) == 0;
  numbers(insn, words, direct ? to : made, 4 * groups);
  if (!direct) memcpy(to, (const uint8_t *)made + (size_t)skip * size, (size_t)n * size);
}

/* Every element draws its own group of four and takes one pair of words; the numbers of the pair follow each
 * other, and one of them is taken. */
static void TN_LOOP(scattered)(const tn_tile_insn *insn, uint64_t iteration, const int64_t *index, int64_t n,
                               void *to) {
  size_t size = tn_lane_size(insn->lane);
  for (int64_t at = 0; at < n; at += V_LANES) {
    uint32_t low[V_LANES] = {0}, high[V_LANES] = {0}, made[4][V_LANES], pairs[2 * V_LANES];
    double drawn[2 * V_LANES];
    int64_t m = n - at < V_LANES ? n - at : V_LANES;
    for (int64_t l = 0; l < m; l++) {
      low[l] = (uint32_t)((uint64_t)index[at + l] >> 2);
      high[l] = (uint32_t)((uint64_t)index[at + l] >> 34);
    }
    vu c[4] = {v_load_u(low), v_load_u(high), v_splat_u((uint32_t)iteration),
               v_splat_u((uint32_t)(iteration >> 32))};
    rounds(insn->bits, c);
    for (int32_t i = 0; i < 4; i++) v_store_u(made[i], c[i]);
    for (int64_t l = 0; l < V_LANES; l++) {
      int64_t pair = l < m ? index[at + l] & 2 : 0;
      pairs[2 * l] = made[pair][l];
      pairs[2 * l + 1] = made[pair + 1][l];
    }
    numbers(insn, pairs, drawn, 2 * V_LANES);
    for (int64_t l = 0; l < m; l++)
      memcpy((uint8_t *)to + (size_t)(at + l) * size,
             (const uint8_t *)drawn + (size_t)(2 * l + (index[at + l] & 1)) * size, size);
  }
}

const tn_tile_random_loops TN_LOOP(tn_tile_random) = {TN_LOOP(run), TN_LOOP(scattered)};
