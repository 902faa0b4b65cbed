/* tests/fakecuda/cublaslt/problem.c: see problem.h. Where the header leaves a case open, the stricter reading
 * is taken: a call that the double accepts is one that is known to run. */
#include <string.h>
#include "tests/fakecuda/cublaslt/descriptors.h"
#include "tests/fakecuda/cublaslt/library.h"
#include "tests/fakecuda/cublaslt/problem.h"

#define INVALID     CUBLAS_STATUS_INVALID_VALUE
#define UNSUPPORTED CUBLAS_STATUS_NOT_SUPPORTED

/* A stack of larger batches runs on few kernels of the library. */
enum { MOST_BATCHES = 65535, MASK_LD_MULTIPLE = 128, GELU_LD_MULTIPLE = 8 };
static const int64_t most_elements = INT64_C(1) << 42; /* of one matrix, and of a batch stride */
static const char operand_names[] = "ABCD";

int64_t fakelt_type_bytes(int32_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

static int64_t extent(const fakelt_matrix *matrix) {
  return matrix->row_major ? (matrix->rows - 1) * matrix->ld + matrix->columns
                           : (matrix->columns - 1) * matrix->ld + matrix->rows;
}

int64_t fakelt_matrix_bytes(const fakelt_matrix *matrix, int64_t batch) {
  return ((batch - 1) * matrix->stride + extent(matrix)) * fakelt_type_bytes(matrix->type);
}

bool fakelt_reads_bias(uint32_t epilogue) { return epilogue & CUBLASLT_EPILOGUE_BIAS; }

bool fakelt_writes_bias_gradient(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD || epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD ||
         epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

bool fakelt_has_aux(uint32_t epilogue) { return epilogue & 128; }

bool fakelt_aux_is_mask(uint32_t epilogue) {
  return fakelt_has_aux(epilogue) && (epilogue & (CUBLASLT_EPILOGUE_RELU | 8));
}

int64_t fakelt_bias_length(const fakelt_problem *problem) {
  return problem->epilogue == CUBLASLT_EPILOGUE_BGRADB ? problem->n : problem->m;
}

int64_t fakelt_bias_bytes(const fakelt_problem *problem) {
  return ((problem->batch - 1) * problem->bias_stride + fakelt_bias_length(problem)) *
         fakelt_type_bytes(problem->matrix[FAKELT_D].type);
}

int64_t fakelt_aux_bytes(const fakelt_problem *problem) {
  int64_t elements =
      (problem->batch - 1) * problem->aux_stride + (problem->n - 1) * problem->aux_ld + problem->m;
  return fakelt_aux_is_mask(problem->epilogue) ? (elements + 7) / 8
                                               : elements * fakelt_type_bytes(problem->matrix[FAKELT_D].type);
}

/* ---- matrices
 * ---------------------------------------------------------------------------------------------- */

static cublasStatus_t check_sizes(const fakelt_layout *layout, char name) {
  FAKELT_REQUIRE(layout->rows >= 1 && layout->rows <= INT32_MAX && layout->columns >= 1 &&
                     layout->columns <= INT32_MAX,
                 INVALID, "%c has %llu x %llu elements, expected 1 to 2^31 - 1 in each dimension", name,
                 (unsigned long long)layout->rows, (unsigned long long)layout->columns);
  int64_t least = (int64_t)(layout->order == CUBLASLT_ORDER_ROW ? layout->columns : layout->rows);
  FAKELT_REQUIRE(layout->ld >= least && layout->ld <= INT32_MAX, INVALID,
                 "%c has the leading dimension %lld, expected at least %lld", name, (long long)layout->ld,
                 (long long)least);
  int64_t lines = (int64_t)(layout->order == CUBLASLT_ORDER_ROW ? layout->rows : layout->columns);
  FAKELT_REQUIRE(layout->ld * lines <= most_elements, INVALID, "%c does not fit into memory", name);
  FAKELT_REQUIRE(layout->batch >= 1, INVALID, "%c has a batch of %d", name, layout->batch);
  FAKELT_REQUIRE(layout->batch <= MOST_BATCHES, UNSUPPORTED, "%c has a batch of %d, more than %d", name,
                 layout->batch, MOST_BATCHES);
  FAKELT_REQUIRE(layout->stride >= 0 && layout->stride <= most_elements, INVALID,
                 "%c has the batch stride %lld", name, (long long)layout->stride);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t read_matrix(cublasLtMatrixLayout_t from, char name, fakelt_matrix *matrix,
                                  int64_t *batch) {
  const fakelt_layout *layout = fakelt_layout_of(from);
  FAKELT_REQUIRE(layout, INVALID, "the layout of %c is NULL or was destroyed", name);
  FAKELT_REQUIRE(layout->order == CUBLASLT_ORDER_COL || layout->order == CUBLASLT_ORDER_ROW, UNSUPPORTED,
                 "%c has order %d, expected rows or columns", name, layout->order);
  FAKELT_TRY(check_sizes(layout, name));
  FAKELT_REQUIRE(layout->plane == 0 && layout->batch_mode == 0, UNSUPPORTED,
                 "%c has planes, or a batch of pointers", name);
  *matrix = (fakelt_matrix){
      layout->type, layout->order == CUBLASLT_ORDER_ROW,   (int64_t)layout->rows, (int64_t)layout->columns,
      layout->ld,   layout->batch > 1 ? layout->stride : 0};
  *batch = layout->batch;
  return CUBLAS_STATUS_SUCCESS;
}

/* Matrices of a batch of results lie one after the other, or side by side within one leading dimension. */
static cublasStatus_t check_overlap(const fakelt_matrix *d, int64_t batch) {
  int64_t line = d->row_major ? d->columns : d->rows;
  bool apart = d->stride >= extent(d) || (d->stride >= line && batch * d->stride <= d->ld);
  FAKELT_REQUIRE(batch == 1 || apart, INVALID, "the matrices of D's batch overlap: batch stride %lld",
                 (long long)d->stride);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_shapes(const fakelt_problem *p) {
  const fakelt_matrix *a = &p->matrix[FAKELT_A], *b = &p->matrix[FAKELT_B], *c = &p->matrix[FAKELT_C];
  int64_t a_rows = p->transposed[0] ? a->columns : a->rows, b_rows = p->transposed[1] ? b->columns : b->rows;
  int64_t b_columns = p->transposed[1] ? b->rows : b->columns;
  FAKELT_REQUIRE(a_rows == p->m && b_rows == p->k && b_columns == p->n, INVALID,
                 "op(A) is %lld x %lld, op(B) %lld x %lld, D %lld x %lld", (long long)a_rows, (long long)p->k,
                 (long long)b_rows, (long long)b_columns, (long long)p->m, (long long)p->n);
  FAKELT_REQUIRE(c->rows == p->m && c->columns == p->n, INVALID, "C is %lld x %lld, D %lld x %lld",
                 (long long)c->rows, (long long)c->columns, (long long)p->m, (long long)p->n);
  FAKELT_REQUIRE(c->row_major == p->matrix[FAKELT_D].row_major, UNSUPPORTED, "C and D differ in their order");
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t read_matrices(const fakelt_descriptors *from, fakelt_problem *p) {
  for (int i = 0; i < FAKELT_OPERANDS; i++) {
    int64_t batch = 0;
    FAKELT_TRY(read_matrix(from->layout[i], operand_names[i], &p->matrix[i], &batch));
    FAKELT_REQUIRE(i == 0 || batch == p->batch, INVALID, "%c has a batch of %lld, A one of %lld",
                   operand_names[i], (long long)batch, (long long)p->batch);
    p->batch = batch;
  }
  p->m = p->matrix[FAKELT_D].rows;
  p->n = p->matrix[FAKELT_D].columns;
  p->k = p->transposed[0] ? p->matrix[FAKELT_A].rows : p->matrix[FAKELT_A].columns;
  FAKELT_TRY(check_shapes(p));
  return check_overlap(&p->matrix[FAKELT_D], p->batch);
}

/* ---- types
 * ------------------------------------------------------------------------------------------------- */

typedef struct type_rule {
  int32_t compute, scale, inputs, outputs; /* outputs: of C, D, bias and aux */
} type_rule;

static const type_rule type_rules[] = {
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
};

static int32_t without_pedantic(int32_t compute) {
  if (compute == CUBLAS_COMPUTE_32F_PEDANTIC) return CUBLAS_COMPUTE_32F;
  return compute == CUBLAS_COMPUTE_16F_PEDANTIC ? CUBLAS_COMPUTE_16F : compute;
}

static cublasStatus_t check_types(const fakelt_problem *p) {
  const fakelt_matrix *matrix = p->matrix;
  for (size_t i = 0; i < sizeof type_rules / sizeof *type_rules; i++) {
    const type_rule *rule = &type_rules[i];
    if (rule->compute == p->compute && rule->scale == p->scale && rule->inputs == matrix[FAKELT_A].type &&
        rule->inputs == matrix[FAKELT_B].type && rule->outputs == matrix[FAKELT_C].type &&
        rule->outputs == matrix[FAKELT_D].type) {
      return CUBLAS_STATUS_SUCCESS;
    }
  }
  return fakelt_refuse(UNSUPPORTED,
                       "compute type %d, scale type %d, A of type %d, B %d, C %d, D %d: no such product",
                       p->compute, p->scale, matrix[FAKELT_A].type, matrix[FAKELT_B].type,
                       matrix[FAKELT_C].type, matrix[FAKELT_D].type);
}

/* ---- epilogues
 * --------------------------------------------------------------------------------------------- */

static bool is_known_epilogue(uint32_t epilogue) {
  switch (epilogue) {
  case CUBLASLT_EPILOGUE_DEFAULT:
  case CUBLASLT_EPILOGUE_RELU:
  case CUBLASLT_EPILOGUE_RELU_AUX:
  case CUBLASLT_EPILOGUE_BIAS:
  case CUBLASLT_EPILOGUE_RELU_BIAS:
  case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
  case CUBLASLT_EPILOGUE_DRELU:
  case CUBLASLT_EPILOGUE_DRELU_BGRAD:
  case CUBLASLT_EPILOGUE_GELU:
  case CUBLASLT_EPILOGUE_GELU_AUX:
  case CUBLASLT_EPILOGUE_GELU_BIAS:
  case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
  case CUBLASLT_EPILOGUE_DGELU:
  case CUBLASLT_EPILOGUE_DGELU_BGRAD:
  case CUBLASLT_EPILOGUE_BGRADA:
  case CUBLASLT_EPILOGUE_BGRADB: return true;
  default: return false;
  }
}

static cublasStatus_t check_bias(const fakelt_problem *p, int32_t type) {
  FAKELT_REQUIRE(p->bias, INVALID, "the epilogue needs a bias pointer; the heuristic reads its alignment");
  FAKELT_REQUIRE(type == -1 || type == p->matrix[FAKELT_D].type, UNSUPPORTED, "bias of type %d, D of type %d",
                 type, p->matrix[FAKELT_D].type);
  bool fits = fakelt_reads_bias(p->epilogue) ? p->bias_stride == 0 || p->bias_stride >= p->m
                                             : p->batch == 1 || p->bias_stride >= fakelt_bias_length(p);
  FAKELT_REQUIRE(p->bias_stride >= 0 && p->bias_stride <= most_elements && fits, INVALID,
                 "batch stride %lld of a bias of %lld elements", (long long)p->bias_stride,
                 (long long)fakelt_bias_length(p));
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_aux(const fakelt_problem *p, int32_t type) {
  bool mask = fakelt_aux_is_mask(p->epilogue);
  int64_t multiple = mask ? MASK_LD_MULTIPLE : GELU_LD_MULTIPLE;
  FAKELT_REQUIRE(p->aux, INVALID, "the epilogue needs an aux pointer; the heuristic reads its alignment");
  FAKELT_REQUIRE(p->aux_ld >= p->m && p->aux_ld <= INT32_MAX && p->aux_ld * p->n <= most_elements &&
                     p->aux_ld % multiple == 0,
                 INVALID, "aux has the leading dimension %lld, expected a multiple of %lld, at least %lld",
                 (long long)p->aux_ld, (long long)multiple, (long long)p->m);
  FAKELT_REQUIRE(p->batch == 1 || (p->aux_stride >= p->aux_ld * p->n && p->aux_stride <= most_elements &&
                                   p->aux_stride % multiple == 0),
                 INVALID, "aux has the batch stride %lld, expected a multiple of %lld, at least %lld",
                 (long long)p->aux_stride, (long long)multiple, (long long)(p->aux_ld * p->n));
  FAKELT_REQUIRE(type == -1 || (!mask && type == p->matrix[FAKELT_D].type), UNSUPPORTED,
                 "aux of type %d, D of type %d", type, p->matrix[FAKELT_D].type);
  return CUBLAS_STATUS_SUCCESS;
}

/* Restrictions that are in no header: users of the library have met them on GPUs. */
static cublasStatus_t check_known_limits(const fakelt_problem *p) {
  const fakelt_matrix *a = &p->matrix[FAKELT_A], *b = &p->matrix[FAKELT_B];
  bool any_order = p->epilogue == CUBLASLT_EPILOGUE_DEFAULT || p->epilogue == CUBLASLT_EPILOGUE_RELU ||
                   p->epilogue == CUBLASLT_EPILOGUE_GELU;
  FAKELT_REQUIRE(p->compute != CUBLAS_COMPUTE_64F || p->epilogue == CUBLASLT_EPILOGUE_DEFAULT, UNSUPPORTED,
                 "epilogue %u of a product of f64", p->epilogue);
  FAKELT_REQUIRE(any_order || !p->matrix[FAKELT_D].row_major, UNSUPPORTED, "epilogue %u with a row-major D",
                 p->epilogue);
  bool backward = fakelt_has_aux(p->epilogue) && (p->epilogue & (8 | 64));
  FAKELT_REQUIRE(!backward || p->k > 1, UNSUPPORTED, "epilogue %u with k = 1", p->epilogue);
  FAKELT_REQUIRE(p->epilogue != CUBLASLT_EPILOGUE_BGRADA || (p->transposed[0] == a->row_major && p->m > 1),
                 UNSUPPORTED, "BGRADA, and the rows of op(A) are not consecutive elements, or one");
  FAKELT_REQUIRE(p->epilogue != CUBLASLT_EPILOGUE_BGRADB || (p->transposed[1] != b->row_major && p->n > 1),
                 UNSUPPORTED, "BGRADB, and the columns of op(B) are not consecutive elements, or one");
  return CUBLAS_STATUS_SUCCESS;
}

/* ---- the descriptor
 * ---------------------------------------------------------------------------------------- */

static cublasStatus_t check_desc(const fakelt_desc *desc) {
  FAKELT_REQUIRE(desc, INVALID, "the descriptor is NULL or was destroyed");
  for (int i = 0; i < 3; i++) {
    FAKELT_REQUIRE(desc->transposed[i] >= CUBLAS_OP_N && desc->transposed[i] <= CUBLAS_OP_C, INVALID,
                   "transpose %d of %c", desc->transposed[i], operand_names[i]);
  }
  FAKELT_REQUIRE(is_known_epilogue(desc->epilogue), INVALID, "epilogue %u is unknown", desc->epilogue);
  FAKELT_REQUIRE(desc->pointer_mode >= 0 && desc->pointer_mode <= 4, INVALID, "pointer mode %d",
                 desc->pointer_mode);
  FAKELT_REQUIRE(desc->sm_count >= 0, INVALID, "SM_COUNT_TARGET is %d", desc->sm_count);
  for (int i = 0; i < FAKELT_TENSOR_SCALES; i++) {
    FAKELT_REQUIRE(!desc->tensor_scales[i], INVALID,
                   "a scale pointer or amax pointer with types that have no scale");
  }
  FAKELT_REQUIRE(desc->transposed[2] == CUBLAS_OP_N, UNSUPPORTED, "a transposed C");
  FAKELT_REQUIRE(desc->fill == CUBLAS_FILL_MODE_FULL, UNSUPPORTED, "a part of D by fill mode %d", desc->fill);
  FAKELT_REQUIRE(desc->pointer_mode <= CUBLASLT_POINTER_MODE_DEVICE && desc->alpha_stride == 0, UNSUPPORTED,
                 "vectors of alpha: pointer mode %d", desc->pointer_mode);
  FAKELT_REQUIRE(!desc->atomic_chunks && !desc->fast_accumulation, UNSUPPORTED,
                 "chunks, or fast accumulation of 8-bit types");
#if FAKELT_HAS_BLOCK_SCALES
  FAKELT_REQUIRE(!desc->emulation, UNSUPPORTED, "emulation of floating point");
#endif
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t fakelt_read_problem(const fakelt_descriptors *from, fakelt_problem *problem) {
  const fakelt_desc *desc = fakelt_desc_of(from->desc);
  FAKELT_TRY(check_desc(desc));
  memset(problem, 0, sizeof *problem);
  problem->compute = without_pedantic(desc->compute);
  problem->scale = desc->scale;
  problem->pointer_mode = desc->pointer_mode;
  problem->transposed[0] = desc->transposed[0] != CUBLAS_OP_N;
  problem->transposed[1] = desc->transposed[1] != CUBLAS_OP_N;
  problem->epilogue = desc->epilogue;
  FAKELT_TRY(read_matrices(from, problem));
  FAKELT_TRY(check_types(problem));
  if (fakelt_reads_bias(problem->epilogue) || fakelt_writes_bias_gradient(problem->epilogue)) {
    problem->bias = desc->bias;
    problem->bias_stride = problem->batch > 1 ? desc->bias_stride : 0;
    FAKELT_TRY(check_bias(problem, desc->bias_type));
  }
  if (fakelt_has_aux(problem->epilogue)) {
    problem->aux = desc->aux;
    problem->aux_ld = desc->aux_ld;
    problem->aux_stride = problem->batch > 1 ? desc->aux_stride : 0;
    FAKELT_TRY(check_aux(problem, desc->aux_type));
  }
  return check_known_limits(problem);
}
