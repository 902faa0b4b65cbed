/* tests/fakecuda/cublaslt/product.c: see product.h. Operands are copied into panels of f32, rounded as the
 * compute type says, and multiplied tile by tile. Products are summed in f32, in blocks whose length the
 * algorithm decides. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backends/shared/half.h"
#include "tests/fakecuda/cublaslt/product.h"

enum { TILE_ROWS = 16, TILE_COLUMNS = 6 };

/* Rows that are multiplied by all columns before the next ones: so many bytes of them stay in a cache.
 * Products of fewer multiplications than LEAST_SHARED are one thread's. */
enum { ROW_BYTES = 1 << 19, MOST_THREADS = 16, LEAST_SHARED = 1 << 26 };

typedef struct panels {
  float *rows;        /* [m / TILE_ROWS][k][TILE_ROWS], of op(A); 0 beyond m */
  float *columns;     /* [n / TILE_COLUMNS][k][TILE_COLUMNS], of op(B); 0 beyond n */
  float *sums, *part; /* [n][m] */
} panels;

float fakelt_load(int32_t type, const void *base, int64_t index) {
  if (type == CUDA_R_32F) return ((const float *)base)[index];
  uint16_t bits = ((const uint16_t *)base)[index];
  return type == CUDA_R_16F ? tn_f32_of_f16(bits) : tn_f32_of_bf16(bits);
}

void fakelt_store(int32_t type, void *base, int64_t index, float value) {
  if (type == CUDA_R_32F)
    ((float *)base)[index] = value;
  else
    ((uint16_t *)base)[index] = type == CUDA_R_16F ? tn_f16_of_f32(value) : tn_bf16_of_f32(value);
}

static float round_input(int32_t compute, float value) {
  switch (compute) {
  case CUBLAS_COMPUTE_32F_FAST_TF32: return tn_tf32_of_f32(value);
  case CUBLAS_COMPUTE_32F_FAST_16F: return tn_f32_of_f16(tn_f16_of_f32(value));
  case CUBLAS_COMPUTE_32F_FAST_16BF: return tn_f32_of_bf16(tn_bf16_of_f32(value));
  default: return value;
  }
}

/* Copies `lines` rows of op(A), or columns of op(B), each of k elements, into panels of `width` lines. */
static void pack_lines(const fakelt_problem *problem, int operand, const char *base, int64_t lines,
                       int64_t width, float *to) {
  const fakelt_matrix *matrix = &problem->matrix[operand];
  /* Lines are the rows of the matrix in memory where A is not transposed, or B is. */
  bool of_rows = (operand == FAKELT_A) == !problem->transposed[operand];
  int64_t line_step = of_rows == (bool)matrix->row_major ? matrix->ld : 1, step = matrix->ld + 1 - line_step;
  for (int64_t line = 0; line < lines; line++) {
    float *panel = to + line / width * width * problem->k + line % width;
    for (int64_t k = 0; k < problem->k; k++) {
      panel[k * width] =
          round_input(problem->compute, fakelt_load(matrix->type, base, line * line_step + k * step));
    }
  }
}

/* A vector of GCC: four registers of SSE, two of AVX2, one of AVX-512. */
typedef float lanes __attribute__((vector_size(TILE_ROWS * sizeof(float)), aligned(4)));

static inline __attribute__((always_inline)) void add_block(const float *rows, const float *columns,
                                                            int64_t length, lanes sum[TILE_COLUMNS]) {
  for (int j = 0; j < TILE_COLUMNS; j++) sum[j] = (lanes){0};
  for (int64_t k = 0; k < length; k++) {
    const lanes *row = (const lanes *)(rows + k * TILE_ROWS);
    const float *column = columns + k * TILE_COLUMNS;
#pragma GCC unroll 6
    for (int j = 0; j < TILE_COLUMNS; j++) sum[j] += *row * column[j];
  }
}

/* A tile of sums over [first, end) of k, in blocks. With `half`, the sum of blocks is rounded to f16 after
 * each. */
