/* backends/onednn/kernels/gemm/gemm.c: partitions products into tiles, and tiles into chunks. */
#include "backends/onednn/kernels/gemm/gemm.h"
#include "backends/shared/integer_math.h"
#include "backends/shared/cost.h"

enum {
  FORK_MACS = 1 << 21,  /* some twenty microseconds; a smaller product runs on one thread, */
  FORK_BYTES = 1 << 20, /* unless it reads this much, mostly from memory */
  CHUNK_MACS = 3 << 18, /* of a product that runs on several threads */
  CHUNKS = 16,
  GATHER_MACS = 1 << 26,    /* larger, as a chunk displaces the panels of the one before from the cache */
  STRAIGHT_ROWS = 64,       /* with more rows, copying B into panels pays, */
  STRAIGHT_ELEMENTS = 8192, /* unless B fits into the first-level cache */
  FOLDED_ROWS = 16,         /* with fewer rows a product is bound by reading B, in any order */
  PACKED_ROWS = 512,        /* of a block of A that stays in the second-level cache */
  LEAST_ROWS = 32,
  PART_DEPTH = 384,        /* of k, at least */
  PART_ELEMENTS = 1 << 17, /* of a part, which stays in the second-level cache */
  PARTS = 8,
  BF16_DEPTH = 2048 /* of k at a time: the scratch of a chunk holds its operands as f32 */
};

/* ---- the partition ------------------------------------------------------------------------------- */

/* With more rows, transposing B into panels pays: wider vectors and more registers make `dots` faster. */
static int64_t gemm_dot_rows(void) { return tn_onednn_isa() >= TN_ISA_AVX512 ? 128 : 16; }

static bool gemm_is_folded(const tn_gemm_partition *c) {
  return c->flags & TN_GEMM_CONSTANT && c->dtype == TN_F32 && !c->transpose_a && c->m > FOLDED_ROWS &&
         c->k * c->n > STRAIGHT_ELEMENTS;
}

static int32_t gemm_method(const tn_gemm_partition *c) {
  if (gemm_is_folded(c)) return TN_GEMM_FOLDED;
  bool large = c->m > STRAIGHT_ROWS && c->k * c->n > STRAIGHT_ELEMENTS;
  if (c->transpose_b && !c->transpose_a) return c->m > gemm_dot_rows() ? TN_GEMM_PACKED : TN_GEMM_DOTS;
  if (!large && !c->transpose_b) return TN_GEMM_STRAIGHT;
  return c->transpose_a ? TN_GEMM_GATHERED : TN_GEMM_PACKED;
}

/* Where k is long beside m and n, parts of k read each operand once; tiles of the result read them several
 * times. */
static void gemm_set_parts(tn_gemm_partition *c) {
  bool in_parts = c->method == TN_GEMM_GATHERED && c->products == 1 && !(c->flags & TN_GEMM_EPILOGUE) &&
                  c->m * c->n <= PART_ELEMENTS;
  int64_t parts = in_parts ? least(PARTS, most(1, c->k / PART_DEPTH)) : 1;
  c->depth = divide_up(c->k, parts);
  c->parts = c->depth > 0 ? divide_up(c->k, c->depth) : 1;
}

/* The multiple that columns come in: dots, vectors or panels. */
static int64_t gemm_column_step(const tn_gemm_partition *c) {
  static const int64_t steps[] = {[TN_GEMM_STRAIGHT] = 16,
                                  [TN_GEMM_DOTS] = 8,
                                  [TN_GEMM_PACKED] = TN_GEMM_WIDTH,
                                  [TN_GEMM_GATHERED] = TN_GEMM_WIDTH,
                                  [TN_GEMM_FOLDED] = TN_GEMM_WIDTH};
  return steps[c->method];
}

