/* tests/fakecuda/cublaslt/products_test.c: products of every type, order, transpose and epilogue against
 * plain loops in double, for every algorithm that the heuristic gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backends/shared/half.h"
#include "tests/fakecuda/cublaslt/rig.h"

enum { ALGORITHMS = 8, EDGE = 96 };

static double stored(const rig_product *p, int i, int item, int row, int column) {
  return rig_load(p->matrix[i].type, p->pointer[i], rig_place(&p->matrix[i], item, row, column));
}

/* An element of A or B (0, 1) as the compute type reads it. */
static double operand(const rig_product *p, int i, int item, int row, int column) {
  double value = stored(p, i, item, row, column);
  if (p->compute == CUBLAS_COMPUTE_32F_FAST_TF32) return tn_tf32_of_f32((float)value);
  if (p->compute == CUBLAS_COMPUTE_32F_FAST_16F) return tn_f32_of_f16(tn_f16_of_f32((float)value));
  return p->compute == CUBLAS_COMPUTE_32F_FAST_16BF ? tn_f32_of_bf16(tn_bf16_of_f32((float)value)) : value;
}

static double exact_sum(const rig_product *p, int item, int i, int j) {
  double sum = 0;
  for (int k = 0; k < p->k; k++) {
    sum += operand(p, 0, item, p->transa ? k : i, p->transa ? i : k) *
           operand(p, 1, item, p->transb ? j : k, p->transb ? k : j);
  }
  return sum;
}

