/* tests/fakecuda/cublaslt/refusals_test.c: each call that cuBLASLt refuses, or that would fault on a GPU, is
 * refused by the double for its reason; the preference decides which algorithms the heuristic gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <cuda.h>
#include <string.h>
#include "tests/fakecuda/cublaslt/rig.h"

enum { ALGORITHMS = 8 };

static void expect_refusal(cublasStatus_t got, cublasStatus_t expected, const char *reason) {
  const char *why = rig_double()->fakecublaslt_why();
  if (got == expected && strstr(why, reason)) return;
  fail_msg("status %d for \"%s\"; expected status %d for \"%s\"", got, why, expected, reason);
}

static rig_product ready(int m, int n, int k) {
  rig_product p = rig_plain(m, n, k);
  rig_reset();
  rig_fill(&p, 1);
  return p;
}

/* The heuristic and the product, which chooses its algorithm, refuse the descriptors for the same reason. */
static void refused(rig_product *p, cublasStatus_t status, const char *reason) {
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
  int count = 9;
  rig_describe(p);
  expect_refusal(rig_heuristic(p, ALGORITHMS, results, &count), status, reason);
  assert_int_equal(count, 0);
  expect_refusal(rig_multiply(p, NULL), status, reason);
  rig_close(p);
}

static void shapes_that_do_not_fit(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    rig_product p = ready(24, 16, 40);
    p.matrix[i].rows--;
    refused(&p, CUBLAS_STATUS_INVALID_VALUE, i == 2 ? "C is 23 x 16" : "op(A) is");
    p = ready(24, 16, 40);
    p.matrix[i].columns++;
    refused(&p, CUBLAS_STATUS_INVALID_VALUE, i == 2 ? "C is 24 x 17" : "op(A) is");
    p = ready(24, 16, 40);
    p.matrix[i].columns = 0;
    refused(&p, CUBLAS_STATUS_INVALID_VALUE, "expected 1 to 2^31 - 1");
  }
  rig_product p = ready(24, 16, 40);
  p.transa = 1;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "op(A) is 40 x 24");
}

static void leading_dimensions_and_strides(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    rig_product p = ready(24, 16, 40);
    p.matrix[i].ld = p.matrix[i].rows - 1;
    refused(&p, CUBLAS_STATUS_INVALID_VALUE, "leading dimension");
    p = ready(24, 16, 40);
    p.batch = 2;
    p.matrix[i].stride = -8;
    refused(&p, CUBLAS_STATUS_INVALID_VALUE, "has the batch stride -8");
  }
  rig_product p = ready(24, 16, 40);
  p.batch = 2;
  p.matrix[3].stride = 24 * 15;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "matrices of D's batch overlap");
  p = ready(24, 16, 40);
  p.batch = 70000;
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "a batch of 70000");
  p = ready(24, 16, 40);
  p.batch = 0;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "a batch of 0");
  p = ready(24, 16, 40);
  p.matrix[2].row_major = 1;
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "differ in their order");
}

/* Sets an attribute of A's layout. */
static void refuse_layout(int attribute, int64_t value, size_t bytes, const char *reason) {
  rig_product p = ready(24, 16, 40);
  rig_describe(&p);
  assert_int_equal(rig_double()->cublasLtMatrixLayoutSetAttribute(p.layout[0], attribute, &value, bytes),
                   CUBLAS_STATUS_SUCCESS);
  expect_refusal(rig_multiply(&p, NULL), CUBLAS_STATUS_NOT_SUPPORTED, reason);
  rig_close(&p);
}

static void layouts_that_are_not_regular(void **state) {
  (void)state;
  refuse_layout(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL32, 4, "A has order 2");
  refuse_layout(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, 4096, 8, "A has planes");
  refuse_layout(8, 1, 4, "a batch of pointers"); /* CUBLASLT_MATRIX_LAYOUT_BATCH_MODE of newer headers */
  rig_product p = ready(24, 16, 40);
  p.matrix[0].ld = p.matrix[0].columns = INT32_MAX;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "A does not fit into memory");
}