/* The most even division into so many tiles of whole vectors. */
static void onednn_gemm_set_tiles(tn_gemm_partition *c, int64_t tiles_m, int64_t tiles_n) {
  c->tile_m = round_up(divide_up(c->m, tiles_m), 8);
  c->tile_n = round_up(divide_up(c->n, tiles_n), gemm_column_step(c));
  c->tiles_m = divide_up(c->m, c->tile_m);
  c->tiles_n = divide_up(c->n, c->tile_n);
}

/* A tile of rows reads all panels of B, or packs them again, so it is tall. A is gathered again for each
 * tile of columns. */
static void gemm_choose_tiles(tn_gemm_partition *c, int64_t pieces) {
  int64_t columns = divide_up(c->n, TN_GEMM_WIDTH), rows = divide_up(c->m, LEAST_ROWS), tiles_m = 1;
  if (c->method == TN_GEMM_PACKED || c->method == TN_GEMM_FOLDED) tiles_m = divide_up(c->m, PACKED_ROWS);
  if (c->method == TN_GEMM_GATHERED && c->m > c->n) tiles_m = least(rows, pieces);
  int64_t tiles_n = least(columns, divide_up(pieces, tiles_m));
  onednn_gemm_set_tiles(c, most(tiles_m, least(rows, divide_up(pieces, tiles_n))), tiles_n);
}

static int64_t gemm_packed_floats(const tn_gemm_partition *c) {
  if (c->method == TN_GEMM_PACKED) return TN_GEMM_DEPTH * TN_GEMM_WIDTH;
  return c->method == TN_GEMM_GATHERED ? round_up(tn_gemm_gathered_floats(c->tile_m, c->tile_n), 16) : 0;
}

/* Of the operands in bf16 that a chunk has as f32. */
static int64_t gemm_bf16_depth(const tn_gemm_partition *c) { return balanced_step(c->depth, BF16_DEPTH); }

bool tn_gemm_fits(const tn_gemm_partition *c, bool alone) {
  return c->dtype != TN_BF16 || c->depth <= BF16_DEPTH || (alone && c->method != TN_GEMM_DOTS);
}

static int64_t gemm_scratch_bytes(const tn_gemm_partition *c) {
  int64_t floats = gemm_packed_floats(c), depth = gemm_bf16_depth(c);
  if (c->dtype == TN_BF16)
    floats += round_up(c->tile_m * depth, 16) + round_up(depth * c->tile_n, 16) + 2 * c->tile_m * c->tile_n +
              c->tile_n;
  return round_up(floats, 16) * (int64_t)sizeof(float);
}

static double gemm_operand_bytes(const tn_gemm_partition *c) {
  double elements = (double)c->products * ((double)c->m * (double)c->k + (double)c->k * (double)c->n);
  return elements * (double)tn_dtype_size(c->dtype);
}

/* An even number, since most machines have an even number of threads. */
static int64_t gemm_wanted_chunks(const tn_gemm_partition *c) {
  double macs = (double)c->products * (double)c->m * (double)c->n * (double)c->k;
  double chunks = macs / (c->method == TN_GEMM_GATHERED ? GATHER_MACS : CHUNK_MACS);
  if (macs < FORK_MACS && gemm_operand_bytes(c) < FORK_BYTES) return 1;
  return chunks >= CHUNKS ? CHUNKS : most(2, round_up((int64_t)chunks, 2));
}

static bool gemm_sums_rows(const tn_gemm_partition *c) {
  return c->method == TN_GEMM_GATHERED && c->flags & TN_GEMM_ROW_SUMS;
}
/* The sums of A's rows are stored behind the parts of C. */
static int64_t gemm_sums_offset(const tn_gemm_partition *c) {
  return c->parts > 1 ? c->parts * c->m * c->n : 0;
}

static int64_t gemm_items(const tn_gemm_partition *c) {
  return c->products * c->parts * c->tiles_m * c->tiles_n;
}