static double exact_gelu(double x) {
  return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* By a difference quotient: another formula than that of the double. */
static double exact_slope(double x) { return (exact_gelu(x + 1e-5) - exact_gelu(x - 1e-5)) / 2e-5; }

static bool mask_bit(const rig_product *p, int item, int i, int j) {
  int64_t bit = item * p->aux_stride + j * p->aux_ld + i;
  return ((const uint8_t *)p->aux)[bit / 8] >> (bit % 8) & 1;
}

static double aux_value(const rig_product *p, int item, int i, int j) {
  return rig_load(p->matrix[3].type, p->aux, item * p->aux_stride + j * p->aux_ld + i);
}

/* Rounding of the output type, and sums in f32 (in f16: a rounding for each block of 8). */
static double tolerance_of(const rig_product *p) {
  if (p->compute == CUBLAS_COMPUTE_64F) return 1e-15 * p->k;
  double rounding = p->matrix[3].type == CUDA_R_32F   ? 0
                    : p->matrix[3].type == CUDA_R_16F ? 1. / 1024
                                                      : 1. / 128;
  return rounding * 2 + 1e-6 * p->k + (p->compute == CUBLAS_COMPUTE_16F ? p->k / 8. / 1024 : 0);
}

static void expect_near(const rig_product *p, double got, double expected, const char *what) {
  if (fabs(got - expected) <= tolerance_of(p) * (1 + fabs(expected))) return;
  fail_msg("%s: %g, expected %g; compute %d, epilogue %u, %d x %d x %d, %d%d", what, got, expected,
           p->compute, p->epilogue, p->m, p->n, p->k, p->transa, p->transb);
}

static double pre_activation(const rig_product *p, int item, int i, int j, double alpha, double beta) {
  double x = alpha * exact_sum(p, item, i, j);
  if (beta != 0) x += beta * stored(p, 2, item, i, j);
  return x + (p->epilogue & CUBLASLT_EPILOGUE_BIAS
                  ? rig_load(p->matrix[3].type, p->bias, item * p->bias_stride + i)
                  : 0);
}

static double expected_result(const rig_product *p, int item, int i, int j, double x) {
  switch (p->epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_BIAS) {
  case CUBLASLT_EPILOGUE_RELU:
  case CUBLASLT_EPILOGUE_RELU_AUX: return x > 0 ? x : 0;
  case CUBLASLT_EPILOGUE_GELU:
  case CUBLASLT_EPILOGUE_GELU_AUX: return exact_gelu(x);
  case CUBLASLT_EPILOGUE_DRELU:
  case CUBLASLT_EPILOGUE_DRELU_BGRAD: return mask_bit(p, item, i, j) ? x : 0;
  case CUBLASLT_EPILOGUE_DGELU:
  case CUBLASLT_EPILOGUE_DGELU_BGRAD: return x * exact_slope(aux_value(p, item, i, j));
  default: return x;
  }
}

/* The outputs beside D: a mask or the input of GELU. */
static void check_aux(const rig_product *p, int item, int i, int j, double x) {
  if ((p->epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_BIAS) == CUBLASLT_EPILOGUE_GELU_AUX) {
    expect_near(p, aux_value(p, item, i, j), x, "aux");
  }
  if ((p->epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_BIAS) == CUBLASLT_EPILOGUE_RELU_AUX &&
      fabs(x) > tolerance_of(p)) {
    assert_int_equal(mask_bit(p, item, i, j), x > 0);
  }
}

static void check_bias_gradient(const rig_product *p, int item, const double *rows) {
  bool of_d = p->epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD || p->epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
  bool of_b = p->epilogue == CUBLASLT_EPILOGUE_BGRADB;
  if (!of_d && !of_b && p->epilogue != CUBLASLT_EPILOGUE_BGRADA) return;
  for (int i = 0; i < (of_b ? p->n : p->m); i++) {
    double sum = of_d ? rows[i] : 0;
    for (int k = 0; !of_d && k < p->k; k++) {
      bool turned = of_b ? !p->transb : p->transa;
      sum += stored(p, of_b, item, turned ? k : i, turned ? i : k);
    }
    expect_near(p, rig_load(p->matrix[3].type, p->bias, item * p->bias_stride + i), sum, "bias gradient");
  }
}

static void check_results(const rig_product *p, double alpha, double beta) {
  for (int item = 0; item < p->batch; item++) {
    double rows[EDGE] = {0};
    for (int i = 0; i < p->m; i++) {
      for (int j = 0; j < p->n; j++) {
        double x = pre_activation(p, item, i, j, alpha, beta), result = expected_result(p, item, i, j, x);
        rows[i] += result;
        check_aux(p, item, i, j, x);
        expect_near(p, stored(p, 3, item, i, j), result, "D");
      }
    }
    check_bias_gradient(p, item, rows);
  }
}

/* Every algorithm of the heuristic; each writes D anew. Returns their number. */
static int check_product(rig_product *p, unsigned seed) {
  rig_reset();
  rig_fill(p, seed);
  if (p->epilogue == CUBLASLT_EPILOGUE_DGELU || p->epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
    for (int64_t i = 0; i < p->aux_stride * p->batch; i++) {
      rig_store(p->matrix[3].type, p->aux, i, (double)(rand_r(&seed) % 4000) / 1000 - 2);
    }
  } else if (p->epilogue == CUBLASLT_EPILOGUE_DRELU || p->epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD) {
    for (int64_t i = 0; i < p->aux_stride * p->batch / 8; i++)
      ((uint8_t *)p->aux)[i] = (uint8_t)rand_r(&seed);
  }
  rig_describe(p);
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
  int count = 0;
  if (rig_heuristic(p, ALGORITHMS, results, &count)) fail_msg("%s", rig_double()->fakecublaslt_why());
  for (int i = 0; i < count; i++) {
    if (rig_multiply(p, &results[i].algo)) fail_msg("%s", rig_double()->fakecublaslt_why());
    check_results(p, 1, 0);
  }
  rig_close(p);
  return count;
}

static const struct {
  cublasComputeType_t compute;
  cudaDataType scale, inputs, outputs;
} type_cases[] = {
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
    {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
};
enum { TYPE_CASES = sizeof type_cases / sizeof *type_cases };

static void set_types(rig_product *p, int types, bool row_major) {
  static const uint16_t half_one = 0x3c00, half_zero = 0;
  static const double one = 1, zero = 0;
  p->compute = type_cases[types].compute;
  p->scale = type_cases[types].scale;
  rig_arrange(p, type_cases[types].inputs, type_cases[types].outputs, row_major);
  if (p->scale == CUDA_R_16F) p->alpha = &half_one, p->beta = &half_zero;
  if (p->scale == CUDA_R_64F) p->alpha = &one, p->beta = &zero;
}

static void products_of_all_types_orders_and_transposes(void **state) {
  (void)state;
  static const int sizes[][3] = {{33, 18, 70}, {16, 4, 8}, {1, 5, 3}, {5, 1, 1}, {64, 20, 64}};
  for (int types = 0; types < TYPE_CASES; types++) {
    for (unsigned turn = 0; turn < 8; turn++) {
      for (unsigned size = 0; size < sizeof sizes / sizeof *sizes; size++) {
        rig_product p = rig_plain(sizes[size][0], sizes[size][1], sizes[size][2]);
        p.transa = turn & 1, p.transb = turn >> 1 & 1;
        set_types(&p, types, turn & 4);
        p.batch = 1 + (int)(size == 1) * 2;
        check_product(&p, 17 * turn + size);
      }
    }
  }
}

static const uint32_t epilogues[] = {
    CUBLASLT_EPILOGUE_DEFAULT,  CUBLASLT_EPILOGUE_RELU,        CUBLASLT_EPILOGUE_RELU_AUX,
    CUBLASLT_EPILOGUE_BIAS,     CUBLASLT_EPILOGUE_RELU_BIAS,   CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
    CUBLASLT_EPILOGUE_DRELU,    CUBLASLT_EPILOGUE_DRELU_BGRAD, CUBLASLT_EPILOGUE_GELU,
    CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_BIAS,   CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
    CUBLASLT_EPILOGUE_DGELU,    CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA,
    CUBLASLT_EPILOGUE_BGRADB};

static void products_with_all_epilogues(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof epilogues / sizeof *epilogues; i++) {
    for (int types = 0; types < TYPE_CASES; types++) {
      bool none = type_cases[types].compute == CUBLAS_COMPUTE_64F;
      if (none && epilogues[i] != CUBLASLT_EPILOGUE_DEFAULT) continue;
      for (int batch = 1; batch <= 3; batch += 2) {
        rig_product p = rig_plain(37, 11, 70);
        p.epilogue = epilogues[i];
        p.batch = batch;
        p.transb = p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
        set_types(&p, types, false);
        assert_true(check_product(&p, i * 100 + (unsigned)types) >= 2);
      }
    }
  }
}

/* RELU and GELU alone take a row-major D; one bias serves all of a batch where its stride is 0. */
static void epilogues_with_rows_and_one_bias(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    rig_product p = rig_plain(19, 23, 40);
    p.epilogue = (uint32_t[]){CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_BIAS}[i];
    p.batch = 2;
    set_types(&p, 0, i < 2);
    rig_reset();
    rig_fill(&p, 5);
    p.bias_stride = 0;
    rig_describe(&p);
    assert_int_equal(rig_multiply(&p, NULL), CUBLAS_STATUS_SUCCESS);
    check_results(&p, 1, 0);
    rig_close(&p);
  }
}

