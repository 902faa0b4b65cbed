/* tests/fakecuda/cublaslt/product_f64.c: products of f64, summed in f64. They have no epilogue. */
#include <string.h>

#include "tests/fakecuda/cublaslt/product.h"

static double element(const fakelt_matrix *m, const double *base, int64_t row, int64_t column) {
  return base[m->row_major ? row * m->ld + column : column * m->ld + row];
}

static double read_scalar_f64(const fakelt_scalar *scalar) {
  double value;
  memcpy(&value, scalar->device ? scalar->device : &scalar->bits, sizeof value);
  return value;
}

static double sum_f64(const fakelt_problem *p, const double *a, const double *b, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < p->k; k++)
    sum += element(&p->matrix[FAKELT_A], a, p->transposed[0] ? k : i, p->transposed[0] ? i : k) *
           element(&p->matrix[FAKELT_B], b, p->transposed[1] ? j : k, p->transposed[1] ? k : j);
  return sum;
}

void fakelt_run_f64(const fakelt_task *task) {
  const fakelt_problem *p = &task->problem;
  const fakelt_matrix *m = p->matrix, *d = &m[FAKELT_D];
  double alpha = read_scalar_f64(&task->alpha), beta = read_scalar_f64(&task->beta);
  for (int64_t item = 0; item < p->batch; item++) {
    const double *a = (const double *)task->a + item * m[FAKELT_A].stride;
    const double *b = (const double *)task->b + item * m[FAKELT_B].stride;
    const double *c = (const double *)task->c + item * m[FAKELT_C].stride;
    double *to = (double *)task->d + item * d->stride;
    for (int64_t i = 0; i < p->m; i++)
      for (int64_t j = 0; j < p->n; j++) {
        double value = alpha * sum_f64(p, a, b, i, j);
        if (beta != 0) value += beta * element(&m[FAKELT_C], c, i, j);
        to[d->row_major ? i * d->ld + j : j * d->ld + i] = value;
      }
  }
}
