/* backends/cuda/padded_rows.h: row-major matrices whose rows are padded, so that each begins at a multiple of
 * 64 elements. Tensor cores read operands 16 bytes at a time, and TMA reads nothing else; rows of an odd
 * number of elements, such as those of the logits of 50257 classes, begin at odd addresses. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "tenon/plugin/kernel.h"

enum {
  TN_CUDA_ROW_BLOCK = 64,  /* elements: rows of every type begin at multiples of 64 bytes */
  TN_CUDA_ROW_LEAST = 256, /* elements of a row for which padding may pay */
  TN_CUDA_ROW_BYTES = 16   /* of a load */
};

static inline int64_t tn_cuda_columns(const tn_type *type) {
  return type->rank > 1 ? type->dims[type->rank - 1] : 0;
}

/* Whether kernels offer padded rows: those of 16-bit elements would begin at addresses that such loads cannot
 * take. Rows of wider elements count, too: a region reads scores in f32 and makes their gradient in 16 bits,
 * both in one layout. */
static inline bool tn_cuda_offers_padded_rows(const tn_type *type) {
  int64_t columns = tn_cuda_columns(type);
  return columns >= TN_CUDA_ROW_LEAST && columns * 2 % TN_CUDA_ROW_BYTES != 0;
}

static inline tn_operand_layout tn_cuda_padded_rows(const tn_type *type) {
  tn_operand_layout rule = {.rule = TN_LAYOUT_FIXED, .layout = tn_layout_row_major(type->rank)};
  rule.layout.n_blocks = 1;
  rule.layout.block[0] = (tn_block){(uint16_t)(type->rank - 1), TN_CUDA_ROW_BLOCK};
  return rule;
}

/* Elements from one padded row to the next. */
static inline int64_t tn_cuda_padded_columns(const tn_type *type) {
  return (tn_cuda_columns(type) + TN_CUDA_ROW_BLOCK - 1) / TN_CUDA_ROW_BLOCK * TN_CUDA_ROW_BLOCK;
}

static inline bool tn_cuda_is_padded_rows(const tn_type *type, const tn_layout *layout) {
  tn_layout plain = tn_layout_row_major(type->rank);
  return type->rank > 1 && layout != NULL && layout->set && layout->n_blocks == 1 &&
         layout->block[0].dim == type->rank - 1 && layout->block[0].size == TN_CUDA_ROW_BLOCK &&
         memcmp(layout->order, plain.order, (size_t)type->rank) == 0;
}