void tn_gemm_partition_make(tn_gemm_partition *c, int32_t dtype, int32_t transpose_a, int32_t transpose_b,
                            int64_t products, int64_t m, int64_t n, int64_t k, int32_t flags) {
  *c = (tn_gemm_partition){.dtype = dtype,
                           .transpose_a = transpose_a,
                           .transpose_b = transpose_b,
                           .products = products,
                           .m = m,
                           .n = n,
                           .k = k,
                           .flags = flags};
  if (products == 0 || m == 0 || n == 0) return;
  c->method = gemm_method(c);
  gemm_set_parts(c);
  int64_t wanted = gemm_wanted_chunks(c);
  gemm_choose_tiles(c, divide_up(wanted, products * c->parts));
  c->chunks = least(wanted, gemm_items(c));
  c->scratch_bytes = gemm_scratch_bytes(c);
  if (c->parts > 1)
    c->joins = least(c->chunks, divide_up(m, LEAST_ROWS));
  else if (gemm_sums_rows(c))
    c->joins = 1;
  c->parts_bytes = (gemm_sums_offset(c) + (gemm_sums_rows(c) ? c->parts * m : 0)) * (int64_t)sizeof(float);
}

int64_t tn_gemm_folded_bytes(const tn_gemm_partition *c) {
  int64_t floats = c->method == TN_GEMM_FOLDED ? c->products * tn_gemm_folded_floats(c->n, c->k) : 0;
  return floats * (int64_t)sizeof(float);
}

double tn_gemm_partition_cost_s(const tn_gemm_partition *c, const tn_device_properties *device) {
  double rate = tn_onednn_isa() >= TN_ISA_AVX512 ? 7e10 : tn_onednn_isa() >= TN_ISA_AVX2 ? 3.5e10 : 5e9;
  double used = c->chunks < device->threads ? (double)c->chunks : device->threads;
  rate *= tn_thread_speed(device) * (used > 1 ? used : 1);
  return device->launch_s + (double)c->products * (double)c->m * (double)c->n * (double)c->k / rate;
}

int64_t tn_gemm_chunk_items(const tn_gemm_partition *c, int64_t chunk, int64_t *count) {
  int64_t items = gemm_items(c), each = items / c->chunks, rest = items % c->chunks;
  *count = each + (chunk < rest);
  return each * chunk + least(chunk, rest);
}

int64_t tn_gemm_item_range(const tn_gemm_partition *c, int64_t item, tn_gemm_extent *r) {
  int64_t i = item % c->tiles_m, rest = item / c->tiles_m, j = rest % c->tiles_n;
  rest /= c->tiles_n;
  *r = (tn_gemm_extent){.part = rest % c->parts, .m0 = i * c->tile_m, .n0 = j * c->tile_n};
  r->k0 = r->part * c->depth;
  r->m = least(c->tile_m, c->m - r->m0);
  r->n = least(c->tile_n, c->n - r->n0);
  r->k = least(c->depth, c->k - r->k0);
  return rest / c->parts;
}

/* ---- running ------------------------------------------------------------------------------------- */

static void gemm_run(const tn_gemm_partition *c, const tn_gemm_loops *loops, const tn_sgemm *g,
                     float *scratch) {
  switch (c->method) {
  case TN_GEMM_STRAIGHT: loops->straight(g); break;
  case TN_GEMM_DOTS: loops->dots(g); break;
  case TN_GEMM_PACKED: loops->packed(g, scratch); break;
  case TN_GEMM_FOLDED: loops->folded(g, g->b); break;
  default: loops->gathered(g, scratch); break;
  }
}

/* B's element (p, j) is b[p * b_k + j * b_j]. */
static void gemm_set_b(const tn_gemm_partition *c, const float *b, int64_t k0, int64_t n0, tn_sgemm *g) {
  g->b_k = c->transpose_b ? 1 : c->n;
  g->b_j = c->transpose_b ? c->k : 1;
  g->b = b + n0 * g->b_j + k0 * g->b_k;
}

void tn_gemm_fold_tile(const tn_gemm_partition *c, const tn_gemm_loops *loops, const float *b, int64_t tile,
                       float *panels) {
  int64_t product = tile / c->tiles_n, n0 = tile % c->tiles_n * c->tile_n;
  tn_sgemm g = {.n = least(c->tile_n, c->n - n0), .k = c->k};
  gemm_set_b(c, b, 0, n0, &g);
  loops->fold(&g, tn_gemm_panels_of(c, panels, product) + n0 * c->k);
}

