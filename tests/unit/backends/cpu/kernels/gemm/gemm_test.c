/* Products with every instruction set of this processor, and their tilings. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

#include "backends/cpu/kernels/gemm/gemm.h"

static void in_order(tn_launch *l, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg) {
  (void)l;
  for (int64_t i = 0; i < chunks; i++) body(arg, i);
}
static const tn_api table = {.struct_size = sizeof table, .parallel = in_order};

/* C[m, n] = A[m, k] B[k, n] + bias[m], all of one dtype; A and B may be transposed. */
typedef struct product {
  int32_t dtype, transpose_a, transpose_b, packed, flags;
  int64_t m, n, k;
  tn_type a_type, b_type, c_type, bias_type;
  void *a, *b, *c, *bias, *packed_a, *parts;
} product;

static void describe(const void *arg, int64_t index, int64_t split, tn_gemm *g) {
  const product *p = arg;
  assert_int_equal(index, 0);
  g->a = (tn_gemm_source){.data = p->a, .row_step = p->transpose_a ? p->m : p->k, .step = 1};
  g->b = (tn_gemm_source){.data = p->b, .row_step = p->transpose_b ? p->k : p->n, .step = 1};
  g->a.along_k = !p->transpose_a;
  g->b.along_k = p->transpose_b;
  g->c = (tn_gemm_result){.data = p->c, .row_step = p->n, .step = 1, .bias = p->bias, .bias_i = 1};
  g->packed_a = p->packed_a;
  if (p->flags & TN_GEMM_SPLIT) {
    g->c.data = (char *)p->parts + split * p->m * p->n * tn_gemm_wide_bytes(p->dtype);
    g->c.bias = NULL;
    g->c.wide = 1;
  }
}

static product draw(int32_t dtype, int64_t m, int64_t n, int64_t k, int32_t variant, tn_rng *rng) {
  product p = {
      .dtype = dtype, .m = m, .n = n, .k = k, .transpose_a = variant & 1, .transpose_b = variant >> 1 & 1};
  p.a_type = RIG_TYPE(dtype, m, k);
  p.b_type = RIG_TYPE(dtype, k, n);
  p.c_type = RIG_TYPE(dtype, m, n);
  p.bias_type = RIG_TYPE(dtype, m);
  p.a = rig_drawn(&p.a_type, rng);
  p.b = rig_drawn(&p.b_type, rng);
  p.bias = rig_drawn(&p.bias_type, rng);
  p.c = rig_tensor(&p.c_type);
  return p;
}

static void discard(product *p) {
  free(p->a);
  free(p->b);
  free(p->c);
  free(p->bias);
  free(p->packed_a);
  free(p->parts);
}

static void pack(product *p, const tn_gemm_isa *isa) {
  tn_gemm g = {0};
  describe(p, 0, 0, &g);
  assert_int_equal(posix_memalign(&p->packed_a, 64, (size_t)tn_gemm_packed_bytes(p->dtype, p->m, p->k)), 0);
  for (int64_t k0 = 0; k0 < p->k; k0 += TN_GEMM_K)
    isa->pack[p->dtype](&g.a, p->m, k0, least(TN_GEMM_K, p->k - k0), p->packed_a);
}

static void run(product *p, const tn_gemm_isa *isa, tn_gemm_tiling *tiling) {
  tn_launch l = {.env = {&table, NULL}, .struct_size = sizeof(tn_launch)};
  void *scratch = NULL;
  tn_gemm_tiling_make(tiling, p->dtype, 1, p->m, p->n, p->k, p->flags);
  if (p->flags & TN_GEMM_PACKED) pack(p, isa);
  if (p->flags & TN_GEMM_SPLIT)
    p->parts = calloc((size_t)(tiling->splits * p->m * p->n), (size_t)tn_gemm_wide_bytes(p->dtype));
  assert_int_equal(posix_memalign(&scratch, 64, (size_t)tn_gemm_workspace(tiling) + 64), 0);
  tn_gemm_run(&l, isa, tiling, describe, p, scratch);
  free(scratch);
}

static double expected(const product *p, int64_t i, int64_t j, double *magnitude) {
  double sum = rig_get(&p->bias_type, p->bias, i) * !(p->flags & TN_GEMM_SPLIT);
  *magnitude = fabs(sum);
  for (int64_t k = 0; k < p->k; k++) {
    double a = rig_get(&p->a_type, p->a, p->transpose_a ? k * p->m + i : i * p->k + k);
    double b = rig_get(&p->b_type, p->b, p->transpose_b ? j * p->k + k : k * p->n + j);
    sum += a * b;
    *magnitude += fabs(a * b);
  }
  return sum;
}

static double result(const product *p, const tn_gemm_tiling *tiling, int64_t at) {
  double sum = 0;
  if (!(p->flags & TN_GEMM_SPLIT)) return rig_get(&p->c_type, p->c, at);
  for (int64_t s = 0; s < tiling->splits; s++) {
    int64_t i = s * p->m * p->n + at;
    sum += p->dtype == TN_F64 ? ((double *)p->parts)[i] : (double)((float *)p->parts)[i];
  }
  return sum;
}