/* C in D's place or apart, scalars of the host and of the device; a C of NaN is not read where beta is 0. */
static void alpha_and_beta(void **state) {
  (void)state;
  static const float alpha = 0.75f, betas[] = {-1.5f, 0};
  for (int turn = 0; turn < 4; turn++) {
    rig_product p = rig_plain(35, 9, 65);
    float beta = betas[turn & 1];
    rig_reset();
    rig_fill(&p, 3);
    if (beta == 0) memset(p.pointer[2], 0xff, sizeof(float) * (size_t)p.matrix[2].stride);
    float *scalars = rig_device(2 * sizeof(float));
    scalars[0] = alpha, scalars[1] = beta;
    p.pointer_mode = turn >> 1 ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST;
    p.alpha = p.pointer_mode ? scalars : &alpha;
    p.beta = p.pointer_mode ? scalars + 1 : &betas[turn & 1];
    rig_describe(&p);
    assert_int_equal(rig_multiply(&p, NULL), CUBLAS_STATUS_SUCCESS);
    check_results(&p, alpha, beta);
    rig_product in_place = p;
    in_place.pointer[3] = p.pointer[2];
    assert_int_equal(rig_multiply(&in_place, NULL), CUBLAS_STATUS_SUCCESS);
    assert_memory_equal(in_place.pointer[3], p.pointer[3], sizeof(float) * (size_t)p.m);
    rig_close(&p);
  }
}