static inline __attribute__((always_inline)) void sum_tile(const float *rows, const float *columns,
                                                           int64_t first, int64_t end, int64_t block,
                                                           bool half, float total[TILE_COLUMNS][TILE_ROWS]) {
  memset(total, 0, TILE_COLUMNS * TILE_ROWS * sizeof(float));
  for (int64_t start = first; start < end; start += block) {
    int64_t length = start + block < end ? block : end - start;
    lanes sum[TILE_COLUMNS];
    add_block(rows + start * TILE_ROWS, columns + start * TILE_COLUMNS, length, sum);
    for (int j = 0; j < TILE_COLUMNS; j++) {
      for (int i = 0; i < TILE_ROWS; i++) {
        float next = total[j][i] + sum[j][i];
        total[j][i] = half ? tn_f32_of_f16(tn_f16_of_f32(next)) : next;
      }
    }
  }
}

typedef void tile_function(const float *rows, const float *columns, int64_t first, int64_t end, int64_t block,
                           bool half, float total[TILE_COLUMNS][TILE_ROWS]);

static void sum_tile_portable(const float *rows, const float *columns, int64_t first, int64_t end,
                              int64_t block, bool half, float total[TILE_COLUMNS][TILE_ROWS]) {
  sum_tile(rows, columns, first, end, block, half, total);
}

#if defined __x86_64__
/* Without contraction into fused operations, vectors of any length give the same bits. */
__attribute__((target("avx2"))) static void sum_tile_avx2(const float *rows, const float *columns,
                                                          int64_t first, int64_t end, int64_t block,
                                                          bool half, float total[TILE_COLUMNS][TILE_ROWS]) {
  sum_tile(rows, columns, first, end, block, half, total);
}
__attribute__((target("avx512f"))) static void sum_tile_avx512(const float *rows, const float *columns,
                                                               int64_t first, int64_t end, int64_t block,
                                                               bool half,
                                                               float total[TILE_COLUMNS][TILE_ROWS]) {
  sum_tile(rows, columns, first, end, block, half, total);
}
static tile_function *choose_tile(void) {
  if (__builtin_cpu_supports("avx512f")) return sum_tile_avx512;
  return __builtin_cpu_supports("avx2") ? sum_tile_avx2 : sum_tile_portable;
}
#else
static tile_function *choose_tile(void) { return sum_tile_portable; }
#endif

/* Sums over [first, end) of k, which threads share by blocks of rows. */
typedef struct range_work {
  const fakelt_task *task;
  const panels *from;
  int64_t first, end;
  float *to;
  int64_t rows; /* of a block */
  _Atomic(int64_t) next;
} range_work;

static void sum_rows(const range_work *w, int64_t top, int64_t bottom) {
  const fakelt_problem *p = &w->task->problem;
  tile_function *sum = choose_tile();
  float total[TILE_COLUMNS][TILE_ROWS];
  for (int64_t j = 0; j < p->n; j += TILE_COLUMNS) {
    for (int64_t i = top; i < bottom; i += TILE_ROWS) {
      sum(w->from->rows + i * p->k, w->from->columns + j * p->k, w->first, w->end, w->task->algorithm.block,
          p->compute == CUBLAS_COMPUTE_16F, total);
      int64_t height = p->m - i < TILE_ROWS ? p->m - i : TILE_ROWS;
      for (int64_t column = 0; column < TILE_COLUMNS && j + column < p->n; column++) {
        memcpy(w->to + (j + column) * p->m + i, total[column], (size_t)height * sizeof(float));
      }
    }
  }
}

static void *sum_blocks(void *work) {
  range_work *w = work;
  int64_t m = w->task->problem.m;
  for (int64_t top; (top = atomic_fetch_add(&w->next, w->rows)) < m;)
    sum_rows(w, top, top + w->rows < m ? top + w->rows : m);
  return NULL;
}

static void sum_range(const fakelt_task *task, const panels *from, int64_t first, int64_t end, float *to) {
  const fakelt_problem *p = &task->problem;
  range_work work = {.task = task, .from = from, .first = first, .end = end, .to = to};
  int64_t row_bytes = p->k * (int64_t)sizeof(float), tiles = ROW_BYTES / (row_bytes * TILE_ROWS);
  pthread_t threads[MOST_THREADS];
  long processors = p->m * p->n * (end - first) < LEAST_SHARED ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
  int n = 0;
  work.rows = (tiles > 0 ? tiles : 1) * TILE_ROWS;
  while (n < processors - 1 && n < MOST_THREADS && pthread_create(&threads[n], NULL, sum_blocks, &work) == 0)
    n++;
  sum_blocks(&work);
  while (n > 0) pthread_join(threads[--n], NULL);
}