static void types_without_a_product(void **state) {
  (void)state;
  static const struct {
    cublasComputeType_t compute;
    cudaDataType scale, a, b, c, d;
  } cases[] = {
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F},
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_16F},
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_16BF},
      {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F},
      {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
      {CUBLAS_COMPUTE_16F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
      {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F},
      {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
      {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
      {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_32F},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig_product p = ready(24, 16, 40);
    const cudaDataType types[] = {cases[i].a, cases[i].b, cases[i].c, cases[i].d};
    p.compute = cases[i].compute, p.scale = cases[i].scale;
    for (int j = 0; j < 4; j++) p.matrix[j].type = types[j];
    refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "no such product");
  }
}

static rig_product with_epilogue(uint32_t epilogue, int k) {
  rig_product p = ready(24, 16, k);
  p.epilogue = epilogue;
  return p;
}

static void epilogues_with_rows(void **state) {
  (void)state;
  static const uint32_t epilogues[] = {
      CUBLASLT_EPILOGUE_BIAS,        CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS,
      CUBLASLT_EPILOGUE_RELU_AUX,    CUBLASLT_EPILOGUE_GELU_AUX,  CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
      CUBLASLT_EPILOGUE_DRELU,       CUBLASLT_EPILOGUE_DGELU,     CUBLASLT_EPILOGUE_DRELU_BGRAD,
      CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA,    CUBLASLT_EPILOGUE_BGRADB};
  for (size_t i = 0; i < sizeof epilogues / sizeof *epilogues; i++) {
    rig_product p = with_epilogue(epilogues[i], 40);
    rig_arrange(&p, CUDA_R_32F, CUDA_R_32F, true);
    refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "row-major D");
  }
}

static void bias_and_aux(void **state) {
  (void)state;
  rig_product p = with_epilogue(CUBLASLT_EPILOGUE_BIAS, 40);
  p.bias = NULL;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "needs a bias pointer");
  p = with_epilogue(CUBLASLT_EPILOGUE_BIAS, 40);
  p.bias_type = CUDA_R_16F;
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "bias of type 2");
  p = with_epilogue(CUBLASLT_EPILOGUE_BIAS, 40);
  p.batch = 2, p.bias_stride = 8;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "batch stride 8 of a bias");
  p = with_epilogue(CUBLASLT_EPILOGUE_RELU_AUX, 40);
  p.aux = NULL;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "needs an aux pointer");
  p = with_epilogue(CUBLASLT_EPILOGUE_RELU_AUX, 40);
  p.aux_ld = 24;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "multiple of 128");
  p = with_epilogue(CUBLASLT_EPILOGUE_RELU_AUX, 40);
  p.aux_type = CUDA_R_32F;
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "aux of type 0");
  p = with_epilogue(CUBLASLT_EPILOGUE_GELU_AUX, 40);
  p.aux_ld = 28;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "multiple of 8, at least 24");
  p = with_epilogue(CUBLASLT_EPILOGUE_GELU_AUX, 40);
  p.aux_ld = 16;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "multiple of 8, at least 24");
  p = with_epilogue(CUBLASLT_EPILOGUE_DGELU, 40);
  p.aux_type = CUDA_R_16F;
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "aux of type 2");
  p = with_epilogue(CUBLASLT_EPILOGUE_DRELU, 40);
  p.batch = 2, p.aux_stride = 128;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "aux has the batch stride 128");
  p.aux_stride = 128 * 16 + 64;
  refused(&p, CUBLAS_STATUS_INVALID_VALUE, "aux has the batch stride 2112");
}

