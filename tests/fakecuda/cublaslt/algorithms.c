/* tests/fakecuda/cublaslt/algorithms.c: see algorithms.h; the heuristic, AlgoCheck and the configuration of
 * an algorithm. */
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cublaslt/algorithms.h"
#include "tests/fakecuda/cublaslt/descriptors.h"
#include "tests/fakecuda/cublaslt/double.h"
#include "tests/fakecuda/cublaslt/library.h"

enum { ALGO_MAGIC = 0x6c744135, AUX_ALIGNMENT = 16, TILE_EDGE = 128, MULTIPROCESSORS = 132, LEAST_PART = 16 };

/* Quickest first. */
static const fakelt_algorithm algorithms[] = {
    {67, 64, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 16, 32768, CUBLASLT_MATMUL_TILE_128x128, 15},
    {66, 32, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 16, 0, CUBLASLT_MATMUL_TILE_64x64, 11},
    {21, 32, 4, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 16, 0, CUBLASLT_MATMUL_TILE_64x64, 11},
    {20, 16, 2, CUBLASLT_REDUCTION_SCHEME_INPLACE, 8, 4096, CUBLASLT_MATMUL_TILE_32x32, 8},
    {0, 8, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 0, 0, CUBLASLT_MATMUL_TILE_32x32, 0},
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

/* The contents of a cublasLtMatmulAlgo_t. */
typedef struct algo_record {
  uint32_t magic;
  int32_t id;
  uint64_t problem, check;
  uint32_t tile, scheme, swizzle, custom, stages;
  int32_t splits;
  uint16_t inner_shape, cluster_shape;
} algo_record;
_Static_assert(sizeof(algo_record) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm fits");

#define PLACE(number, member)                                                                                \
  { number, offsetof(algo_record, member), sizeof(((algo_record *)0)->member) }
static const fakelt_attribute algo_attributes[] = {PLACE(CUBLASLT_ALGO_CONFIG_ID, id),
                                                   PLACE(CUBLASLT_ALGO_CONFIG_TILE_ID, tile),
                                                   PLACE(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, splits),
                                                   PLACE(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, scheme),
                                                   PLACE(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzle),
                                                   PLACE(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, custom),
                                                   PLACE(CUBLASLT_ALGO_CONFIG_STAGES_ID, stages),
                                                   PLACE(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, inner_shape),
                                                   PLACE(8, cluster_shape), /* of newer headers */
                                                   {0}};

/* ---- needs of an algorithm
 * --------------------------------------------------------------------------------- */

int64_t fakelt_alignment(const fakelt_algorithm *algorithm, int32_t type) {
  return algorithm->alignment ? algorithm->alignment : fakelt_type_bytes(type);
}

int64_t fakelt_aux_alignment(void) { return AUX_ALIGNMENT; }

int64_t fakelt_alignment_of(const void *pointer) {
  uintptr_t low = (uintptr_t)pointer & (~(uintptr_t)pointer + 1);
  return low == 0 || low > 256 ? 256 : (int64_t)low;
}

uint64_t fakelt_workspace(const fakelt_algorithm *algorithm, const fakelt_problem *problem) {
  uint64_t bytes = (uint64_t)algorithm->scratch;
  if (algorithm->scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) {
    bytes += (uint64_t)(algorithm->splits * problem->batch * problem->m * problem->n) * sizeof(float);
  }
  return (bytes + FAKELT_WORKSPACE_ALIGNMENT - 1) / FAKELT_WORKSPACE_ALIGNMENT * FAKELT_WORKSPACE_ALIGNMENT;
}

/* Partial sums in D are of D's type and cannot pass through an epilogue before the last of them. */
static bool can_run(const fakelt_algorithm *algorithm, const fakelt_problem *problem) {
  bool in_place = algorithm->scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE;
  if (in_place &&
      (problem->matrix[FAKELT_D].type != CUDA_R_32F || problem->epilogue != CUBLASLT_EPILOGUE_DEFAULT)) {
    return false;
  }
  if (algorithm->splits > 1 && problem->k < algorithm->splits * LEAST_PART) return false;
  for (int i = 0; i < FAKELT_OPERANDS; i++) {
    const fakelt_matrix *matrix = &problem->matrix[i];
    int64_t bytes = fakelt_type_bytes(matrix->type), needed = fakelt_alignment(algorithm, matrix->type);
    if (matrix->ld * bytes % needed || matrix->stride * bytes % needed) return false;
  }
  int64_t bias_needed = fakelt_alignment(algorithm, problem->matrix[FAKELT_D].type);
  return (!problem->bias || fakelt_alignment_of(problem->bias) >= bias_needed) &&
         (!problem->aux || fakelt_alignment_of(problem->aux) >= AUX_ALIGNMENT);
}

static bool suits_alignment(const fakelt_algorithm *algorithm, const fakelt_problem *problem,
                            const int64_t alignment[4]) {
  for (int i = 0; i < FAKELT_OPERANDS; i++) {
    if (alignment[i] < fakelt_alignment(algorithm, problem->matrix[i].type)) return false;
  }
  return true;
}

static uint64_t input_flag(const fakelt_problem *problem) {
  switch (problem->compute) {
  case CUBLAS_COMPUTE_32F_FAST_TF32: return CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
  case CUBLAS_COMPUTE_32F_FAST_16F: return CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F;
  case CUBLAS_COMPUTE_32F_FAST_16BF: return CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
  default: break;
  }
  if (problem->matrix[FAKELT_A].type == CUDA_R_16F) return CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F;
  return problem->matrix[FAKELT_A].type == CUDA_R_16BF ? CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF
                                                       : CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
}

/* Plain f32, and the algorithm without needs, run without tensor cores. */
static uint64_t numerical_flags(const fakelt_algorithm *algorithm, const fakelt_problem *problem) {
  uint64_t input = input_flag(problem);
  bool plain = algorithm->alignment == 0 || input == CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
  return (plain ? CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA : CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA) | input |
         (problem->compute == CUBLAS_COMPUTE_16F ? CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F
                                                 : CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F);
}

static float count_waves(const fakelt_algorithm *algorithm, const fakelt_problem *problem) {
  int64_t rows = (problem->m + TILE_EDGE - 1) / TILE_EDGE, columns = (problem->n + TILE_EDGE - 1) / TILE_EDGE;
  return (float)(rows * columns * problem->batch * algorithm->splits) / MULTIPROCESSORS;
}

/* ---- an algorithm bound to its problem
 * --------------------------------------------------------------------- */

static uint64_t hash_bytes(const void *from, size_t bytes) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const uint8_t *)from)[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* Of everything but the addresses of bias and aux. */
static uint64_t hash_problem(const fakelt_problem *problem) {
  fakelt_problem copy;
  memcpy(&copy, problem, sizeof copy);
  copy.bias = copy.aux = NULL;
  return hash_bytes(&copy, sizeof copy);
}

static uint64_t hash_record(const algo_record *record) {
  algo_record copy;
  memcpy(&copy, record, sizeof copy);
  copy.check = 0;
  return hash_bytes(&copy, sizeof copy);
}

static void bind_algorithm(const fakelt_algorithm *algorithm, const fakelt_problem *problem,
                           cublasLtMatmulAlgo_t *algo) {
  algo_record record;
  memset(&record, 0, sizeof record);
  record.magic = ALGO_MAGIC;
  record.id = algorithm->id;
  record.tile = algorithm->tile;
  record.scheme = algorithm->scheme;
  record.stages = algorithm->stages;
  record.splits = algorithm->splits;
  record.problem = hash_problem(problem);
  record.check = hash_record(&record);
  memset(algo, 0, sizeof *algo);
  memcpy(algo, &record, sizeof record);
}

const fakelt_algorithm *fakelt_bound_algorithm(const cublasLtMatmulAlgo_t *algo,
                                               const fakelt_problem *problem) {
  algo_record record;
  memcpy(&record, algo, sizeof record);
  if (record.magic != ALGO_MAGIC || record.check != hash_record(&record)) {
    fakelt_refuse(CUBLAS_STATUS_INVALID_VALUE, "the algorithm is not from the heuristic");
    return NULL;
  }
  if (record.problem != hash_problem(problem)) {
    fakelt_refuse(CUBLAS_STATUS_INVALID_VALUE, "the algorithm was given for another problem");
    return NULL;
  }
  for (int i = 0; i < ALGORITHMS; i++) {
    if (algorithms[i].id == record.id) return &algorithms[i];
  }
  return NULL;
}

const fakelt_algorithm *fakelt_implicit_algorithm(const fakelt_problem *problem, const int64_t alignment[4],
                                                  uint64_t workspace) {
  for (int i = 0; i < ALGORITHMS; i++) {
    const fakelt_algorithm *algorithm = &algorithms[i];
    if (can_run(algorithm, problem) && suits_alignment(algorithm, problem, alignment) &&
        fakelt_workspace(algorithm, problem) <= workspace) {
      return algorithm;
    }
  }
  return NULL;
}

/* ---- entry points
 * ------------------------------------------------------------------------------------------ */

static cublasStatus_t check_preference(const fakelt_preference *preference) {
  FAKELT_REQUIRE(preference, CUBLAS_STATUS_INVALID_VALUE, "the preference is NULL or was destroyed");
  FAKELT_REQUIRE(preference->search_mode <= CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID, CUBLAS_STATUS_INVALID_VALUE,
                 "search mode %u", preference->search_mode);
  FAKELT_REQUIRE(preference->search_mode == CUBLASLT_SEARCH_BEST_FIT, CUBLAS_STATUS_NOT_SUPPORTED,
                 "a search among configurations of one algorithm");
  for (int i = 0; i < FAKELT_OPERANDS; i++) {
    uint32_t bytes = preference->alignment[i];
    FAKELT_REQUIRE(bytes && (bytes & (bytes - 1)) == 0, CUBLAS_STATUS_INVALID_VALUE,
                   "a minimum alignment of %u bytes, expected a power of two", bytes);
  }
  return CUBLAS_STATUS_SUCCESS;
}

static bool suits_preference(const fakelt_algorithm *algorithm, const fakelt_problem *problem,
                             const fakelt_preference *preference) {
  int64_t alignment[4];
  for (int i = 0; i < 4; i++) alignment[i] = preference->alignment[i];
  return suits_alignment(algorithm, problem, alignment) &&
         fakelt_workspace(algorithm, problem) <= preference->max_workspace &&
         (algorithm->scheme & ~preference->schemes) == 0 &&
         (numerical_flags(algorithm, problem) & ~preference->flags) == 0 &&
         (preference->max_waves == 0 || count_waves(algorithm, problem) <= preference->max_waves);
}

static void fill_result(const fakelt_algorithm *algorithm, const fakelt_problem *problem,
                        cublasLtMatmulHeuristicResult_t *result) {
  result->workspaceSize = fakelt_workspace(algorithm, problem);
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = count_waves(algorithm, problem);
}

/* FAKECUDA_CUBLASLT_INVALID: the number of an epilogue that the heuristic refuses by INVALID_VALUE, which the
 * library answers for some combinations of types and epilogue. */
static cublasStatus_t check_wish(const fakelt_problem *problem) {
  const char *epilogue = getenv("FAKECUDA_CUBLASLT_INVALID");
  FAKELT_REQUIRE(!epilogue || strtoul(epilogue, NULL, 10) != problem->epilogue, CUBLAS_STATUS_INVALID_VALUE,
                 "a test asked for no epilogue %u", problem->epilogue);
  return CUBLAS_STATUS_SUCCESS;
}

/* FAKECUDA_CUBLASLT_BAD_STATE: the first result is one that cannot be used, and nothing but its state is
 * valid. */
static int fill_bad_results(cublasLtMatmulHeuristicResult_t *results, int requested) {
  if (!getenv("FAKECUDA_CUBLASLT_BAD_STATE") || requested < 2) return 0;
  memset(results, 0xff, sizeof *results);
  results->state = CUBLAS_STATUS_NOT_SUPPORTED;
  return 1;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int requested,
    cublasLtMatmulHeuristicResult_t results[], int *count) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulAlgoGetHeuristic"));
  FAKELT_TRY(fakelt_check_handle(handle));
  FAKELT_REQUIRE(requested > 0 && results && count, CUBLAS_STATUS_INVALID_VALUE,
                 "%d algorithms requested, or no place for them", requested);
  *count = 0;
  const fakelt_preference *wanted = fakelt_preference_of(preference);
  FAKELT_TRY(check_preference(wanted));
  fakelt_problem problem;
  FAKELT_TRY(fakelt_read_problem(&(fakelt_descriptors){desc, {a, b, c, d}}, &problem));
  FAKELT_TRY(check_wish(&problem));
  int bad = *count = fill_bad_results(results, requested);
  for (int i = 0; i < ALGORITHMS && *count < requested; i++) {
    if (!can_run(&algorithms[i], &problem) || !suits_preference(&algorithms[i], &problem, wanted)) continue;
    cublasLtMatmulHeuristicResult_t *result = &results[(*count)++];
    memset(result, 0, sizeof *result);
    bind_algorithm(&algorithms[i], &problem, &result->algo);
    fill_result(&algorithms[i], &problem, result);
  }
  FAKELT_REQUIRE(*count > bad, CUBLAS_STATUS_NOT_SUPPORTED,
                 "no algorithm fits the preference and the alignments");
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                                     cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                     const cublasLtMatmulAlgo_t *algo,
                                                     cublasLtMatmulHeuristicResult_t *result) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulAlgoCheck"));
  FAKELT_TRY(fakelt_check_handle(handle));
  FAKELT_REQUIRE(algo && result, CUBLAS_STATUS_INVALID_VALUE,
                 "the algorithm or the place for the result is NULL");
  fakelt_problem problem;
  FAKELT_TRY(fakelt_read_problem(&(fakelt_descriptors){desc, {a, b, c, d}}, &problem));
  const fakelt_algorithm *algorithm = fakelt_bound_algorithm(algo, &problem);
  if (!algorithm) return CUBLAS_STATUS_INVALID_VALUE;
  FAKELT_REQUIRE(can_run(algorithm, &problem), CUBLAS_STATUS_NOT_SUPPORTED,
                 "bias or aux is less aligned than in the call of the heuristic");
  fill_result(algorithm, &problem, result);
  return CUBLAS_STATUS_SUCCESS;
}

FAKELT_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attribute, void *value,
    size_t bytes, size_t *written) {
  FAKELT_TRY(fakelt_enter("cublasLtMatmulAlgoConfigGetAttribute"));
  FAKELT_REQUIRE(algo, CUBLAS_STATUS_INVALID_VALUE, "the algorithm is NULL");
  return fakelt_get(algo_attributes, algo, (int)attribute, value, bytes, written);
}