static void check(const product *p, const tn_gemm_tiling *tiling) {
  int32_t wide = p->dtype == TN_F64 ? TN_F64 : TN_F32, kept = p->flags & TN_GEMM_SPLIT ? wide : p->dtype;
  for (int64_t at = 0; at < p->m * p->n; at += p->m * p->n / 2000 + 1) {
    double magnitude, want = expected(p, at / p->n, at % p->n, &magnitude), got = result(p, tiling, at);
    double bound = rig_ulp(kept, want) / 2 + 40 * rig_ulp(wide, magnitude);
    if (!(fabs(got - want) <= bound))
      fail_msg("element %lld is %.17g, expected %.17g +- %g", (long long)at, got, want, bound);
  }
}

static const int32_t dtypes[4] = {TN_F32, TN_F64, TN_F16, TN_BF16};

static void every_instruction_set_multiplies(void **state) {
  (void)state;
  static const int32_t flags[3] = {TN_GEMM_PLAIN, TN_GEMM_PACKED, TN_GEMM_SPLIT};
  static const int64_t shapes[5][3] = {{3, 5, 4}, {40, 33, 300}, {70, 129, 257}, {1, 90, 40}, {17, 9, 6000}};
  tn_rng rng = tn_rng_at(1, 0);
  const tn_gemm_isa *isa;
  for (int32_t s = 0; (isa = tn_gemm_isa_at(s)) != NULL; s++)
    for (int32_t i = 0; i < 4 * 5 * 3; i++) {
      const int64_t *shape = shapes[i / 4 % 5];
      product p = draw(dtypes[i % 4], shape[0], shape[1], shape[2], i + s, &rng);
      tn_gemm_tiling tiling;
      p.flags = flags[i / 20];
      run(&p, isa, &tiling);
      check(&p, &tiling);
      discard(&p);
    }
  assert_true(tn_gemm_isa_at(0) != NULL);
}

/* Tiles, splits and chunks cover the product for every choice of them. */
static void tilings_cover_the_product(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(2, 0);
  for (int32_t i = 0; i < 3000; i++) {
    static const int32_t flags[3] = {TN_GEMM_PLAIN, TN_GEMM_PACKED, TN_GEMM_SPLIT};
    int64_t most = i % 3 == 0 ? 20 : 3000, products = 1 + tn_rng_below(&rng, 20);
    int64_t m = 1 + tn_rng_below(&rng, most), n = 1 + tn_rng_below(&rng, most), k = tn_rng_below(&rng, 10000);
    tn_gemm_tiling p;
    tn_gemm_tiling_make(&p, dtypes[i % 4], products, m, n, k, flags[tn_rng_below(&rng, 3)]);
    assert_true(p.tile_m * (p.tiles_m - 1) < m && p.tile_m * p.tiles_m >= m);
    assert_true(p.tile_n * (p.tiles_n - 1) < n && p.tile_n * p.tiles_n >= n);
    assert_true(p.splits == 1 ? p.tile_k == k : p.tile_k * (p.splits - 1) < k && p.tile_k * p.splits >= k);
    assert_true(p.tiles_m == 1 || p.direct || p.tile_m % TN_GEMM_ALIGN == 0);
    assert_true(p.splits == 1 || p.tile_k % TN_GEMM_K == 0);
    assert_in_range(p.chunks, 1, TN_GEMM_CHUNKS);
    assert_true(p.chunks <= products * p.tiles_m * p.tiles_n * p.splits);
    assert_int_equal(p.scratch_bytes % 64, 0);
  }
}

static void nothing_to_do_means_no_chunks(void **state) {
  (void)state;
  tn_gemm_tiling p;
  tn_gemm_tiling_make(&p, TN_F32, 0, 5, 5, 5, 0);
  assert_int_equal(p.chunks, 0);
  tn_gemm_tiling_make(&p, TN_F32, 1, 5, 0, 5, 0);
  assert_int_equal(p.chunks + tn_gemm_workspace(&p), 0);
}

static void runs_of_pixels_end_at_rows_and_images(void **state) {
  (void)state;
  const tn_gemm_grid g = {2, 3, 2, 2, 5, 7, 100};
  tn_gemm_segment s[8];
  assert_int_equal(tn_gemm_runs(&g, 4, 6, s), 3);
  assert_int_equal(s[0].offset, 2 * 7 + 2);
  assert_int_equal(s[0].n, 2);
  assert_int_equal(s[1].offset, 100);
  assert_int_equal(s[1].at, 2);
  assert_int_equal(s[1].n, 3);
  assert_int_equal(s[2].offset, 100 + 2 * 7);
  assert_int_equal(s[2].y, 2);
  assert_int_equal(s[2].n, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_instruction_set_multiplies),
      cmocka_unit_test(tilings_cover_the_product),
      cmocka_unit_test(nothing_to_do_means_no_chunks),
      cmocka_unit_test(runs_of_pixels_end_at_rows_and_images),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