/* Parts of k are summed apart. Partial sums lie in the workspace where the algorithm reduces them in a step
 * of its own. */
static void sum_parts(const fakelt_task *task, const panels *from, int64_t item) {
  const fakelt_problem *p = &task->problem;
  int64_t elements = p->m * p->n, splits = task->algorithm.splits;
  bool in_workspace = task->algorithm.scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (task->algorithm.scratch) memset(task->workspace, 0xc5, (size_t)task->algorithm.scratch);
  for (int64_t part = 0; part < splits; part++) {
    float *to = from->part;
    if (in_workspace) to = (float *)task->workspace + (item * splits + part) * elements;
    sum_range(task, from, p->k * part / splits, p->k * (part + 1) / splits, to);
    for (int64_t i = 0; i < elements; i++) from->sums[i] = part == 0 ? to[i] : from->sums[i] + to[i];
  }
}

static float read_scalar(int32_t type, const fakelt_scalar *scalar) {
  return fakelt_load(type, scalar->device ? scalar->device : &scalar->bits, 0);
}

/* Sums of op(A)'s rows, or op(B)'s columns, as they are in memory. */
static void sum_input(const fakelt_task *task, int operand, const char *base, int64_t item) {
  const fakelt_problem *p = &task->problem;
  const fakelt_matrix *matrix = &p->matrix[operand];
  int32_t type = p->matrix[FAKELT_D].type;
  for (int64_t line = 0; line < fakelt_bias_length(p); line++) {
    float sum = 0;
    /* The lines are consecutive elements: fakelt_read_problem refuses other layouts. */
    for (int64_t k = 0; k < p->k; k++) sum += fakelt_load(matrix->type, base, line + k * matrix->ld);
    fakelt_store(type, p->bias, item * p->bias_stride + line, sum);
  }
}

static void run_item(const fakelt_task *task, const panels *to, int64_t item, float *bias_gradient) {
  const fakelt_problem *p = &task->problem;
  const fakelt_matrix *matrix = p->matrix;
  const char *a =
      (const char *)task->a + item * matrix[FAKELT_A].stride * fakelt_type_bytes(matrix[FAKELT_A].type);
  const char *b =
      (const char *)task->b + item * matrix[FAKELT_B].stride * fakelt_type_bytes(matrix[FAKELT_B].type);
  pack_lines(p, FAKELT_A, a, p->m, TILE_ROWS, to->rows);
  pack_lines(p, FAKELT_B, b, p->n, TILE_COLUMNS, to->columns);
  sum_parts(task, to, item);
  if (p->epilogue == CUBLASLT_EPILOGUE_BGRADA) sum_input(task, FAKELT_A, a, item);
  if (p->epilogue == CUBLASLT_EPILOGUE_BGRADB) sum_input(task, FAKELT_B, b, item);
  memset(bias_gradient, 0, (size_t)p->m * sizeof(float));
  fakelt_finish(&(fakelt_tail){task, item, read_scalar(p->scale, &task->alpha),
                               read_scalar(p->scale, &task->beta), to->sums, bias_gradient});
}

int fakelt_run(void *argument) {
  const fakelt_task *task = argument;
  const fakelt_problem *p = &task->problem;
  if (p->compute == CUBLAS_COMPUTE_64F) {
    fakelt_run_f64(task);
    return 0;
  }
  int64_t rows = (p->m + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
  int64_t columns = (p->n + TILE_COLUMNS - 1) / TILE_COLUMNS * TILE_COLUMNS;
  size_t floats = (size_t)(rows * p->k + columns * p->k + 2 * p->m * p->n + p->m);
  float *room = calloc(floats, sizeof(float));
  if (!room) return 1;
  panels to = {.rows = room, .columns = room + rows * p->k};
  to.sums = to.columns + columns * p->k;
  to.part = to.sums + p->m * p->n;
  for (int64_t item = 0; item < p->batch; item++) run_item(task, &to, item, to.part + p->m * p->n);
  free(room);
  return 0;
}
