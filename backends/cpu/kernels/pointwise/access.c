/* Pointwise instructions that look beyond registers: loads and stores, indices, and functions of
 * an index, that is, random numbers and values per range. */
#include "backends/cpu/kernels/pointwise/program.h"

#include <string.h>

#include "backends/cpu/kernels/common/clones.h"
#include "backends/shared/normal.h"
#include "tenon/random.h"

/* ---- load ---- */

typedef uint16_t __attribute__((may_alias)) word16;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

/* Innermost strides are 1 or 0: nothing else comes of broadcasting. */
#define GATHER(name, WORD)                                                                                   \
  static TN_CPU_CLONES void name(const tn_pw_map *map, int64_t at, const WORD *from, WORD *to, int64_t n) {  \
    int64_t step = map->strides[map->rank - 1];                                                              \
    for (tn_pw_walk w = tn_pw_walk_to(map, at); n > 0;) {                                                    \
      int64_t run = tn_pw_walk_run(&w, n);                                                                   \
      const WORD *x = from + w.offset;                                                                       \
      const WORD first = *x;                                                                                 \
      if (step == 1) {                                                                                       \
        TN_CPU_VECTOR for (int64_t k = 0; k < run; k++) to[k] = x[k];                                        \
      } else {                                                                                               \
        TN_CPU_VECTOR for (int64_t k = 0; k < run; k++) to[k] = first;                                       \
      }                                                                                                      \
      tn_pw_walk_on(&w, run);                                                                                \
      to += run;                                                                                             \
      n -= run;                                                                                              \
    }                                                                                                        \
  }
GATHER(gather_1, uint8_t)
GATHER(gather_2, word16)
GATHER(gather_4, word32)
GATHER(gather_8, word64)

static void access_gather(const tn_pw_map *map, int64_t at, size_t size, const void *from, void *to,
                          int64_t n) {
  switch (size) {
  case 1: gather_1(map, at, from, to, n); break;
  case 2: gather_2(map, at, from, to, n); break;
  case 4: gather_4(map, at, from, to, n); break;
  default: gather_8(map, at, from, to, n); break;
  }
}

static void access_load(const tn_pw_insn *insn, const tn_cpu_pw_tile *t) {
  const void *from = t->launch->in[insn->view].data;
  const tn_pw_map *map = &t->program->maps[insn->map];
  if (tn_lane_is_stored(insn->dtype)) {
    access_gather(map, t->at, tn_dtype_size(insn->dtype), from, t->reg[insn->out], t->n);
    return;
  }
  uint16_t halves[TN_TILE];
  if (map->rank == 1 && map->strides[0] == 1) {
    from = tn_cpu_at(from, insn->dtype, t->at);
  } else {
    access_gather(map, t->at, sizeof halves[0], from, halves, t->n);
    from = halves;
  }
  tn_cpu_widen(insn->dtype, from, t->reg[insn->out], t->n);
}

static void access_store(const tn_pw_insn *insn, const tn_cpu_pw_tile *t) {
  void *to = tn_cpu_at(t->launch->out[insn->view].data, insn->dtype, t->at);
  const void *from = t->reg[insn->in[0]];
  if (!tn_lane_is_stored(insn->dtype))
    tn_cpu_narrow(insn->dtype, from, to, t->n);
  else if (to != from)
    memcpy(to, from, (size_t)t->n * tn_dtype_size(insn->dtype));
}

/* ---- positions ---- */

/* Indices rise by at most 1 from one element to the next, so the ends tell whether each does. */
static inline int32_t access_is_ascending(const int64_t *index, int64_t n) {
  return index[n - 1] - index[0] == n - 1;
}

/* ---- random numbers: tenon/attributes.h, tn_random_attributes ---- */

/* One group of four more than a tile has, since a tile may begin and end inside a group. */
enum { GROUPS = TN_TILE / 4 + 1 };