/* A batch of D side by side (heads of attention), one A for all of the batch, rows with gaps. */
static void strided_and_broadcast_batches(void **state) {
  (void)state;
  rig_product p = rig_plain(8, 6, 32);
  p.batch = 4;
  p.matrix[0].stride = 0;
  p.matrix[1].ld = 48, p.matrix[1].stride = 48 * 6 + 16;
  p.matrix[2].ld = p.matrix[3].ld = 40;
  p.matrix[2].stride = p.matrix[3].stride = 8;
  check_product(&p, 9);
  uint32_t gap = 0;
  memcpy(&gap, (const float *)p.pointer[3] + 4 * 8, sizeof gap);
  assert_int_equal(gap, UINT32_MAX);
}

/* Algorithms sum in orders of their own; each gives the same bits again. */
static void orders_of_sums(void **state) {
  (void)state;
  rig_product p = rig_plain(48, 16, 512);
  rig_reset();
  rig_fill(&p, 1);
  rig_describe(&p);
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
  int count = 0, different = 0;
  size_t bytes = sizeof(float) * 48 * 16;
  float first[48 * 16], again[48 * 16];
  assert_int_equal(rig_heuristic(&p, ALGORITHMS, results, &count), CUBLAS_STATUS_SUCCESS);
  assert_int_equal(count, 5);
  for (int i = 0; i < count; i++) {
    assert_int_equal(rig_multiply(&p, &results[i].algo), CUBLAS_STATUS_SUCCESS);
    memcpy(again, p.pointer[3], bytes);
    assert_int_equal(rig_multiply(&p, &results[i].algo), CUBLAS_STATUS_SUCCESS);
    assert_memory_equal(again, p.pointer[3], bytes);
    if (i == 0) memcpy(first, again, bytes);
    different += i > 0 && memcmp(first, again, bytes) != 0;
  }
  assert_int_equal(different, count - 1);
  rig_close(&p);
}

/* 1 + 2^-12 is a number of f32 and none of TF32. */
static void tf32_rounds_operands(void **state) {
  (void)state;
  for (int fast = 0; fast < 2; fast++) {
    rig_product p = rig_plain(1, 1, 1);
    if (fast) p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    rig_reset();
    rig_fill(&p, 1);
    *(float *)p.pointer[0] = 1 + 0x1p-12f;
    *(float *)p.pointer[1] = 1;
    rig_describe(&p);
    assert_int_equal(rig_multiply(&p, NULL), CUBLAS_STATUS_SUCCESS);
    assert_true(*(float *)p.pointer[3] == (fast ? 1 : 1 + 0x1p-12f));
    rig_close(&p);
  }
}

/* ReLU keeps NaN; its mask has the bit of a zero. */
static void relu_of_zero_and_nan(void **state) {
  (void)state;
  rig_product p = rig_plain(8, 1, 8);
  p.epilogue = CUBLASLT_EPILOGUE_RELU_AUX;
  rig_reset();
  rig_fill(&p, 1);
  memset(p.pointer[0], 0, sizeof(float) * 64);
  *(float *)p.pointer[0] = NAN;
  rig_describe(&p);
  assert_int_equal(rig_multiply(&p, NULL), CUBLAS_STATUS_SUCCESS);
  assert_true(isnan(*(float *)p.pointer[3]));
  assert_true(((float *)p.pointer[3])[1] == 0);
  assert_int_equal(*(uint8_t *)p.aux, 0xff);
  rig_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_of_all_types_orders_and_transposes),
      cmocka_unit_test(products_with_all_epilogues),
      cmocka_unit_test(epilogues_with_rows_and_one_bias),
      cmocka_unit_test(alpha_and_beta),
      cmocka_unit_test(strided_and_broadcast_batches),
      cmocka_unit_test(orders_of_sums),
      cmocka_unit_test(tf32_rounds_operands),
      cmocka_unit_test(relu_of_zero_and_nan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
