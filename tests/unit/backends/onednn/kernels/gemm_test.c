/* Products by every method and on every instruction set, against sums in f64. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>

#include "tests/unit/backends/onednn/defined_gelu.h"
#include "backends/onednn/kernels/gemm/gemm.h"

static const tn_gemm_loops *loops_at(int32_t isa) {
#ifdef TN_LOOPS_X86
  static const tn_gemm_loops *const all[] = {&tn_loops_gemm_plain, &tn_loops_gemm_avx2,
                                             &tn_loops_gemm_avx512};
  return isa <= TN_ISA_AVX512 && isa <= tn_onednn_isa() ? all[isa] : NULL;
#else
  return isa == TN_ISA_PLAIN ? &tn_loops_gemm_plain : NULL;
#endif
}

/* A matrix at the end of its allocation, so that a sanitizer sees reads beyond it. */
static float *drawn(int64_t n, tn_rng *rng) {
  float *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = (float)(tn_rng_below(rng, 2000) - 1000) / 250.0f;
  return x;
}

enum { METHODS = 5, GAP = 3, EPILOGUES = TN_EPILOGUE_GELU_GRAD + 1 };

static int32_t fits(int32_t method, int32_t transpose_a, int32_t transpose_b) {
  if (method == TN_GEMM_PACKED || method == TN_GEMM_FOLDED) return 1;
  if (method == TN_GEMM_GATHERED) return transpose_a;
  return method == TN_GEMM_DOTS ? transpose_b && !transpose_a : !transpose_b;
}

/* The floats behind the panels stay as they are, and B is not read again. */
static void run_folded(const tn_gemm_loops *loops, const tn_sgemm *g, float *panels) {
  int64_t floats = tn_gemm_folded_floats(g->n, g->k);
  tn_sgemm without_b = *g;
  without_b.b = NULL;
  without_b.b_k = without_b.b_j = 0;
  panels[floats] = 55.0f;
  loops->fold(g, panels);
  assert_true(panels[floats] == 55.0f);
  loops->folded(&without_b, panels);
}

static void run(const tn_gemm_loops *loops, int32_t method, const tn_sgemm *g) {
  int64_t floats = TN_GEMM_DEPTH * TN_GEMM_WIDTH;
  if (method == TN_GEMM_GATHERED) floats = (tn_gemm_gathered_floats(g->m, g->n) + 15) / 16 * 16;
  if (method == TN_GEMM_FOLDED) floats = tn_gemm_folded_floats(g->n, g->k) + 16;
  float *scratch = aligned_alloc(64, (size_t)floats * sizeof *scratch);
  switch (method) {
  case TN_GEMM_FOLDED: run_folded(loops, g, scratch); break;
  case TN_GEMM_PACKED: loops->packed(g, scratch); break;
  case TN_GEMM_GATHERED: loops->gathered(g, scratch); break;
  case TN_GEMM_DOTS: loops->dots(g); break;
  default: loops->straight(g); break;
  }
  free(scratch);
}

static float with_epilogue(const tn_sgemm *g, int64_t i, int64_t j, double y) {
  if (g->epilogue.bias != NULL) y += g->epilogue.bias[j];
  if (g->epilogue.op == TN_EPILOGUE_RELU) return (float)fmax(y, 0);
  if (g->epilogue.op == TN_EPILOGUE_RELU_GRAD) return g->epilogue.operand[i * g->c_i + j] > 0 ? (float)y : 0;
  if (g->epilogue.op == TN_EPILOGUE_ADD) return (float)(y + (double)g->epilogue.operand[i * g->c_i + j]);
  double x = g->epilogue.op == TN_EPILOGUE_GELU ? y : (double)g->epilogue.operand[i * g->c_i + j];
  int32_t approximate = g->epilogue.approximate;
  if (g->epilogue.op == TN_EPILOGUE_GELU) return (float)defined_gelu(y, approximate);
  if (g->epilogue.op == TN_EPILOGUE_GELU_GRAD) return (float)(y * defined_gelu_slope(x, approximate));
  return (float)y;
}

