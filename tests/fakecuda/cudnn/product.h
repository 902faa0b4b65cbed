/* tests/fakecuda/cudnn/product.h: products of matrices, of which convolutions and matmuls are made. */
#pragma once

#include <stdint.h>

enum { FAKEDNN_LANES = 16 };

typedef struct fakednn_product {
  int64_t m, n, k;
  const float *a; /* element (i, k) is a[i * a_row + k * a_step] */
  int64_t a_row, a_step;
  const float *b; /* element (k, j) is b[k * b_row + j]; rows end with zeros up to fakednn_padded(n) */
  int64_t b_row;
  double *c; /* element (i, j) is c[i * c_row + j]; rows of fakednn_padded(n) elements */
  int64_t c_row;
} fakednn_product;

static inline int64_t fakednn_padded(int64_t n) {
  return (n + FAKEDNN_LANES - 1) / FAKEDNN_LANES * FAKEDNN_LANES;
}

/* Adds the product of A and B to C. At most 256 products are added in f32, their sums in f64. */
void fakednn_multiply(const fakednn_product *product);