static void gradients_that_no_kernel_has(void **state) {
  (void)state;
  rig_product p = with_epilogue(CUBLASLT_EPILOGUE_DRELU, 1);
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "k = 1");
  p = with_epilogue(CUBLASLT_EPILOGUE_DGELU_BGRAD, 1);
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "k = 1");
  p = with_epilogue(CUBLASLT_EPILOGUE_BGRADB, 40);
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "BGRADB");
  p = with_epilogue(CUBLASLT_EPILOGUE_BGRADA, 40);
  p.transa = 1;
  rig_arrange(&p, CUDA_R_32F, CUDA_R_32F, false);
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "BGRADA");
  p = rig_plain(1, 16, 40);
  rig_fill(&p, 1);
  p.epilogue = CUBLASLT_EPILOGUE_BGRADA;
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "BGRADA");
  p = rig_plain(16, 1, 40);
  p.transb = 1;
  rig_arrange(&p, CUDA_R_32F, CUDA_R_32F, false);
  rig_fill(&p, 1);
  p.epilogue = CUBLASLT_EPILOGUE_BGRADB;
  refused(&p, CUBLAS_STATUS_NOT_SUPPORTED, "BGRADB");
}

/* Sets one attribute of the descriptor to a value of 1, 4 or 8 bytes. */
static void refuse_attribute(int attribute, int64_t value, size_t bytes, cublasStatus_t status,
                             const char *reason) {
  rig_product p = ready(24, 16, 40);
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
  int count;
  rig_describe(&p);
  assert_int_equal(rig_double()->cublasLtMatmulDescSetAttribute(p.desc, attribute, &value, bytes),
                   CUBLAS_STATUS_SUCCESS);
  expect_refusal(rig_heuristic(&p, ALGORITHMS, results, &count), status, reason);
  expect_refusal(rig_multiply(&p, NULL), status, reason);
  rig_close(&p);
}

static void attributes_of_other_products(void **state) {
  (void)state;
  refuse_attribute(CUBLASLT_MATMUL_DESC_TRANSA, 3, 4, CUBLAS_STATUS_INVALID_VALUE, "transpose 3 of A");
  refuse_attribute(CUBLASLT_MATMUL_DESC_TRANSC, 1, 4, CUBLAS_STATUS_NOT_SUPPORTED, "transposed C");
  refuse_attribute(CUBLASLT_MATMUL_DESC_FILL_MODE, 0, 4, CUBLAS_STATUS_NOT_SUPPORTED, "fill mode");
  refuse_attribute(CUBLASLT_MATMUL_DESC_EPILOGUE, 3, 4, CUBLAS_STATUS_INVALID_VALUE, "epilogue 3");
  refuse_attribute(CUBLASLT_MATMUL_DESC_POINTER_MODE, 7, 4, CUBLAS_STATUS_INVALID_VALUE, "pointer mode 7");
  refuse_attribute(CUBLASLT_MATMUL_DESC_POINTER_MODE, 2, 4, CUBLAS_STATUS_NOT_SUPPORTED, "vectors of alpha");
  refuse_attribute(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, -1, 4, CUBLAS_STATUS_INVALID_VALUE,
                   "SM_COUNT_TARGET");
  refuse_attribute(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 4096, 8, CUBLAS_STATUS_INVALID_VALUE,
                   "scale pointer");
  refuse_attribute(CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1, 1, CUBLAS_STATUS_NOT_SUPPORTED, "fast accumulation");
#if CUBLAS_VERSION >= 130100
  refuse_attribute(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, 4096, 8, CUBLAS_STATUS_NOT_SUPPORTED,
                   "emulation");
#endif
}

/* A target for the number of multiprocessors changes no product. */
static void accepts_a_target_of_multiprocessors(void **state) {
  (void)state;
  rig_product p = ready(24, 16, 40);
  int32_t count = 40;
  rig_describe(&p);
  assert_int_equal(rig_double()->cublasLtMatmulDescSetAttribute(p.desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET,
                                                                &count, sizeof count),
                   CUBLAS_STATUS_SUCCESS);
  assert_int_equal(rig_multiply(&p, NULL), CUBLAS_STATUS_SUCCESS);
  rig_close(&p);
}

static void refuses_product(rig_product *p, const char *reason) {
  rig_describe(p);
  expect_refusal(rig_multiply(p, NULL), CUBLAS_STATUS_INVALID_VALUE, reason);
  rig_close(p);
}