/* The product of a range, without its operands. */
static tn_sgemm gemm_range_product(const tn_gemm_partition *c, const tn_gemm_extent *r,
                                   const tn_gemm_epilogue *epilogue, float *parts) {
  tn_sgemm g = {.m = r->m, .n = r->n, .k = r->k, .epilogue = *epilogue};
  if (gemm_sums_rows(c) && r->n0 == 0) g.row_sums = parts + gemm_sums_offset(c) + r->part * c->m + r->m0;
  return g;
}

static void gemm_run_f32(const tn_gemm_partition *c, const tn_gemm_loops *loops, const tn_gemm_matrices *x,
                         const tn_gemm_epilogue *epilogue, const tn_gemm_extent *r, float *scratch,
                         float *parts) {
  int64_t at = r->m0 * c->n + r->n0;
  float *to = c->parts > 1 ? parts + r->part * c->m * c->n : (float *)x->c;
  tn_sgemm g = gemm_range_product(c, r, epilogue, parts);
  g.c = to + at;
  g.c_i = c->n;
  g.a_i = c->transpose_a ? 1 : c->k;
  g.a_k = c->transpose_a ? c->m : 1;
  g.a = (const float *)x->a + r->m0 * g.a_i + r->k0 * g.a_k;
  if (c->method == TN_GEMM_FOLDED)
    g.b = (const float *)x->b + r->n0 * c->k;
  else
    gemm_set_b(c, x->b, r->k0, r->n0, &g);
  g.epilogue.bias = x->bias == NULL ? NULL : (const float *)x->bias + r->n0;
  g.epilogue.operand = x->operand == NULL ? NULL : (const float *)x->operand + at;
  g.epilogue.preactivation = x->preactivation == NULL ? NULL : (float *)x->preactivation + at;
  gemm_run(c, loops, &g, scratch);
}

/* `rows` rows of n elements, `step` apart, as dense f32. */
static float *gemm_widen(const tn_gemm_loops *loops, const void *from, int64_t at, int64_t rows, int64_t step,
                         int64_t n, float *to) {
  for (int64_t i = 0; i < rows; i++) loops->widen((const uint16_t *)from + at + i * step, to + i * n, n);
  return to;
}

/* The scratch of a range in bf16: packed panels, and the operands and results as f32. */
typedef struct gemm_widened {
  float *panel, *a, *b, *operand, *bias, *c;
} gemm_widened;

static gemm_widened gemm_widened_in(const tn_gemm_partition *c, float *scratch) {
  int64_t depth = gemm_bf16_depth(c);
  gemm_widened w = {.panel = scratch, .a = scratch + gemm_packed_floats(c)};
  w.b = w.a + round_up(c->tile_m * depth, 16);
  w.operand = w.b + round_up(depth * c->tile_n, 16);
  w.bias = w.operand + c->tile_m * c->tile_n;
  w.c = w.bias + c->tile_n;
  return w;
}

/* Adds the product over the k of a range to g->c. */
static void gemm_run_widened(const tn_gemm_partition *c, const tn_gemm_loops *loops,
                             const tn_gemm_matrices *x, const tn_gemm_extent *r, const gemm_widened *w,
                             tn_sgemm *g) {
  g->k = r->k;
  g->a_i = c->transpose_a ? 1 : r->k;
  g->a_k = c->transpose_a ? r->m : 1;
  g->b_k = c->transpose_b ? 1 : r->n;
  g->b_j = c->transpose_b ? r->k : 1;
  g->a = c->transpose_a ? gemm_widen(loops, x->a, r->k0 * c->m + r->m0, r->k, c->m, r->m, w->a)
                        : gemm_widen(loops, x->a, r->m0 * c->k + r->k0, r->m, c->k, r->k, w->a);
  g->b = c->transpose_b ? gemm_widen(loops, x->b, r->n0 * c->k + r->k0, r->n, c->k, r->k, w->b)
                        : gemm_widen(loops, x->b, r->k0 * c->n + r->n0, r->k, c->n, r->n, w->b);
  gemm_run(c, loops, g, w->panel);
  g->adds = 1;
}