/* Philox (tenon/random.h) for consecutive counters, round by round over all of them. */
static TN_CPU_CLONES void access_philox(uint64_t key, uint64_t hi, uint64_t lo, int64_t groups,
                                        uint32_t *words) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  uint32_t c0[GROUPS], c1[GROUPS], c2[GROUPS], c3[GROUPS];
  for (int64_t g = 0; g < groups; g++) {
    c0[g] = (uint32_t)(lo + (uint64_t)g);
    c1[g] = (uint32_t)((lo + (uint64_t)g) >> 32);
    c2[g] = (uint32_t)hi;
    c3[g] = (uint32_t)(hi >> 32);
  }
  for (int round = 0; round < 10; round++) {
    TN_CPU_VECTOR for (int64_t g = 0; g < groups; g++) {
      uint64_t p0 = (uint64_t)0xD2511F53u * c0[g], p1 = (uint64_t)0xCD9E8D57u * c2[g];
      c0[g] = (uint32_t)(p1 >> 32) ^ c1[g] ^ k0;
      c2[g] = (uint32_t)(p0 >> 32) ^ c3[g] ^ k1;
      c1[g] = (uint32_t)p1;
      c3[g] = (uint32_t)p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int64_t g = 0; g < groups; g++) {
    words[4 * g] = c0[g];
    words[4 * g + 1] = c1[g];
    words[4 * g + 2] = c2[g];
    words[4 * g + 3] = c3[g];
  }
}

static TN_CPU_CLONES void access_uniform_f32(const tn_pw_insn *insn, const uint32_t *words, float *d,
                                             int64_t n) {
  const float low = (float)insn->a, width = (float)insn->b - low;
  TN_CPU_VECTOR for (int64_t k = 0; k < n; k++) d[k] = low + width * tn_uniform_of(words[k]);
}

static void access_uniform_f64(const tn_pw_insn *insn, const uint32_t *words, double *d, int64_t n) {
  const double low = insn->a, width = insn->b - insn->a;
  for (int64_t k = 0; k < n; k++) d[k] = low + width * (double)tn_uniform_of(words[k]);
}

/* Two words, two numbers (backends/shared/normal.h). n is even. */
static TN_CPU_CLONES void access_normal_f32(const tn_pw_insn *insn, const uint32_t *words, float *d,
                                            int64_t n) {
  const float mean = (float)insn->a, deviation = (float)insn->b;
  TN_CPU_VECTOR for (int64_t k = 0; k < n / 2; k++) {
    float even, odd;
    tn_normal_pair(words[2 * k], words[2 * k + 1], &even, &odd);
    d[2 * k] = mean + deviation * even;
    d[2 * k + 1] = mean + deviation * odd;
  }
}

static void access_normal_f64(const tn_pw_insn *insn, const uint32_t *words, double *d, int64_t n) {
  for (int64_t k = 0; k < n; k += 2) {
    double even, odd;
    tn_normal_pair_f64(words[k], words[k + 1], &even, &odd);
    d[k] = insn->a + insn->b * even;
    d[k + 1] = insn->a + insn->b * odd;
  }
}

/* Numbers for whole groups of four words. */
static void access_numbers(const tn_pw_insn *insn, const uint32_t *words, void *d, int64_t n) {
  if (insn->op == TN_PW_UNIFORM && insn->lane == TN_LANE_F32) access_uniform_f32(insn, words, d, n);
  if (insn->op == TN_PW_UNIFORM && insn->lane == TN_LANE_F64) access_uniform_f64(insn, words, d, n);
  if (insn->op == TN_PW_NORMAL && insn->lane == TN_LANE_F32) access_normal_f32(insn, words, d, n);
  if (insn->op == TN_PW_NORMAL && insn->lane == TN_LANE_F64) access_normal_f64(insn, words, d, n);
}

