/* core/compile/layout/layout.h: tensor layouts: comparison, size and text form. */
#pragma once

#include "core/base/text/text.h"
#include "core/graph/graph.h"
#include "tenon/plugin/kernel.h"

bool tn_layout_same(const tn_layout *a, const tn_layout *b, int32_t rank);
bool tn_layout_is_row_major(const tn_layout *layout, int32_t rank);
/* Whether a layout is row-major with one block, of the innermost dimension: every row begins at a multiple of
 * the block's size. */
bool tn_layout_has_padded_rows(const tn_layout *layout, int32_t rank);
/* Such a layout for values of another rank whose innermost dimension is the same. */
tn_layout tn_layout_padded_rows_of(const tn_layout *layout, int32_t from_rank, int32_t rank);

/* Whether a layout is well-formed for a type: its order is a permutation, and its blocks are of dims that the
 * type has. */
bool tn_layout_is_valid(const tn_layout *layout, const tn_type *type);

/* Bytes of a value of the type in memory, padding included; INT64_MAX on overflow. */
int64_t tn_layout_bytes(const tn_type *type, const tn_layout *layout);

/* The estimated time of a reorder by a kernel or by the host: one read and one write at the speed of memory,
 * and a launch. */
static inline double tn_layout_reorder_s(const tn_device_properties *device, const tn_type *type) {
  return tn_estimate_s(device, 2 * (double)tn_type_bytes(type), 0, 1);
}

/* "row-major", or the order of dimensions and the blocks: "0 2 3 1", "0 1 2 3, 1:16". */
void tn_layout_print(const tn_layout *layout, int32_t rank, tn_text *text);
/* Reads the same text; false if it is no valid layout of the type. */
bool tn_layout_parse(const char *text, const tn_type *type, tn_layout *layout);