/* Where the sums of a range are made: in their place if they stay f32, else in the scratch. */
static void gemm_place_sums(const tn_gemm_partition *c, const tn_gemm_matrices *x, const tn_gemm_extent *r,
                            const gemm_widened *w, float *parts, tn_sgemm *g) {
  int64_t at = r->m0 * c->n + r->n0;
  bool wide = c->flags & TN_GEMM_WIDE;
  g->c = c->parts > 1 ? parts + r->part * c->m * c->n + at : wide ? (float *)x->c + at : w->c;
  g->c_i = c->parts > 1 || wide ? c->n : r->n;
}

/* Converts the operands of a range to f32 in the scratch, and the result back: sums are rounded once, at the
 * end. */
static void gemm_run_bf16(const tn_gemm_partition *c, const tn_gemm_loops *loops, const tn_gemm_matrices *x,
                          const tn_gemm_epilogue *epilogue, const tn_gemm_extent *r, float *scratch,
                          float *parts) {
  gemm_widened w = gemm_widened_in(c, scratch);
  int64_t at = r->m0 * c->n + r->n0, depth = gemm_bf16_depth(c), done = 0;
  tn_sgemm g = gemm_range_product(c, r, epilogue, parts);
  gemm_place_sums(c, x, r, &w, parts, &g);
  if (x->bias != NULL) g.epilogue.bias = gemm_widen(loops, x->bias, r->n0, 1, 0, r->n, w.bias);
  if (x->operand != NULL) g.epilogue.operand = gemm_widen(loops, x->operand, at, r->m, c->n, r->n, w.operand);
  do {
    tn_gemm_extent range = *r;
    range.k0 += done;
    range.k = least(depth, r->k - done);
    gemm_run_widened(c, loops, x, &range, &w, &g);
    done += range.k;
  } while (done < r->k);
  if (c->parts > 1 || c->flags & TN_GEMM_WIDE) return;
  for (int64_t i = 0; i < r->m; i++) loops->narrow(g.c + i * r->n, (uint16_t *)x->c + at + i * c->n, r->n);
}

void tn_gemm_run_range(const tn_gemm_partition *c, const tn_gemm_loops *loops, const tn_gemm_matrices *x,
                       const tn_gemm_epilogue *epilogue, const tn_gemm_extent *r, void *scratch,
                       float *parts) {
  (c->dtype == TN_BF16 ? gemm_run_bf16 : gemm_run_f32)(c, loops, x, epilogue, r, scratch, parts);
}

/* n sums over the parts, which are `step` floats apart. */
static void gemm_join(const tn_gemm_partition *c, const tn_gemm_loops *loops, float *first, int64_t step,
                      int64_t n, void *to, int64_t at) {
  bool narrow = c->dtype == TN_BF16 && !(c->flags & TN_GEMM_WIDE);
  float *sum = narrow ? first : (float *)to + at;
  loops->add_parts(first, c->parts, step, n, sum);
  if (narrow) loops->narrow(sum, (uint16_t *)to + at, n);
}

void tn_gemm_join_chunk(const tn_gemm_partition *c, const tn_gemm_loops *loops, float *parts, int64_t chunk,
                        void *to, void *sums) {
  int64_t each = divide_up(c->m, c->joins), row = least(c->m, chunk * each), rows = least(each, c->m - row);
  if (c->parts > 1) gemm_join(c, loops, parts + row * c->n, c->m * c->n, rows * c->n, to, row * c->n);
  if (gemm_sums_rows(c)) gemm_join(c, loops, parts + gemm_sums_offset(c) + row, c->m, rows, sums, row);
}