/* Elements first .. first + n - 1 of the stream. */
static void access_random_run(const tn_pw_insn *insn, uint64_t iteration, int64_t first, int64_t n,
                              uint8_t *to) {
  uint32_t words[4 * GROUPS];
  uint64_t made[4 * GROUPS];
  int64_t skip = first % 4, groups = (skip + n + 3) / 4;
  size_t size = tn_lane_size(insn->lane);
  access_philox(insn->bits, iteration, (uint64_t)(first / 4), groups, words);
  access_numbers(insn, words, made, 4 * groups);
  memcpy(to, (uint8_t *)made + (size_t)skip * size, (size_t)n * size);
}

/* A whole tile at once where indices ascend, else element by element. */
static void access_random_tile(const tn_pw_insn *insn, const tn_cpu_pw_tile *t) {
  int64_t index[TN_TILE];
  uint64_t iteration = (uint64_t) * (const int64_t *)t->reg[insn->in[0]];
  uint64_t block = insn->in[1] < 0 ? 0 : (uint64_t) * (const int64_t *)t->reg[insn->in[1]];
  uint64_t before = block * (uint64_t)insn->count;
  uint8_t *to = t->reg[insn->out];
  size_t size = tn_lane_size(insn->lane);
  tn_pw_indices(&t->program->maps[insn->map], t->at, t->n, index);
  if (access_is_ascending(index, t->n)) {
    access_random_run(insn, iteration, (int64_t)((uint64_t)index[0] + before), t->n, to);
    return;
  }
  for (int64_t k = 0; k < t->n; k++)
    access_random_run(insn, iteration, (int64_t)((uint64_t)index[k] + before), 1, to + (size_t)k * size);
}

/* ---- values per range: tenon/attributes.h, tn_spread_attributes ---- */

/* The value of range r, as a lane in the first bytes. */
static uint64_t access_range_value(const tn_pw_insn *insn, const tn_cpu_pw_tile *t, int64_t r) {
  const int64_t *index = t->program->tables + insn->table + insn->n_table;
  const void *from = tn_cpu_at(t->launch->in[insn->view].data, insn->dtype, index[r]);
  uint64_t bits = 0;
  float wide;
  if (tn_lane_is_stored(insn->dtype)) {
    memcpy(&bits, from, tn_dtype_size(insn->dtype));
  } else {
    tn_cpu_widen(insn->dtype, from, &wide, 1);
    memcpy(&bits, &wide, sizeof wide);
  }
  return bits;
}

static void access_spread(const tn_pw_insn *insn, const tn_cpu_pw_tile *t) {
  const int64_t *starts = t->program->tables + insn->table;
  int64_t index[TN_TILE];
  size_t size = tn_lane_size(insn->lane);
  uint8_t *to = t->reg[insn->out];
  tn_pw_insn constant = {.op = TN_PW_CONSTANT, .lane = insn->lane};
  tn_pw_indices(&t->program->maps[insn->map], t->at, t->n, index);
  for (int64_t k = 0, run; k < t->n; k += run) {
    int64_t r = tn_pw_range_of(starts, insn->n_table, index[k]);
    int64_t low = starts[r], high = r + 1 < insn->n_table ? starts[r + 1] : INT64_MAX;
    for (run = 1; k + run < t->n && index[k + run] >= low && index[k + run] < high;) run++;
    constant.bits = access_range_value(insn, t, r);
    tn_cpu_pw_compute(&constant, to + (size_t)k * size, NULL, run);
  }
}

void tn_cpu_pw_access(const tn_pw_insn *insn, const tn_cpu_pw_tile *t) {
  switch (insn->op) {
  case TN_PW_LOAD: access_load(insn, t); break;
  case TN_PW_STORE: access_store(insn, t); break;
  case TN_PW_INDEX: tn_pw_indices(&t->program->maps[insn->map], t->at, t->n, t->reg[insn->out]); break;
  case TN_PW_SPREAD: access_spread(insn, t); break;
  default: access_random_tile(insn, t); break;
  }
}
