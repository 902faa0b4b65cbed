/* backends/onednn/kernels/recurrence_tiles.c: products of some rows with a packed weight of bf16 by the tiles
 * of AMX (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18). A tile of 16
 * rows and 32 elements of bf16 is multiplied by one of 32 elements and 16 columns in an instruction, with
 * sums in f32. Linux grants a process the use of tiles when it asks. */
#include "backends/onednn/kernels/recurrence.h"

#include <string.h>

#if defined(TN_LOOPS_X86) && defined(__linux__) && __GNUC__ >= 12
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/shared/integer_math.h"

#define TILES __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))

enum {
  REQUEST_PERMISSION = 0x1023, /* ARCH_REQ_XCOMP_PERM of arch_prctl */
  TILE_DATA = 18,
  TILE_ROWS = TN_RECURRENCE_TILE_ROWS,
  TILE_DEPTH = TN_RECURRENCE_TILE_DEPTH,
  LANES = 16,
  DEPTH = 512 /* elements of the rows that are rounded at once */
};

bool tn_onednn_recurrence_has_tiles(int32_t isa) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (isa < TN_ISA_AVX512_BF16) return false;
  __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  if ((d >> 22 & 1) == 0 || (d >> 24 & 1) == 0) return false; /* AMX-BF16, AMX-TILE */
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* Tiles 0 to 3 are sums, 4 has rows, 5 to 7 have columns. */
TILES static void tiles_configure(int64_t rows) {
  struct {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } config = {.palette = 1};
  for (int32_t i = 0; i < 8; i++) {
    config.bytes[i] = LANES * sizeof(float);
    config.rows[i] = (uint8_t)(i < 5 ? rows : LANES);
  }
  _tile_loadconfig(&config);
}

/* n elements of a row as bf16; zeros behind them up to a multiple of TILE_DEPTH. */
TILES static void tiles_round(const float *from, int64_t n, uint16_t *to) {
  for (int64_t i = 0; i < round_up(n, TILE_DEPTH); i += LANES) {
    int64_t left = n - i;
    __mmask16 some = left >= LANES ? 0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : 0;
    __m256bh x = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, from + i));
    memcpy(to + i, &x, sizeof x);
  }
}

/* Adds a tile of rows times the tiles of a panel that lie side by side. */
TILES static void tiles_add(const uint16_t *a, const float *line, int64_t blocks) {
  int64_t step = blocks * LANES * (int64_t)sizeof(float);
  _tile_loadd(4, a, DEPTH * sizeof *a);
  _tile_loadd(5, line, step);
  _tile_dpbf16ps(0, 4, 5);
  _tile_loadd(6, line + LANES, step);
  _tile_dpbf16ps(1, 4, 6);
  _tile_loadd(7, line + 2 * LANES, step);
  _tile_dpbf16ps(2, 4, 7);
  if (blocks == 3) return;
  _tile_loadd(5, line + 3 * LANES, step);
  _tile_dpbf16ps(3, 4, 5);
}

TILES static void tiles_load(const float *sums, int64_t blocks) {
  int64_t step = TN_RECURRENCE_WIDTH * (int64_t)sizeof(float);
  _tile_loadd(0, sums, step);
  _tile_loadd(1, sums + LANES, step);
  _tile_loadd(2, sums + 2 * LANES, step);
  if (blocks > 3) _tile_loadd(3, sums + 3 * LANES, step);
}

TILES static void tiles_store(float *sums, int64_t blocks) {
  int64_t step = TN_RECURRENCE_WIDTH * (int64_t)sizeof(float);
  _tile_stored(0, sums, step);
  _tile_stored(1, sums + LANES, step);
  _tile_stored(2, sums + 2 * LANES, step);
  if (blocks > 3) _tile_stored(3, sums + 3 * LANES, step);
}

TILES void tn_onednn_recurrence_tiles(const tn_recurrence_product *p) {
  _Alignas(64) uint16_t a[TILE_ROWS * DEPTH];
  _Alignas(64) float sums[TILE_ROWS * TN_RECURRENCE_WIDTH];
  size_t width = (size_t)p->blocks * LANES * sizeof(float);
  for (int64_t i = 0; i < p->rows; i++) memcpy(sums + i * TN_RECURRENCE_WIDTH, p->first[i], width);
  tiles_configure(p->rows);
  tiles_load(sums, p->blocks);
  for (int64_t first = 0; first < p->k; first += DEPTH) {
    int64_t n = least(DEPTH, p->k - first);
    for (int64_t i = 0; i < p->rows; i++) tiles_round(p->a[i] + first, n, a + i * DEPTH);
    for (int64_t k = 0; k < n; k += TILE_DEPTH)
      tiles_add(a + k, p->panel + (first + k) / 2 * p->blocks * LANES, p->blocks);
  }
  tiles_store(sums, p->blocks);
  _tile_release();
  for (int64_t i = 0; i < p->rows; i++) memcpy(p->out[i], sums + i * TN_RECURRENCE_WIDTH, width);
}
#else
bool tn_onednn_recurrence_has_tiles(int32_t isa) {
  (void)isa;
  return false;
}
void tn_onednn_recurrence_tiles(const tn_recurrence_product *p) { (void)p; }
#endif