static void pointers(void **state) {
  (void)state;
  static float host[24 * 40];
  static const char *const names[] = {"A: ", "B: ", "C: ", "D: "};
  for (int i = 0; i < 4; i++) {
    rig_product p = ready(24, 16, 40);
    p.pointer[i] = host;
    refuses_product(&p, names[i]);
    p.pointer[i] = NULL;
    refuses_product(&p, "is NULL");
  }
  rig_product p = ready(24, 16, 40);
  p.pointer[0] = (char *)rig_device(64);
  refuses_product(&p, "not in one allocation");
  p = ready(24, 16, 40);
  p.pointer[3] = p.pointer[0];
  refuses_product(&p, "D overlaps A");
  p = ready(24, 16, 40);
  p.pointer[2] = (char *)p.pointer[3] + 256;
  refuses_product(&p, "D overlaps C");
  p = with_epilogue(CUBLASLT_EPILOGUE_BIAS, 40);
  p.bias = host;
  refuses_product(&p, "bias: ");
  p = with_epilogue(CUBLASLT_EPILOGUE_RELU_AUX, 40);
  p.aux = (void *)((uintptr_t)host / 256 * 256 + 256);
  refuses_product(&p, "aux: ");
}

static void scalars(void **state) {
  (void)state;
  rig_product p = ready(24, 16, 40);
  p.alpha = NULL;
  refuses_product(&p, "alpha is NULL");
  p = ready(24, 16, 40);
  p.beta = rig_device(4);
  refuses_product(&p, "pointer mode is that of the host");
  p = ready(24, 16, 40);
  p.pointer_mode = CUBLASLT_POINTER_MODE_DEVICE;
  refuses_product(&p, "alpha: 4 bytes are not");
}

static int count_algorithms(rig_product *p, cublasLtMatmulHeuristicResult_t results[ALGORITHMS]) {
  int count = 0;
  rig_describe(p);
  cublasStatus_t status = rig_heuristic(p, ALGORITHMS, results, &count);
  if (count == 0) expect_refusal(status, CUBLAS_STATUS_NOT_SUPPORTED, "no algorithm fits");
  for (int i = 0; i < count; i++) {
    assert_int_equal(results[i].state, CUBLAS_STATUS_SUCCESS);
    assert_true(results[i].workspaceSize <= p->max_workspace && results[i].wavesCount > 0);
  }
  rig_close(p);
  return count;
}

static void preferences(void **state) {
  (void)state;
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
  rig_product p = ready(24, 16, 128);
  assert_int_equal(count_algorithms(&p, results), 5);
  p.max_workspace = 0;
  assert_int_equal(count_algorithms(&p, results), 2);
  p.max_workspace = 4096;
  assert_int_equal(count_algorithms(&p, results), 3);
  p = ready(24, 16, 128);
  p.schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
  assert_int_equal(count_algorithms(&p, results), 3);
  p = ready(24, 16, 128);
  p.alignment[1] = 8;
  assert_int_equal(count_algorithms(&p, results), 2);
  p.alignment[1] = 4;
  assert_int_equal(count_algorithms(&p, results), 1);
  p.alignment[1] = 2;
  assert_int_equal(count_algorithms(&p, results), 0);
  p = ready(24, 16, 128);
  p.flags = CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK |
            CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_TYPE_MASK |
            CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK;
  assert_int_equal(count_algorithms(&p, results), 0);
  p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  assert_int_equal(count_algorithms(&p, results), 4);
}