/* The operand of GELU, where it is a result, too. */
static void check_preactivation(const tn_sgemm *g, int64_t i, int64_t j, double sum, double magnitude) {
  if (g->epilogue.preactivation == NULL || g->epilogue.op != TN_EPILOGUE_GELU) return;
  double preactivation = (double)g->epilogue.preactivation[i * g->c_i + j] - (double)g->epilogue.bias[j];
  if (!(fabs(preactivation - sum) <= 4e-6 * magnitude))
    fail_msg("the operand of GELU is %g, expected %g", preactivation, sum);
}

static void check(const tn_sgemm *g) {
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->c_i; j++) {
      double sum = 0, magnitude = 1;
      for (int64_t p = 0; p < g->k && j < g->n; p++) {
        double term = (double)g->a[i * g->a_i + p * g->a_k] * (double)g->b[p * g->b_k + j * g->b_j];
        sum += term;
        magnitude += fabs(term);
      }
      float got = g->c[i * g->c_i + j];
      if (j >= g->n)
        assert_true(got == 77.0f);
      else
        check_preactivation(g, i, j, sum, magnitude);
      if (j < g->n && !(fabs((double)got - (double)with_epilogue(g, i, j, sum)) <= 4e-6 * magnitude))
        fail_msg("%lld %lld %lld: element %lld, %lld is %g, expected %g", (long long)g->m, (long long)g->n,
                 (long long)g->k, (long long)i, (long long)j, (double)got,
                 (double)with_epilogue(g, i, j, sum));
    }
}

static void try_all(int64_t m, int64_t n, int64_t k, int32_t op, tn_rng *rng) {
  for (int32_t t = 0; t < 4; t++) {
    int32_t ta = t & 1, tb = t >> 1;
    float *a = drawn(m * k, rng), *b = drawn(k * n, rng), *bias = drawn(n, rng),
          *operand = drawn(m * (n + GAP), rng);
    float *c = malloc((size_t)(m * (n + GAP)) * sizeof *c), *preactivation = drawn(m * (n + GAP), rng);
    tn_sgemm g = {m,
                  n,
                  k,
                  a,
                  b,
                  ta ? 1 : k,
                  ta ? m : 1,
                  tb ? 1 : n,
                  tb ? k : 1,
                  c,
                  n + GAP,
                  {.bias = bias,
                   .op = op,
                   .operand = operand,
                   .approximate = t & 1,
                   .preactivation = k % 2 ? preactivation : NULL}};
    if (op == TN_EPILOGUE_NONE && k % 2 == 0) g.epilogue.bias = NULL;
    for (int32_t isa = 0; isa <= TN_ISA_AVX512; isa++)
      for (int32_t method = 0; method < METHODS && loops_at(isa) != NULL; method++) {
        if (!fits(method, ta, tb) || (method == TN_GEMM_FOLDED && k == 0)) continue;
        for (int64_t i = 0; i < m * g.c_i; i++) c[i] = 77.0f;
        run(loops_at(isa), method, &g);
        check(&g);
      }
    free(a), free(b), free(bias), free(operand), free(c), free(preactivation);
  }
}

static void products_of_every_small_size_are_right(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(31, 0);
  for (int64_t m = 1; m <= 10; m++)
    for (int64_t n = 1; n <= 52; n += m % 2 == 0 ? 1 : 5)
      try_all(m, n, 1 + (int64_t)tn_rng_below(&rng, 20), (int32_t)((m + n) % EPILOGUES), &rng);
}

