/* core/compile/layout/layout.c: comparison, size and text form of layouts. */
#include "core/compile/layout/layout.h"

#include <stdlib.h>
#include <string.h>

int64_t tn_layout_bytes(const tn_type *type, const tn_layout *layout) {
  int64_t dims[TN_MAX_RANK] = {0}, bytes = (int64_t)tn_dtype_size(type->dtype);
  bool overflow = false;
  for (int32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i];
  for (int32_t i = 0; i < layout->n_blocks; i++) {
    const tn_block *block = &layout->block[i];
    dims[block->dim] = dims[block->dim] / block->size + (dims[block->dim] % block->size != 0);
    overflow |= __builtin_mul_overflow(bytes, (int64_t)block->size, &bytes);
  }
  for (int32_t i = 0; i < type->rank; i++) {
    if (dims[i] == 0) return 0;
    overflow |= __builtin_mul_overflow(bytes, dims[i], &bytes);
  }
  return overflow ? INT64_MAX : bytes;
}

bool tn_layout_same(const tn_layout *a, const tn_layout *b, int32_t rank) {
  return memcmp(a->order, b->order, (size_t)rank) == 0 && a->n_blocks == b->n_blocks &&
         memcmp(a->block, b->block, a->n_blocks * sizeof *a->block) == 0;
}

bool tn_layout_is_row_major(const tn_layout *layout, int32_t rank) {
  tn_layout row_major = tn_layout_row_major(rank);
  return tn_layout_same(layout, &row_major, rank);
}

bool tn_layout_has_padded_rows(const tn_layout *layout, int32_t rank) {
  tn_layout row_major = tn_layout_row_major(rank);
  return rank > 0 && layout->set && layout->n_blocks == 1 && layout->block[0].dim == rank - 1 &&
         memcmp(layout->order, row_major.order, (size_t)rank) == 0;
}

tn_layout tn_layout_padded_rows_of(const tn_layout *layout, int32_t from_rank, int32_t rank) {
  tn_layout rows = tn_layout_row_major(rank);
  if (!tn_layout_has_padded_rows(layout, from_rank)) return rows;
  rows.n_blocks = 1;
  rows.block[0] = (tn_block){(uint16_t)(rank - 1), layout->block[0].size};
  return rows;
}

bool tn_layout_is_valid(const tn_layout *layout, const tn_type *type) {
  unsigned seen = 0;
  for (int32_t i = 0; i < type->rank; i++) {
    if (layout->order[i] >= type->rank) return false;
    seen |= 1u << layout->order[i];
  }
  if (seen != (1u << type->rank) - 1 || layout->n_blocks > TN_MAX_BLOCKS) return false;
  for (int32_t i = 0; i < layout->n_blocks; i++)
    if (layout->block[i].dim >= type->rank || layout->block[i].size < 1) return false;
  return true;
}

/* ---- text ---- */

void tn_layout_print(const tn_layout *layout, int32_t rank, tn_text *text) {
  if (tn_layout_is_row_major(layout, rank)) {
    tn_text_add(text, "row-major");
    return;
  }
  for (int32_t i = 0; i < rank; i++) tn_text_addf(text, "%s%d", i > 0 ? " " : "", layout->order[i]);
  for (int32_t i = 0; i < layout->n_blocks; i++)
    tn_text_addf(text, ", %d:%d", layout->block[i].dim, layout->block[i].size);
}

/* Reads a number below `end`; -1: there is no such number. */
static long take_layout_number(const char **text, long end) {
  char *rest = NULL;
  long number = strtol(*text, &rest, 10);
  if (rest == *text || number < 0 || number >= end) return -1;
  *text = rest;
  return number;
}

static bool take_layout_block(const char **text, tn_layout *layout) {
  if (layout->n_blocks == TN_MAX_BLOCKS) return false;
  long dim = take_layout_number(text, TN_MAX_RANK), size;
  if (dim < 0 || *(*text)++ != ':') return false;
  size = take_layout_number(text, UINT16_MAX + 1L);
  layout->block[layout->n_blocks++] = (tn_block){(uint16_t)dim, (uint16_t)size};
  return size > 0;
}

bool tn_layout_parse(const char *text, const tn_type *type, tn_layout *layout) {
  *layout = tn_layout_row_major(type->rank);
  if (strcmp(text, "row-major") == 0) return true;
  for (int32_t i = 0; i < type->rank; i++) {
    long dim = take_layout_number(&text, TN_MAX_RANK);
    if (dim < 0) return false;
    layout->order[i] = (uint8_t)dim;
  }
  for (; *text == ',';) {
    text++;
    if (!take_layout_block(&text, layout)) return false;
  }
  return *text == '\0' && tn_layout_is_valid(layout, type);
}