/* Leading dimensions and the addresses of bias and aux count as alignments. */
static void alignments_of_a_problem(void **state) {
  (void)state;
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
  rig_product p = ready(24, 16, 128);
  p.matrix[0].ld = 25;
  assert_int_equal(count_algorithms(&p, results), 1);
  p = ready(24, 16, 128);
  p.batch = 2, p.matrix[0].stride++;
  assert_int_equal(count_algorithms(&p, results), 1);
  p = with_epilogue(CUBLASLT_EPILOGUE_BIAS, 128);
  assert_int_equal(count_algorithms(&p, results), 4);
  p.bias = (char *)p.bias + 4;
  assert_int_equal(count_algorithms(&p, results), 1);
  p = with_epilogue(CUBLASLT_EPILOGUE_RELU_AUX, 128);
  p.aux = (char *)p.aux + 8;
  assert_int_equal(count_algorithms(&p, results), 0);
  p = ready(24, 16, 128);
  p.alignment[0] = 24;
  rig_describe(&p);
  int count;
  expect_refusal(rig_heuristic(&p, ALGORITHMS, results, &count), CUBLAS_STATUS_INVALID_VALUE, "power of two");
  expect_refusal(rig_heuristic(&p, 0, results, &count), CUBLAS_STATUS_INVALID_VALUE,
                 "0 algorithms requested");
  rig_close(&p);
}

static void set_preference(rig_product *p, int attribute, const void *value) {
  assert_int_equal(rig_double()->cublasLtMatmulPreferenceSetAttribute(p->preference, attribute, value, 4),
                   CUBLAS_STATUS_SUCCESS);
}

static void waves_and_search_modes(void **state) {
  (void)state;
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
  rig_product p = ready(24, 16, 128);
  int count;
  uint32_t mode = CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID;
  float waves = 0.01f; /* one of 132 multiprocessors, and less than two */
  rig_describe(&p);
  set_preference(&p, CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, &waves);
  assert_int_equal(rig_heuristic(&p, ALGORITHMS, results, &count), CUBLAS_STATUS_SUCCESS);
  assert_int_equal(count, 3);
  set_preference(&p, CUBLASLT_MATMUL_PREF_SEARCH_MODE, &mode);
  expect_refusal(rig_heuristic(&p, ALGORITHMS, results, &count), CUBLAS_STATUS_NOT_SUPPORTED,
                 "of one algorithm");
  mode = 7;
  set_preference(&p, CUBLASLT_MATMUL_PREF_SEARCH_MODE, &mode);
  expect_refusal(rig_heuristic(&p, ALGORITHMS, results, &count), CUBLAS_STATUS_INVALID_VALUE,
                 "search mode 7");
  rig_close(&p);
}

/* Another bias takes no other algorithm, as long as it is aligned like the first. */
static void algorithms_serve_other_biases(void **state) {
  (void)state;
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS], checked;
  const rig_library *lt = rig_double();
  rig_product p = with_epilogue(CUBLASLT_EPILOGUE_BIAS, 128);
  int count;
  rig_describe(&p);
  assert_int_equal(rig_heuristic(&p, ALGORITHMS, results, &count), CUBLAS_STATUS_SUCCESS);
  for (int i = 0; i < 2; i++) {
    char *bias = (char *)rig_device(256) + (i ? 4 : 0);
    assert_int_equal(
        lt->cublasLtMatmulDescSetAttribute(p.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
        CUBLAS_STATUS_SUCCESS);
    cublasStatus_t status = rig_multiply(&p, &results[0].algo);
    cublasStatus_t check = lt->cublasLtMatmulAlgoCheck(rig_handle(), p.desc, p.layout[0], p.layout[1],
                                                       p.layout[2], p.layout[3], &results[0].algo, &checked);
    if (i == 0) assert_int_equal(check, CUBLAS_STATUS_SUCCESS);
    if (i) expect_refusal(check, CUBLAS_STATUS_NOT_SUPPORTED, "less aligned");
    assert_int_equal(status, i ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS);
  }
  rig_close(&p);
}

