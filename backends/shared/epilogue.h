/* backends/shared/epilogue.h: the match of a kernel with an epilogue (`s, q = moments(x); pointwise+`, see
 * tenon/plugin/kernel.h) as two matches: the op, and the region that reads its results. A kernel then uses
 * for each what it has for the op and for a region alone. */
#pragma once

#include "tenon/plugin/kernel.h"

/* Where the memory of an operand or result of a part lies. */
typedef enum tn_epilogue_place {
  TN_EPILOGUE_OPERAND, /* operand `at` of the match */
  TN_EPILOGUE_RESULT,  /* result `at` of the match */
  TN_EPILOGUE_INNER    /* a result of the op that the match does not store; `at` is the kernel's to use */
} tn_epilogue_place;
typedef struct tn_epilogue_source {
  tn_epilogue_place place;
  int64_t at;
} tn_epilogue_source;

/* The operands of the region are the results of the op, then operands of the match. */
typedef struct tn_epilogue_part {
  tn_match match;
  tn_epilogue_source *source; /* of the operands, then of the results */
  /* what `match` points to */
  const tn_type **types;
  int32_t *out_number;
  uint8_t *constant;
  const tn_node **constant_node;
  tn_match_node *nodes;
  int32_t *numbers; /* the operands of all nodes */
} tn_epilogue_part;

typedef struct tn_epilogue {
  tn_epilogue_part op, region;
} tn_epilogue;

/* A part with room for any part of a match, to be filled and finished by the caller. To be dropped in either
 * case. */
tn_status tn_epilogue_new_part(const void *handle, const tn_match *match, tn_epilogue_part *part);
/* Sets part->match from what the arrays hold: the types of operands, then results, and so on. */
void tn_epilogue_finish_part(tn_epilogue_part *part, int32_t n_in, int32_t n_out, int32_t n_nodes);
/* Splits a match, one of whose nodes is `op`. TN_EUNSUPPORTED: an operand of the op is made in the region, or
 * is absent. The epilogue is to be dropped in either case; it refers to the match. */
tn_status tn_epilogue_split(const void *handle, const tn_match *match, const tn_match_node *op,
                            tn_epilogue *epilogue);
/* The region behind several statements, which are the first nodes of the match. Its operands are the results
 * of the last statement, then operands of the match. To be dropped in either case. */
tn_status tn_epilogue_region(const void *handle, const tn_match *match, int32_t n_statements,
                             tn_epilogue_part *region);
void tn_epilogue_drop_part(const void *handle, tn_epilogue_part *part);
void tn_epilogue_drop(const void *handle, tn_epilogue *epilogue);
