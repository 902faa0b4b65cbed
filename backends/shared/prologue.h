/* backends/shared/prologue.h: the match of a kernel with a prologue (`pointwise+; y = reduce_sum(x)`, see
 * tenon/plugin/kernel.h) as two matches: the region in front, and the rest, which is the statement with its
 * epilogue, if it has one (epilogue.h). */
#pragma once

#include "backends/shared/epilogue.h"

/* The first n_taken results of the region are those that the rest reads, whether the match stores them or
 * not. Operand i of the rest with source TN_EPILOGUE_INNER is result source[i].at of the region. */
typedef struct tn_prologue {
  tn_epilogue_part region, rest;
  int32_t n_taken;
} tn_prologue;

/* Splits a match behind its first n_region nodes. To be dropped in any case; it refers to the match. */
tn_status tn_prologue_split(const void *handle, const tn_match *match, int32_t n_region,
                            tn_prologue *prologue);
void tn_prologue_drop(const void *handle, tn_prologue *prologue);
/* The source in the match for source s in the rest, or in a part of the rest. */
tn_epilogue_source tn_prologue_source(const tn_prologue *prologue, tn_epilogue_source s);