/* An algorithm runs the problem that it was chosen for. */
static void algorithms_are_bound(void **state) {
  (void)state;
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS], checked = {0};
  const rig_library *lt = rig_double();
  rig_product p = ready(24, 16, 128), other = p;
  int count;
  other.epilogue = CUBLASLT_EPILOGUE_RELU;
  rig_describe(&p);
  rig_describe(&other);
  assert_int_equal(rig_heuristic(&p, ALGORITHMS, results, &count), CUBLAS_STATUS_SUCCESS);
  expect_refusal(rig_multiply(&other, &results[0].algo), CUBLAS_STATUS_INVALID_VALUE, "another problem");
  expect_refusal(lt->cublasLtMatmulAlgoCheck(rig_handle(), other.desc, p.layout[0], p.layout[1], p.layout[2],
                                             p.layout[3], &results[0].algo, &checked),
                 CUBLAS_STATUS_INVALID_VALUE, "another problem");
  assert_int_equal(lt->cublasLtMatmulAlgoCheck(rig_handle(), p.desc, p.layout[0], p.layout[1], p.layout[2],
                                               p.layout[3], &results[0].algo, &checked),
                   CUBLAS_STATUS_SUCCESS);
  assert_int_equal(checked.workspaceSize, results[0].workspaceSize);
  cublasLtMatmulAlgo_t broken = results[1].algo;
  broken.data[1] ^= 1;
  expect_refusal(rig_multiply(&p, &broken), CUBLAS_STATUS_INVALID_VALUE, "not from the heuristic");
  rig_close(&p);
  rig_close(&other);
}

static void algorithms_keep_their_needs(void **state) {
  (void)state;
  cublasLtMatmulHeuristicResult_t results[ALGORITHMS];
  rig_product p = ready(24, 16, 128);
  int count;
  rig_describe(&p);
  assert_int_equal(rig_heuristic(&p, ALGORITHMS, results, &count), CUBLAS_STATUS_SUCCESS);
  assert_int_equal(results[0].workspaceSize, 32768);
  rig_product changed = p;
  changed.workspace_bytes = 32767;
  expect_refusal(rig_multiply(&changed, &results[0].algo), CUBLAS_STATUS_INVALID_VALUE,
                 "a workspace of 32767 bytes");
  changed = p;
  changed.workspace = (char *)p.workspace + 128;
  changed.workspace_bytes -= 128;
  expect_refusal(rig_multiply(&changed, &results[0].algo), CUBLAS_STATUS_INVALID_VALUE,
                 "workspace is not aligned to 256 bytes");
  changed.workspace = NULL;
  expect_refusal(rig_multiply(&changed, &results[0].algo), CUBLAS_STATUS_INVALID_VALUE, "workspace is NULL");
  changed = p;
  changed.pointer[1] = (char *)p.pointer[1] - 8;
  expect_refusal(rig_multiply(&changed, &results[0].algo), CUBLAS_STATUS_INVALID_VALUE,
                 "B is not aligned to 16");
  changed = p;
  changed.workspace = NULL, changed.workspace_bytes = 0;
  assert_int_equal(rig_multiply(&changed, &results[1].algo), CUBLAS_STATUS_SUCCESS);
  rig_refuse_work(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  expect_refusal(rig_multiply(&p, &results[0].algo), CUBLAS_STATUS_EXECUTION_FAILED,
                 "the stream refused the work: CUresult 901");
  rig_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes_that_do_not_fit),
      cmocka_unit_test(leading_dimensions_and_strides),
      cmocka_unit_test(layouts_that_are_not_regular),
      cmocka_unit_test(types_without_a_product),
      cmocka_unit_test(epilogues_with_rows),
      cmocka_unit_test(bias_and_aux),
      cmocka_unit_test(gradients_that_no_kernel_has),
      cmocka_unit_test(attributes_of_other_products),
      cmocka_unit_test(accepts_a_target_of_multiprocessors),
      cmocka_unit_test(pointers),
      cmocka_unit_test(scalars),
      cmocka_unit_test(preferences),
      cmocka_unit_test(alignments_of_a_problem),
      cmocka_unit_test(waves_and_search_modes),
      cmocka_unit_test(algorithms_serve_other_biases),
      cmocka_unit_test(algorithms_are_bound),
      cmocka_unit_test(algorithms_keep_their_needs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