static void products_of_several_panels_are_right(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(32, 0);
  try_all(17, 101, TN_GEMM_DEPTH + 1, TN_EPILOGUE_RELU, &rng);
  try_all(3, 49, 2 * TN_GEMM_DEPTH + 30, TN_EPILOGUE_RELU_GRAD, &rng);
  try_all(19, 70, TN_GEMM_DEPTH + 9, TN_EPILOGUE_GELU, &rng);
  try_all(19, 70, 2 * TN_GEMM_DEPTH + 9, TN_EPILOGUE_GELU_GRAD, &rng);
  try_all(33, 7, TN_GEMM_DEPTH, TN_EPILOGUE_NONE, &rng);
  try_all(515, 66, 300, TN_EPILOGUE_NONE, &rng);
}

static void a_sum_of_nothing_is_the_bias_or_zero(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(33, 0);
  try_all(5, 19, 0, TN_EPILOGUE_NONE, &rng);
  try_all(5, 19, 0, TN_EPILOGUE_RELU, &rng);
}

static void nan_stays_nan_behind_a_maximum(void **state) {
  (void)state;
  for (int32_t isa = 0; isa <= TN_ISA_AVX512 && loops_at(isa) != NULL; isa++) {
    float a = 1, b[3] = {NAN, -1, 2}, c[3];
    tn_sgemm g = {1, 3, 1, &a, b, 1, 1, 3, 1, c, 3, {.op = TN_EPILOGUE_RELU}};
    loops_at(isa)->straight(&g);
    assert_true(isnan(c[0]) && c[1] == 0 && c[2] == 2);
  }
}

/* For every shape, items cover a result once, and chunks cover the items. */
static void cuts_cover_a_result_once(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 7, 32, 97, 128, 300, 1000};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  for (int32_t i = 0; i < SIZES * SIZES * 4; i++) {
    tn_gemm_partition partition;
    int64_t m = sizes[i % SIZES], n = sizes[i / SIZES % SIZES], t = i / SIZES / SIZES, volume = 0, next = 0;
    int64_t k = 500 + i % 5 * 700;
    tn_gemm_partition_make(&partition, TN_F32, (int32_t)(t & 1), (int32_t)(t >> 1), 1 + i % 3, m, n, k,
                           (i % 2 ? TN_GEMM_EPILOGUE : 0) | (i % 3 ? TN_GEMM_CONSTANT : 0));
    for (int64_t c = 0; c < partition.chunks; c++) {
      int64_t count, first = tn_gemm_chunk_items(&partition, c, &count);
      assert_true(first == next && count > 0);
      next += count;
      for (int64_t item = first; item < next; item++) {
        tn_gemm_extent r;
        assert_in_range(tn_gemm_item_range(&partition, item, &r), 0, partition.products - 1);
        assert_true(r.m > 0 && r.n > 0 && r.k > 0 && r.m0 + r.m <= m && r.n0 + r.n <= n && r.k0 + r.k <= k);
        assert_true(partition.parts == 1 || (partition.products == 1 && i % 2 == 0));
        volume += r.m * r.n * r.k;
      }
    }
    assert_true(volume == partition.products * m * n * k);
  }
}

static void rows_of_any_number_are_summed(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(34, 0);
  for (int64_t n = 1; n < 40; n += 3)
    for (int32_t isa = 0; isa <= TN_ISA_AVX512 && loops_at(isa) != NULL; isa++) {
      int64_t rows = n * 7 % 71;
      float *from = drawn(rows * n, &rng), to[40];
      loops_at(isa)->sum_rows(from, n, rows, n, to);
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++) sum += (double)from[i * n + j];
        assert_true(fabs(sum - (double)to[j]) < 1e-3);
      }
      free(from);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_of_every_small_size_are_right),
      cmocka_unit_test(products_of_several_panels_are_right),
      cmocka_unit_test(a_sum_of_nothing_is_the_bias_or_zero),
      cmocka_unit_test(nan_stays_nan_behind_a_maximum),
      cmocka_unit_test(cuts_cover_a_result_once),
      cmocka_unit_test(rows_of_any_number_are_summed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
